#!/usr/bin/env bash
# The widened pair of docs/drafts.md on a lent GPU machine: SmolLM2-135M-Instruct and its draft, 7.8 billion parameters that answer as
# the small ones do. Do they answer alike, greedily, with speculation and without, and what does speculation cost and give at the
# price of an 8B? Run there from the repository's root (see README.md beside this):
#   bash tests/gpu/widen.sh make|same|compare|all
# `make` needs what `draft.sh target` needs, and prompts*.jsonl.xz in .gpu or $DATA. Records go to $OUT. `compare` is compare.sh: a call may last 600 s, the next one goes on.
set -u
ROOT=$PWD
DATA=/tmp/w/draft                 # where draft.sh leaves the target
W=${WORK:-/tmp/w/wide}; mkdir -p "$W"
OUT=${OUT:-$W/out}; mkdir -p "$OUT"
PROMPTS=${PROMPTS:-120}           # asked for sameness
say() { echo "[${SECONDS} s] $*"; }

SMALL=$DATA/SmolLM2-135M-Instruct; DRAFT=$ROOT/packages/vigil-draft-smollm2/src/vigil_draft_smollm2/draft
own() { PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src:$ROOT/packages/vigil-draft/src python3 "$@"; }
WIDE_TARGET="--times 4 --intermediate 16384 --layers 60"; WIDE_DRAFT="--times 4 --intermediate 16384"; NEW=${NEW:-256}
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1

make() {
    bash tests/gpu/draft.sh target || return 1
    [ -d "$W/draft" ] || own -m vigil_draft widen "$DRAFT" "$W/draft" $WIDE_DRAFT || return 1
    [ -d "$W/target" ] || own -m vigil_draft widen "$SMALL" "$W/target" $WIDE_TARGET || return 1
    say "widened: $(du -sh "$W/target" | cut -f1)"
    own tests/gpu/answers.py heldout --prompts $(ls "$DATA"/prompts*.jsonl* .gpu/prompts*.jsonl* 2>/dev/null) --model "$SMALL" --new "$NEW" --out "$W/heldout.jsonl"
}

PIDS=()
server() { # server PORT MODEL MEMORY MORE...
    local port=$1 model=$2 memory=$3; shift 3
    (
        . .gpu/env.sh
        exec setsid python3 -m sglang.launch_server --model-path "$model" --attention-backend fa3 --sampling-backend pytorch --grammar-backend none --enable-metrics \
            --mem-fraction-static "$memory" --max-total-tokens 60000 --max-running-requests 32 --cuda-graph-max-bs-decode 32 --disable-prefill-cuda-graph --host 127.0.0.1 --port "$port" "$@"
    ) >"$W/server-$port.log" 2>&1 &
    PIDS+=($!)
}
ready() { # ready PORT SECONDS
    local port=$1 ends=$((SECONDS + $2))
    until [ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/health")" = 200 ]; do
        [ $SECONDS -ge $ends ] && { say "the server on port $port is not ready"; tail -20 "$W/server-$port.log"; return 1; }
        sleep 1
    done
}
stop() { local pid; for pid in "${PIDS[@]}"; do kill -INT -- "-$pid" 2>/dev/null; done; sleep 3
         for pid in "${PIDS[@]}"; do kill -9 -- "-$pid" 2>/dev/null; done; PIDS=(); }
trap stop EXIT
SPECULATION="--speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"

same() { # the small one, the wide one without and with speculation: all three side by side
    local rc port small=0.2 wide=0.4
    server 31041 "$SMALL" $small
    ready 31041 120 || return 1
    server 31042 "$W/target" $wide
    ready 31042 180 || return 1
    server 31043 "$W/target" 0.5 $SPECULATION --speculative-draft-model-path "$W/draft"
    ready 31043 180 || return 1
    say "three servers are ready"
    python3 bench/same_answers.py off=http://127.0.0.1:31042 eagle3=http://127.0.0.1:31043 small=http://127.0.0.1:31041 --prompts "$W/heldout.jsonl" \
        --most "$PROMPTS" --new "$NEW" --at-once 16 --out "$OUT/same.json"; rc=$?
    curl -s http://127.0.0.1:31043/server_info | tr ',' '\n' | grep -E 'accept_len' | tee "$OUT/accept.txt"
    stop
    say "same: rc=$rc"
}
compare() { # real prompts, their natural ends: acceptance as it is, not of noise
    MODEL="$W/target" DRAFT="$W/draft" ARMS="off eagle3" NAME=wide WORK=$W/compare ASK="--prompts $W/heldout.jsonl --chat --natural-ends --output $NEW" bash tests/gpu/compare.sh
}
case ${1:-all} in
make) make ;;
same) same ;;
compare) compare ;;
all) make && same && compare ;;
*) echo "widen.sh make|same|compare|all"; exit 2 ;;
esac
