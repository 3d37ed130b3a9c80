"""What is remembered on this host about earlier starts."""

from vigil.store.history import Expected, History, state_folder

__all__ = ["Expected", "History", "state_folder"]
