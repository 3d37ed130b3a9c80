"""Speculation that is switched with the load, inside a server's own process: the standard library and the engine only."""

__version__ = "0.1.0"
