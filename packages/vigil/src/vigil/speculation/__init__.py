"""Speculation that is switched with the load: what the user wishes, and what that makes of a command."""

from vigil.speculation.arrange import Arranged, arrange
from vigil.speculation.wish import FLAG, Wish, read_wish, taken_out

__all__ = ["FLAG", "Arranged", "Wish", "arrange", "read_wish", "taken_out"]
