"""An environment beside an installed engine, with a copy of one package to edit: the engine itself stays as it is.

What is not copied comes from the engine's environment by a `.pth` file. The copy has its `RECORD`, so that an edit shows.
"""

import os
import shutil
from pathlib import Path


def overlay(home: Path, package: str, into: Path) -> Path:
    """Make an environment at `into` whose `package` is a copy of the one in `home`; return the copy."""
    (site,) = home.glob("lib/python3*/site-packages")
    target = into / site.relative_to(home)
    target.mkdir(parents=True)
    (into / "bin").mkdir()
    for name in ("python", "python3", site.parent.name):
        (into / "bin" / name).symlink_to(os.path.realpath(home / "bin" / "python"))
    shutil.copyfile(home / "pyvenv.cfg", into / "pyvenv.cfg")
    shutil.copytree(site / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    for info in site.glob(f"{package}-*.dist-info"):
        shutil.copytree(info, target / info.name)
    others = [site, *(Path(line) for pth in site.glob("beside-*.pth") for line in pth.read_text().split())]
    (target / "others.pth").write_text("".join(f"{path}\n" for path in others))
    return target / package
