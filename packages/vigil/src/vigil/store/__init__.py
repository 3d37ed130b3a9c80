"""What is kept between runs, in the user's state folder: the history of starts, and what was last known of other hosts."""

from vigil.store.folder import private_folder, state_folder
from vigil.store.history import Expected, History
from vigil.store.mirror import Known, Mirror

__all__ = ["Expected", "History", "Known", "Mirror", "private_folder", "state_folder"]
