#!/bin/sh
# Make sure that the system programs of the tests are there: sshd (a real one, started by tests/sshd.py on loopback) and ssh, mount and
# unshare (full disks, hidden devices), pgrep, and a C compiler (stand-ins for a driver's library and for a clock that jumps).
# Does nothing where they are installed; else needs root and apt-get, or says what is missing and exits 1.
set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin
missing=
need() { # need PROGRAM PACKAGE...
    program=$1
    shift
    command -v "$program" >/dev/null 2>&1 || missing="$missing $*"
}
need ssh openssh-client
need ssh-keygen openssh-client
need sshd openssh-server
need mount mount
need unshare util-linux
need pgrep procps
need cc gcc libc6-dev
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "install-system.sh: please install:$missing" >&2
    exit 1
fi
# The package would start a daemon on port 22 where there is an init; only the program is wanted.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    made=$policy
fi
trap '[ -z "$made" ] || rm -f "$made"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing >&2 || { apt-get update -q >&2 && apt-get install -y -q --no-install-recommends $missing >&2; }
