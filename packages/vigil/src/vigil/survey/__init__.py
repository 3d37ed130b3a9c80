"""See what a start found on its host: command, environment, packages, models, machine; standard library only.

`snapshot.take` writes it beside the start, from a process of its own; `launcher.launch` loads it by name, after the command runs.
"""
