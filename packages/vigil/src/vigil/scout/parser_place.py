"""Where an engine is installed, and the files that its flags come from."""

import os
import re
from typing import Dict, List, NamedTuple, Optional

from ..survey.digest import read_small
from ..survey.interpreter import Place
from ..survey.packages import Package, origin

SGLANG_MAIN = "srt/server_args.py"
# The names of its parsers of answers: in files of their own, or (to 0.5.1x) in the tables of the parsers themselves.
_PARSER_NAMES = ("srt/parser/reasoning_parser_names.py", "srt/function_call/parser_names.py")
_PARSER_TABLES = (
    "srt/parser/reasoning_parser.py",
    "srt/reasoning_parser.py",
    "srt/function_call/function_call_parser.py",
)
SGLANG_PARSERS = (*_PARSER_NAMES, *_PARSER_TABLES)
VLLM_MAIN = "engine/arg_utils.py"
VLLM_FRONTENDS = (
    "entrypoints/common/cli_args.py",
    "entrypoints/launchers/cli_args.py",
    "entrypoints/openai/cli_args.py",
)
_WANTED = {
    "sglang": (
        SGLANG_MAIN,
        "srt/arg_groups/argparse_actions.py",
        "srt/arg_groups/choices.py",
        "srt/arg_groups/arg_utils.py",
    ),
    "vllm": (VLLM_MAIN, *VLLM_FRONTENDS),
}
_FOLDERS = {"sglang": ("srt/arg_groups/fields",), "vllm": ("config", "config.py")}
FILE_BYTES = 4 << 20
MOST_FILES = 200
MOST_ENTRIES = 20000
_INFO = re.compile(r"(sglang|vllm)(?:[_.][A-Za-z0-9_.]+)?-([^-]+)\.dist-info\Z")


class Engine(NamedTuple):
    """An installed engine. `files`: the text of those that its flags come from, by their path below `folder`.

    `info`: the folder of the distribution that brought them, None for a checkout.
    """

    name: str
    version: Optional[str]
    folder: str
    site: str
    info: Optional[str]
    files: Dict[str, str]


def find_engine(name: str, sites: List[str], place: Place, *, from_cwd: bool) -> Optional[Engine]:
    """Return the engine that an interpreter with these sites would import, or None."""
    infos = [(site, *found) for site in sites for found in _infos(name, site)]
    version = infos[0][2] if infos else None
    main = _WANTED[name][0]
    for root in [place.cwd] * from_cwd + sites:
        folder = os.path.join(root, name)
        if os.path.isfile(os.path.join(folder, main)):
            info = next((path for site, path, _ in infos if site == root), None)
            return Engine(name, version, folder, root, info, _files(name, folder))
    for site, path, found in infos:
        checkout = _checkout(name, Package(name, found, site, path))
        if checkout is not None and os.path.isfile(os.path.join(checkout, main)):
            return Engine(name, found, checkout, os.path.dirname(checkout), None, _files(name, checkout))
    return None


def _infos(name: str, site: str) -> "List[tuple[str, str]]":
    """Return (folder, version) of the distributions that may have brought an engine, that of its own name first."""
    found = []
    try:
        with os.scandir(site) as entries:
            for index, entry in enumerate(entries):
                told = _INFO.match(entry.name) if index < MOST_ENTRIES else None
                if told is not None and told.group(1) == name:
                    found.append((not entry.name.startswith(name + "-"), entry.path, told.group(2)))
    except OSError:
        return []
    return [(path, version) for _, path, version in sorted(found)]


def _checkout(name: str, package: Package) -> Optional[str]:
    """Return where an editable install has its source."""
    url = str(origin(package).get("url") or "")
    if not url.startswith("file://"):
        return None
    root = url[len("file://") :]
    tried = [os.path.join(root, *between, name) for between in ((), ("python",), ("src",))]
    return next((path for path in tried if os.path.isdir(path)), None)


def _files(name: str, folder: str) -> Dict[str, str]:
    wanted = list(_WANTED[name])
    for one in _FOLDERS[name]:
        path = os.path.join(folder, one)
        wanted += [one] if path.endswith(".py") else _below(folder, path)
    if name == "sglang":
        named = all(os.path.isfile(os.path.join(folder, one)) for one in _PARSER_NAMES)
        wanted += _PARSER_NAMES if named else _PARSER_TABLES
    texts = {path: text_of(os.path.join(folder, path)) for path in wanted[:MOST_FILES]}
    return {path: text.decode("utf-8", "replace") for path, text in texts.items() if text is not None}


def _below(folder: str, path: str) -> List[str]:
    found = []
    for root, folders, names in os.walk(path):
        folders[:] = sorted(one for one in folders if one != "__pycache__")[:MOST_FILES]
        found += [os.path.relpath(os.path.join(root, one), folder) for one in sorted(names) if one.endswith(".py")]
        if len(found) > MOST_FILES:
            break
    return found


def text_of(path: str) -> Optional[bytes]:
    """Return a source file, or None where it is none."""
    return read_small(path, FILE_BYTES)
