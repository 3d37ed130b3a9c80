"""The whole numbers behind a flag that takes several: `--cuda-graph-bs 1 2 4`, and the engines' `1,2,4`."""

from vigil.preflight.command import Command, Given

MOST = 1000
LONGEST = 7


def listed(command: Command, given: Given | None) -> list[int]:
    """Return the numbers of a flag; none where it is not given, or has others than numbers."""
    if given is None or not given.value:
        return []
    words = [given.value]
    for word in command.words[given.at + given.count : command.end][:MOST]:
        if not word.isdigit():
            break
        words.append(word)
    parts = [one for word in words for one in word.strip("[]").split(",")]
    fits = all(one.strip().isascii() and one.strip().isdigit() and len(one.strip()) <= LONGEST for one in parts)
    return [int(one) for one in parts] if fits else []
