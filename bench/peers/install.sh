#!/usr/bin/env bash
# Install the tools that `make bench` measures beside vigil into .peers, each in its own environment, from PyPI and npm.
# Needs Python 3.11, Node.js 20 with npm, curl; 200 MB of disk. A second call ends at once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${VIGIL_PEERS:-$(dirname "$(dirname "$here")")/.peers}
want=$(cat "${BASH_SOURCE[0]}" "$here"/*.lock "$here/package.json" "$here/package-lock.json" | sha256sum)

mkdir -p "$home"
exec 9>"$home/.lock"
flock 9
if [[ -f $home/.installed && $(<"$home/.installed") == "$want" ]]; then
  exit 0
fi

rm -f "$home/.installed"
for peer in inferlint polyserve supervisor drain3 clients; do
  rm -rf "${home:?}/$peer"
  "${PYTHON:-python3.11}" -m venv "$home/$peer"
  "$home/$peer/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/$peer.lock" >&2
done

rm -rf "$home/node"
mkdir "$home/node"
cp "$here/package.json" "$here/package-lock.json" "$home/node/"
npm --prefix "$home/node" ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
echo "$want" >"$home/.installed"
