"""The only loop with effects: starts, watches, and carries out what `step` asks for."""
