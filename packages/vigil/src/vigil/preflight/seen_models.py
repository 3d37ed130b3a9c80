"""What lies in the folders that the command names as models, as the scout saw it."""

import msgspec


class ModelSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the command: `what` is "model" or the flag that names it, `given` its value; `path` None: not on the host."""

    what: str
    given: str
    path: str | None = None
