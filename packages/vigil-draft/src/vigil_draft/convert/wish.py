"""What a conversion is asked for."""

import msgspec


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is wished for: the format, and whether its first layer is named `midlayer`, as servers from before 0.5.12 have it.

    `anyway`: write what the engine then drops or does not read (a sliding window), and say so in a note.
    """

    to: str
    midlayer: bool = False
    anyway: bool = False
