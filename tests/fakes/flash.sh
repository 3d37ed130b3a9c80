#!/bin/sh
# The quickest death there is: SGLang's usage error, then exit 2, within two milliseconds, for tight loops.
# Usage: flash.sh [ANY ARGUMENTS] [--mark FILE]     (flash/sglang is the same under the engine's name)
mark=
while [ $# -gt 0 ]; do
    [ "$1" != --mark ] || mark=${2:-}
    shift
done
printf 'usage: sglang serve [-h] --model-path MODEL_PATH\nsglang serve: error: unrecognized arguments: --no-such-flag\n'
[ -z "$mark" ] || date '+FAULT %s.%N usage' >>"$mark"
exit 2
