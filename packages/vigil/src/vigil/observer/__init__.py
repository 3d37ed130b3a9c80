"""Look at a server and report facts; standard library only, so that it runs on a host where nothing is installed.

The same code runs in a thread of the tool (`Observer`) and as a program at the other end of a reach (`main`). See
PROTOCOL.md for what goes in and what comes out. Nothing here decides anything, and nothing here touches the server.
"""

from .core import Observer
from .stdio import main

__all__ = ["Observer", "main"]
