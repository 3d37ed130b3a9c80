"""Environments of an interpreter with an engine in it, as far as can be told from folders: nothing in them runs."""

import base64
import hashlib
import sys
from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def make_home(folder: Path, engine: str, version: str, torch: str = "", files: dict[str, str] | None = None) -> Path:
    """Make an environment; return its interpreter. `torch`: its CUDA, where it has one."""
    site = folder / "lib" / f"python{VERSION}" / "site-packages"
    info = site / f"{engine}-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion_info = {VERSION}.7\n")
    (folder / "bin" / "python").symlink_to(sys.executable)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {engine}\nVersion: {version}\n\n")
    rows = []
    for name, text in (files or {}).items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text)}\n")
    (info / "RECORD").write_text("".join(rows))
    if torch:
        (site / "torch").mkdir()
        told = f"__version__ = '2.9.1+cu{torch.replace('.', '')}'\ndebug = False\ncuda: Optional[str] = '{torch}'\nhip = None\n"
        (site / "torch" / "version.py").write_text("from typing import Optional\n\n" + told)
    return folder / "bin" / "python"


def site_of(python: Path) -> Path:
    """Return where an environment's packages lie."""
    return python.parent.parent / "lib" / f"python{VERSION}" / "site-packages"
