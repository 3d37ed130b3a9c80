"""What runs beside a server, the observer and the launcher, as one text for a `python3` where nothing is installed.

The text is fed over standard input to a one-line loader that reads its length first, so that standard input stays open for
commands afterwards (`python3 -` alone would run only at end of input).
"""

import functools
import re
from importlib import resources
from pathlib import Path

# Reads exactly as many bytes as it is told and no more: what follows belongs to the program that it runs. One line without
# `'`, `$`, `!`: it must come through the quotes of any login shell, csh and fish included.
LOADER = (
    r'exec("import os\ndef g(n):\n b=bytes()\n while len(b)<n:\n  c=os.read(0,n-len(b))\n  if not c: raise SystemExit(3)\n'
    r'  b+=c\n return b\nexec(g(int(g(9))))")'
)

# A new line first: whatever a login shell printed before us may lack its own.
_PROGRAM = """
import sys
sys.stdout.write("\\n")
sys.stdout.flush()
if sys.version_info < (3, 9):
    sys.stdout.write('{{"refused": "python", "text": "python3 there is %d.%d; 3.9 or newer is needed"}}\\n'
        % tuple(sys.version_info[:2]))
    sys.stdout.flush()
    sys.exit(4)
from importlib.machinery import ModuleSpec
SOURCES = {sources!r}
PACKAGES = {packages!r}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return ModuleSpec(name, self, is_package=name in PACKAGES)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)
    def get_source(self, name):
        return SOURCES[name]
sys.meta_path.insert(0, Finder())

import json
from vigil_beside.{room} import {module}
{module}.main({argument})
"""


_HOME = str(Path(__file__).resolve().parents[2])
_ROOMS = ("observer", "launcher", "survey", "scout")
_PACKAGES = {"vigil_beside": "", **{f"vigil_beside.{room}": "" for room in _ROOMS}}
Place = tuple[str, str]
"""A room and a module of it."""
_IMPORTED = re.compile(r"^\s*from \.(?:\.(\w+))?\.?(\w*) import (.+)$", re.MULTILINE)


@functools.cache
def _sources(modules: tuple[Place, ...]) -> dict[str, str]:
    """Return the modules that some need, by name: a host is sent, and compiles, no more than it runs."""
    needed, found = list(modules), dict(_PACKAGES)
    while needed:
        place, name = needed.pop()
        if f"vigil_beside.{place}.{name}" in found:
            continue
        text = resources.files(f"vigil.{place}").joinpath(f"{name}.py").read_text("utf-8")
        found[f"vigil_beside.{place}.{name}"] = text
        for elsewhere, origin, names in _IMPORTED.findall(text):
            others = [origin] if origin else [word.strip() for word in names.split("#")[0].split(",")]
            needed += [(elsewhere or place, one) for one in others]
    return found


def program(room: str, module: str, argument: str = "", besides: tuple[Place, ...] = ()) -> bytes:
    """Return the bytes for the loader's standard input: nine characters of length, then the program.

    `module` is one of `room` with a `main`; `argument`, where given, is JSON that is handed to it;
    `besides` are modules (room, name) that it loads by name, later.
    """
    literal = f"json.loads({argument!r})" if argument else ""
    sources = _sources(((room, module), *besides))
    text = _PROGRAM.format(
        sources=sources, packages=tuple(_PACKAGES), room=room, module=module, argument=literal
    ).encode()
    return _framed(text)


def installed(room: str, module: str, argument: str) -> bytes:
    """Return the same program for this machine, from the modules that are installed here: nothing is compiled again."""
    lines = (
        "import json, sys",
        f"sys.path.insert(0, {_HOME!r})",
        f"from vigil.{room} import {module}",
        f"{module}.main(json.loads({argument!r}))",
    )
    text = "\n".join(lines).encode()
    return _framed(text)


def _framed(text: bytes) -> bytes:
    return b"%08d\n" % len(text) + text
