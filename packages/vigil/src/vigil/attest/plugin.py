"""The files of vigil-engine as they travel beside a start. Only its text is read: vigil imports nothing of it."""

import hashlib
from importlib import metadata, util
from pathlib import Path
from typing import Any

from vigil.errors import UsageError

PACKAGE, DISTRIBUTION = "vigil_engine", "vigil-engine"
GROUPS = ("vllm.general_plugins", "sglang.srt.plugins")
MISSING = f"{DISTRIBUTION}, which switches speculation, is not installed here: pip install {DISTRIBUTION}"


def plugin_of(schedule: str | None, placed: dict[str, str]) -> dict[str, Any] | None:
    """Return what the launcher is asked to put into a start that has a schedule: the files, a name for them, the schedule.

    `placed`: the files of this start alone, which its command names.

    Raises:
        UsageError: vigil-engine is not installed here.

    """
    if schedule is None:
        return None
    files = plugin_texts()
    name = hashlib.sha256("\0".join([*files, *files.values()]).encode()).hexdigest()[:16]
    return {"files": files, "name": name, "schedule": schedule, "placed": placed}


def plugin_texts() -> dict[str, str]:
    """Return the modules of vigil-engine and what names its entry points, by path: what an installed package looks like."""
    spec = util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(MISSING)
    home = Path(next(iter(spec.submodule_search_locations)))
    texts = {f"{PACKAGE}/{path.name}": path.read_text("utf-8") for path in sorted(home.glob("*.py"))}
    try:
        held = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise UsageError(MISSING) from None
    folder = f"{PACKAGE}-{held.version}.dist-info"
    lines: list[str] = []
    for group in GROUPS:
        points = [one for one in held.entry_points if one.group == group]
        lines += [f"[{group}]", *(f"{one.name} = {one.value}" for one in points), ""] if points else []
    texts[f"{folder}/entry_points.txt"] = "\n".join(lines)
    texts[f"{folder}/METADATA"] = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {held.version}\n"
    return texts
