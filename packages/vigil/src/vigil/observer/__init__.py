"""Look at a server and report facts; standard library only, so that it runs on a host where nothing is installed.

The same code runs in a thread of the tool (`core.Observer`) and as a program at the other end of a reach (`stdio.main`). See
PROTOCOL.md for what goes in and what comes out. Nothing here decides anything, and nothing here touches the server.
"""
