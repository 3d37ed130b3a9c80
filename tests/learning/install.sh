#!/usr/bin/env bash
# Install what drafts are trained with, for the CPU, into .engines/draft, beside vLLM's torch and transformers; print the folder.
# A second call ends at once. Calls tests/real/install-vllm.sh first, unless its environment stands: torch is not installed twice.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
home=${VIGIL_ENGINES:-$root/.engines}
venv=$root/.engines/draft
want=$(cat "${BASH_SOURCE[0]}" "$root"/packages/*/pyproject.toml "$root/tests/real/vllm.lock" | sha256sum)

if [[ -f $venv/.installed && $(<"$venv/.installed") == "$want" ]]; then
  echo "$venv"
  exit 0
fi
vllm=$home/vllm
[[ -f $vllm/.installed ]] || vllm=$("$root/tests/real/install-vllm.sh")

rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
"${PYTHON:-python3.11}" -m venv "$venv"
where='import sysconfig; print(sysconfig.get_path("purelib"))'
packages=$("$venv/bin/python" -c "$where")
"$vllm/bin/python" -c "$where" >"$packages/beside-vllm.pth"
"$venv/bin/pip" install --quiet --disable-pip-version-check -e "$root/packages/vigil" -e "$root/packages/vigil-draft" \
  pytest pytest-timeout >&2
"$venv/bin/python" -c 'import torch, transformers, vigil_draft, pytest' >&2
echo "$want" >"$venv/.installed"
echo "$venv"
