"""Start, keep and stop servers on their host; standard library only, since nothing is installed there.

`desk` answers one request; `launch`, `stop` and `state` carry it out. `parent` is the launcher itself: it runs detached, in an
interpreter of its own.
"""
