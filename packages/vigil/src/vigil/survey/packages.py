"""What is installed for an interpreter, read from its folders without starting it: names, versions, and where each lies."""

import json
import os
import re
from itertools import islice
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from .digest import read_small
from .interpreter import Place, Program

MOST_SITES = 20
MOST_PACKAGES = 3000
METADATA_BYTES = 64 << 10
RECORD_HEAD_BYTES = 256 << 10
MOST_ENTRIES = 20000
_VERSION = re.compile(r"python(\d\.\d{1,2}t?)\Z")
_FIELD = re.compile(rb"^(Name|Version):[ \t]*(\S{1,200})", re.MULTILINE)
_IMPORT = re.compile(rb"^from ([A-Za-z_]\w{0,100})[\w.]* import", re.MULTILINE)
_FOLDER = re.compile(r"([A-Za-z0-9][A-Za-z0-9._]*)-([^-/]+)(?:-.*)?\.(?:dist|egg)-info\Z")


class Package(NamedTuple):
    """One distribution: `site` is the folder that its files lie in, `info` the one that says what they are."""

    name: str
    version: str
    site: str
    info: str


class Python(NamedTuple):
    """An interpreter's folders. `prefix`: files of its packages lie below it, and nowhere else."""

    path: str
    real: str
    prefix: str
    version: Optional[str]
    sites: List[str]


def python_of(program: Program, place: Place) -> Python:
    """Return where an interpreter finds its packages, in its own order."""
    real = os.path.realpath(program.path)
    prefix = os.path.dirname(os.path.dirname(program.path))
    settings = _settings(os.path.join(prefix, "pyvenv.cfg"))
    if not settings:
        prefix = os.path.dirname(os.path.dirname(real))
    version = _minor(settings.get("version_info") or settings.get("version") or "") or _minor_of(real, prefix)
    sites = [place.resolve(one) for one in place.env.get("PYTHONPATH", "").split(":")[:MOST_SITES] if one]
    sites += _sites(prefix, version)
    if not settings or settings.get("include-system-site-packages", "").lower() == "true":
        user = place.env.get("PYTHONUSERBASE") or os.path.join(place.env.get("HOME", "/"), ".local")
        if version and not place.env.get("PYTHONNOUSERSITE"):
            sites.append(os.path.join(user, "lib", "python" + version, "site-packages"))
        if settings.get("home"):
            sites += _sites(os.path.dirname(settings["home"]), version)
    sites = [one for one in dict.fromkeys(map(os.path.normpath, sites)) if os.path.isdir(one)]
    full = settings.get("version_info") or settings.get("version") or version
    return Python(program.path, real, prefix, full, sites[:MOST_SITES])


def _settings(path: str) -> Dict[str, str]:
    text = (read_small(path, METADATA_BYTES) or b"").decode("utf-8", "replace")
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, equals, value in pairs if equals}


def _minor(version: str) -> Optional[str]:
    found = re.match(r"\d\.\d{1,2}", version)
    return found.group(0) if found else None


def _minor_of(real: str, prefix: str) -> Optional[str]:
    """Return "3.11" from `python3.11`, else from the one folder that is there."""
    named = _VERSION.match(os.path.basename(real))
    if named is not None:
        return named.group(1)
    try:
        found = [match.group(1) for match in map(_VERSION.match, os.listdir(os.path.join(prefix, "lib"))) if match]
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def _sites(prefix: str, version: Optional[str]) -> List[str]:
    if version is None:
        return []
    of_debian = [os.path.join(prefix, "lib", "python3", "dist-packages")]
    here = [
        os.path.join(prefix, lib, "python" + version, kind)
        for lib in ("lib", "lib64", "local/lib")
        for kind in ("site-packages", "dist-packages")
    ]
    return here + of_debian


def installed(sites: List[str]) -> Dict[str, Package]:
    """Return the packages that are found first, by their plain names."""
    found: Dict[str, Package] = {}
    for site in sites:
        for name in _folders(site):
            if name.endswith((".dist-info", ".egg-info")) and len(found) < MOST_PACKAGES:
                package = _read(site, name)
                if package is not None:
                    found.setdefault(plain_name(package.name), package)
    return found


def _folders(site: str) -> List[str]:
    """Return what lies in a folder of packages, in order; nothing of one that cannot be read."""
    try:
        with os.scandir(site) as entries:
            return sorted(entry.name for entry in islice(entries, MOST_ENTRIES))
    except OSError:
        return []


def _read(site: str, folder: str) -> Optional[Package]:
    """Return what a package says of itself; what its folder is called counts where that cannot be read."""
    info = os.path.join(site, folder)
    text = b""
    for path in (os.path.join(info, "METADATA"), os.path.join(info, "PKG-INFO"), info):
        text = read_small(path, METADATA_BYTES) or b""
        if text:
            break
    head = text.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    fields = {key: value.decode("utf-8", "replace") for key, value in _FIELD.findall(head)}
    named = _FOLDER.match(folder)
    name = fields.get(b"Name") or (named.group(1) if named else None)
    version = fields.get(b"Version") or (named.group(2) if named else None)
    return Package(name, version, site, info) if name and version else None


def plain_name(name: str) -> str:
    """Return a package's name as indexes compare it: `Sgl_Kernel` is `sgl-kernel`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def owner_of(module: str, packages: Iterable[Package]) -> Optional[Package]:
    """Return the package that brings a module: the one of its name, else the one that lists it."""
    known = list(packages)
    named = next((one for one in known if plain_name(one.name) == plain_name(module)), None)
    if named is not None:
        return named
    line, folder = module.encode(), module.encode() + b"/"
    for one in known:
        if line in (read_small(os.path.join(one.info, "top_level.txt"), METADATA_BYTES) or b"").split():
            return one
        record = read_small(os.path.join(one.info, "RECORD"), RECORD_HEAD_BYTES) or b""
        if record.startswith(folder) or b"\n" + folder in record:
            return one
    return None


def imported_by(script: Optional[str]) -> Optional[str]:
    """Return the package that an installed command imports: its file says `from package.module import main`."""
    found = _IMPORT.search(read_small(script, METADATA_BYTES) or b"") if script else None
    return found.group(1).decode() if found else None


def origin(package: Package) -> Dict[str, Any]:
    """Return what `direct_url.json` says of where a package came from; {} for one from an index."""
    try:
        value = json.loads(read_small(os.path.join(package.info, "direct_url.json"), METADATA_BYTES) or b"")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def named(sites: Iterable[str], name: str) -> Optional[Package]:
    """Return the package of a name that is found first, told by the names of folders alone."""
    for site in sites:
        for folder in _folders(site):
            match = _FOLDER.match(folder)
            if match is not None and plain_name(match.group(1)) == plain_name(name):
                return Package(match.group(1), match.group(2), site, os.path.join(site, folder))
    return None


def added(sites: List[str]) -> List[str]:
    """Return the folders with those that their `.pth` files add, each once."""
    found = list(sites)
    for site in sites:
        try:
            with os.scandir(site) as entries:
                paths = [entry.path for entry in islice(entries, MOST_ENTRIES) if entry.name.endswith(".pth")]
        except OSError:
            continue
        for path in sorted(paths)[:MOST_SITES]:
            lines = (read_small(path, METADATA_BYTES) or b"").decode("utf-8", "replace").splitlines()
            told = [os.path.join(site, line.strip()) for line in lines if line.strip() and line[0] not in "#\t "]
            found += [one for one in told if "\0" not in one and os.path.isdir(one)]
    return list(dict.fromkeys(found))[: 2 * MOST_SITES]
