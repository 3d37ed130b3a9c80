"""What is kept between runs: the history of starts, in the user's state folder."""

from vigil.store.history import Expected, History, private_folder, state_folder

__all__ = ["Expected", "History", "private_folder", "state_folder"]
