"""Speculation that is switched with the load: what the user wishes, and what that makes of a command."""
