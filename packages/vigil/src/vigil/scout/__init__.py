"""Look ahead of a start: what is there, on its host, of what a command asks for; standard library only, nothing is changed.

`desk.main` answers one request: the engine's own parser, the folders of the models, the host. What any of it means for the start
is not said here (see `vigil.preflight`).
"""
