#!/usr/bin/env bash
# Install the load generators that bench/agreement.py and bench/client_ceiling.py measure beside vigil into .peers/generators,
# from PyPI: aiperf in an environment of its own, and what the benchmarks of vLLM and SGLang need beyond their engines (`make engines`).
# Needs Python 3.11; 1.5 GB of disk. A second call ends at once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${VIGIL_PEERS:-$(dirname "$(dirname "$here")")/.peers}/generators
python=${PYTHON:-python3.11}
want=$(cat "${BASH_SOURCE[0]}" "$here"/generators/*.lock | sha256sum)

mkdir -p "$home"
exec 9>"$home/.lock"
flock 9
if [[ -f $home/.installed && $(<"$home/.installed") == "$want" ]]; then
  exit 0
fi

rm -rf "$home/.installed" "$home/aiperf" "$home/engine-extra"
"$python" -m venv "$home/aiperf"
pip=("$home/aiperf/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps)
"${pip[@]}" -r "$here/generators/aiperf.lock" >&2
"${pip[@]}" --target "$home/engine-extra" -r "$here/generators/engine-extra.lock" >&2
echo "$want" >"$home/.installed"
