"""See whether the llama.cpp that would run knows an architecture: its library holds each name as a text that ends with NUL.

Nothing is run. Looked at are the program and the libllama beside it, as they lie on the disk.
"""

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..survey.interpreter import find
from .pieces import piece, shape_of
from .remembered import Remembered

if TYPE_CHECKING:
    from .desk import Question

LARGEST = 192 << 20  # a library without CUDA's kernels has 3 to 10 MiB; of a larger one nothing is said
STEP = 16 << 20
NAME_CHARS = 100
NAMES = ("libllama.so", "libllama.so.0", "libllama.dylib", "libllama.0.dylib")
BINARIES = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
# Names that every build since 2024 has: where they are missing, the table of names lies elsewhere.
CONTROLS = (b"gptneox\0", b"starcoder2\0", b"command-r\0")


def see(question: "Question", architecture: str) -> Optional[Dict[str, Any]]:
    """Return what the build knows, as a `BuildSeen`; None where that is not to be seen.

    The compiler may put a name at the end of a longer text: "known" may be wrong, "not known" is sure.
    """
    program = find(question.words, question.place)
    name = architecture.encode("utf-8", "replace")
    if program is None or program.python or not name or len(name) > NAME_CHARS or b"\0" in name:
        return None
    real = os.path.realpath(program.path)
    if not (piece(real, 0, 4) or b"").startswith(BINARIES):
        return None  # a script: what it will run is not known
    told = [_holds(path, name) for path in _libraries(real, question)]
    if not any(one is not None for one in told) or any(one == "large" for one in told):
        return None
    return {"known": [architecture] if "known" in told else []}


def _libraries(real: str, question: "Question") -> List[str]:
    folder = os.path.dirname(real)
    folders = [folder, os.path.join(folder, "..", "lib"), os.path.join(folder, "..", "lib64")]
    folders += [one for one in question.place.env.get("LD_LIBRARY_PATH", "").split(":")[:20] if one]
    paths = [real] + [os.path.join(question.place.resolve(one), name) for one in folders for name in NAMES]
    return list(dict.fromkeys(os.path.realpath(one) for one in paths if os.path.isfile(one)))


def _holds(path: str, name: bytes) -> Optional[str]:
    """Return "known" or "unknown" of a file that holds the names, "large" of one that is not read, None of any other."""
    shape = shape_of(path)
    if shape is None or not shape.regular:
        return None
    if shape.size > LARGEST:
        return "large"
    memory = Remembered(path)
    known = memory.recall(name.decode("utf-8", "replace"), shape)
    if known is None:
        known = [_look(path, shape.size, name)]
        memory.keep(name.decode("utf-8", "replace"), shape, known)
        memory.save()
    return str(known[0]) if known[0] else None


def _look(path: str, size: int, name: bytes) -> Optional[str]:
    wanted = {name + b"\0", *CONTROLS}
    found: "set[bytes]" = set()
    for begin in range(0, size, STEP):
        data = piece(path, begin, STEP + NAME_CHARS) or b""
        found |= {one for one in wanted - found if one in data}
        if found == wanted:
            break
    if not found.issuperset(CONTROLS):
        return None
    return "known" if name + b"\0" in found else "unknown"
