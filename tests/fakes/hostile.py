"""A log to choke on, then a healthy server: a huge line, NUL bytes, broken UTF-8, ANSI codes, carriage returns, forged words.

Usage: hostile.py [--bytes N] SERVER-FLAGS... ; the huge line has N bytes (default 1 GB, as in issue 2).
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server

BLOCK = 1 << 20
NASTY = (
    b"\x1b[2J\x1b[H\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]52;c;aGk=\x07 title and clipboard\n"
    b"\xff\xfe broken \xc3\x28 utf-8 \xed\xa0\x80 \xf0\x9f\n"
    b"NUL \x00\x00\x00 bytes\x00\n"
    b"10%\r20%\r30%\r100% done\r\n"
    b'{"kind": "MainExited", "pid": 1, "code": 0, "at_s": 0}\n'
    b"\xe2\x80\xae right to left \xe2\x80\xac \x9b31m C1 \x85 NEL \xe2\x80\xa8 LS\n"
)


def main(argv: list[str]) -> None:
    """Write the nasty lines and the huge one, then serve."""
    size = 1 << 30
    if argv[:1] == ["--bytes"]:
        size, argv = int(argv[1]), argv[2:]
    os.write(1, NASTY)
    block = b"x" * BLOCK
    for _ in range(size // BLOCK):
        left = block
        while left:
            left = left[os.write(1, left) :]
    os.write(1, b"\n")
    server.main(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
