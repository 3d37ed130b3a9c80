#!/bin/sh
# The quickest death there is: a few lines of SGLang's usage error, then exit 2. Starts in a millisecond, for tight loops.
# Usage: flash.sh [--mark FILE] [FLAG]
mark=
[ "${1:-}" = --mark ] && { mark=$2; shift 2; }
printf 'usage: sglang serve [-h] --model-path MODEL_PATH\nsglang serve: error: unrecognized arguments: %s\n' "${1:---no-such-flag}"
[ -z "$mark" ] || date '+FAULT %s.%N usage' >>"$mark"
exit 2
