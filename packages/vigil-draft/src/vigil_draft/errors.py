"""What can go wrong with a draft: each leaves as one line and an exit code, as all errors of vigil do."""

from vigil.errors import VigilError


class DraftError(VigilError):
    """A draft could not be read or written: a broken file, a full disk."""


class NotADraftError(VigilError):
    """What was named is no EAGLE-3 draft, or nothing that is ever opened (a pickle)."""

    exit_code = 2


class RefusedError(VigilError):
    """The other format cannot say what this draft is. `why`: one finding a line; nothing was written."""

    exit_code = 3

    def __init__(self, why: tuple[str, ...]) -> None:
        super().__init__("; ".join(why))
        self.why = why
