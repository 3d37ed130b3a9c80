"""Which model a folder holds: hashes of its config and of its weights' headers and ends, cheap whatever its size.

A name or a path may lead to another model tomorrow. Headers alone are the same for all fine-tunes of a model, so the last
64 KiB of each file count too; `vigil diff` tells weights of servers apart in the same way.
"""

import hashlib
from pathlib import Path

from vigil.survey.digest import read_small, tail

CONFIG_BYTES = 4 << 20
HEADER_BYTES = 24 << 20
END_BYTES = 64 << 10
WORDS = {"config_sha256": "its config.json", "weights_sha256": "its weights"}


def identity_of(folder: Path | None) -> dict[str, str]:
    """Return the hashes that say which model it is; {} for no folder, and no hash of what is not there."""
    if folder is None:
        return {}
    found = {}
    config = read_small(str(folder / "config.json"), CONFIG_BYTES)
    if config:
        found["config_sha256"] = hashlib.sha256(config).hexdigest()
    files = sorted(folder.glob("*.safetensors"))
    if files:
        found["weights_sha256"] = _weights(files)
    return found


def _weights(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        head = read_small(str(path), 8) or b""
        length = min(int.from_bytes(head, "little"), HEADER_BYTES)
        digest.update(f"{path.name}\0{path.stat().st_size}\n".encode("utf-8", "surrogateescape"))
        digest.update(read_small(str(path), 8 + length) or b"")
        digest.update(tail(str(path), END_BYTES))
    return digest.hexdigest()


def difference(was: object, now: dict[str, str]) -> str | None:
    """Return in words what of a model is another than it was, as far as both are known; None where nothing is."""
    if not isinstance(was, dict):
        return None
    found = [words for name, words in WORDS.items() if name in was and name in now and was[name] != now[name]]
    return " and ".join(found) or None
