"""A real environment with a tiny engine in it, installed by pip from a wheel that is made here."""

import base64
import hashlib
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

SERVER = "import sys\n\n\ndef main() -> None:\n    print('tinyengine', sys.argv)\n"
FILES = {
    "tinyengine/__init__.py": "",
    "tinyengine/__main__.py": "from tinyengine.server import main\nmain()\n",
    "tinyengine/server.py": SERVER,
    "tinyengine/kernels.py": "FAST = True\n" * 50,
}


def make_wheel(folder: Path, version: str = "1.0") -> Path:
    """Write the wheel of tinyengine."""
    info = f"tinyengine-{version}.dist-info"
    files = {
        **FILES,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tinyengine\nVersion: {version}\n\nA server: Version: 9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntinyengine = tinyengine.server:main\n",
    }
    record = "".join(f"{name},sha256={hash_of(text)},{len(text)}\n" for name, text in files.items())
    path = folder / f"tinyengine-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(name, text)
    return path


def hash_of(text: str) -> str:
    """Return a text's hash as RECORD has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make_environment(folder: Path) -> Path:
    """Make an environment with tinyengine in it; return its folder."""
    wheel = make_wheel(folder)
    home = folder / "env"
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    return home


def site_of(home: Path) -> Path:
    """Return where an environment's packages lie."""
    return next((home / "lib").glob("python3*")) / "site-packages"
