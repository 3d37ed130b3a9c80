r"""Cuts a stream of bytes into blocks that hold whole lines, whatever the pieces in which it comes, in bounded memory.

A line ends at `\n` or, since progress bars are written over, at `\r`; only `\n` counts. Of a line that is longer than
`LINE_BYTES` nothing behind that is looked at.
"""

from collections.abc import Iterator

LINE_BYTES = 64 << 10
BLOCK_BYTES = 1 << 20


class Blocks:
    """Bytes in, blocks of whole lines out; the same blocks in whatever pieces the bytes come. `size` counts what came."""

    def __init__(self) -> None:
        self.size = 0
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes; yield the blocks that are full."""
        self.size += len(data)
        self._held += data
        while len(self._held) >= BLOCK_BYTES:
            cut = 1 + max(self._held.rfind(b"\n", 0, BLOCK_BYTES), self._held.rfind(b"\r", 0, BLOCK_BYTES))
            if cut == 0:  # what follows of this line joins what is kept of it, where nobody looks
                del self._held[LINE_BYTES:BLOCK_BYTES]
                continue
            block = bytes(memoryview(self._held)[:cut])
            del self._held[:cut]
            yield block

    def close(self) -> Iterator[bytes]:
        """Yield what is left: the last line may lack its end."""
        if self._held:
            yield bytes(self._held)
            self._held.clear()
