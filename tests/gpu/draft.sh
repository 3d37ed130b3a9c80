#!/usr/bin/env bash
# A draft for SmolLM2-135M-Instruct on a lent GPU machine: answers by the target in SGLang 0.5.17, training, held-out estimate, and the live
# acceptance length beside it. Run there from the repository's root with the folder .gpu carried (see README.md beside this), in steps:
#   bash tests/gpu/draft.sh responses|train|eval|live|keep|all
# Each step leaves what it made in $W on that machine, and its records in $OUT. REHEARSE=1 runs the same on the CPU with a toy.
# Needs in .gpu beside what compare.sh needs: prompts*.jsonl[.xz|.gz], and the target's GGUF as *.gguf or in pieces *.gguf.part*
# (pieces may come over several calls: `draft.sh pieces` moves them to $W), or a folder $W/data of answers (heldout, train).
set -u
ROOT=$PWD
W=${WORK:-/tmp/w/draft}; mkdir -p "$W"
OUT=${OUT:-$W/out}; mkdir -p "$OUT"
MINUTES=${MINUTES:-8.5}           # of training; a call may last ten
ANSWER_S=${ANSWER_S:-240}         # of answering
SERVERS=${SERVERS:-3}             # on the one GPU: a server of a small model is bound by its own Python
K=${K:-3}
VOCAB=${VOCAB:-5120}              # words of the draft: it then has 16.2 million bytes in bf16, and less in its tar
TRAIN=${TRAIN:---lr 1e-3 --length 2048 --tokens-per-step 32768 --epochs 1000}
say() { echo "[${SECONDS} s] $*"; }

if [ "${REHEARSE:-}" = 1 ]; then
    PY=$ROOT/.engines/draft/bin/python
    TARGET=$W/toy/target
    SERVERS=1; VOCAB=128; MINUTES=${REHEARSE_MINUTES:-0.5}; TRAIN="--lr 2e-3 --length 128 --tokens-per-step 1024 --epochs 1000"
    ANSWERS="--toy 300 --new 20 --length 128 --at-once 16"; LIVE="--new 20 --at-once 16"; LIVE_PROMPTS=8
    own() { PYTHONPATH=$ROOT/tests/learning "$PY" "$@"; }
    server() { local port=$1; shift; echo "$PY $ROOT/tests/learning/serve_toy.py --port $port --model-path $TARGET $*"; }
    setup() { [ -d "$TARGET" ] || own tests/learning/toy.py "$W/toy" 2>/dev/null; }
else
    PY=python3
    TARGET=$W/SmolLM2-135M-Instruct
    ANSWERS="--prompts $(ls "$W"/prompts*.jsonl* .gpu/prompts*.jsonl* 2>/dev/null | tr '\n' ' ') --new ${NEW:-512} --length 2048 --at-once 384"
    LIVE="--new ${NEW:-512} --at-once ${LIVE_AT_ONCE:-32}"
    own() { PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src:$ROOT/packages/vigil-draft/src python3 "$@"; }
    server() { # a server of the target, without prefill graphs, with little of the GPU's memory
        local port=$1; shift
        echo "env $SERVER_ENV python3 -m sglang.launch_server --model-path $TARGET --attention-backend fa3 --sampling-backend pytorch" \
            "--grammar-backend none --enable-metrics --mem-fraction-static 0.2 --max-total-tokens 400000 --max-running-requests 512" \
            "--cuda-graph-max-bs-decode 512 --disable-prefill-cuda-graph --context-length 4096 --host 127.0.0.1 --port $port $*"
    }
    setup() {
        if [ ! -f /tmp/ready.stamp ]; then
            . .gpu/unpack.sh
            python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/vsite .gpu/whl/*.whl 2>&1 | tail -1
            touch /tmp/ready.stamp
            say unpacked
        fi
        [ -f /tmp/compiled.stamp ] || { python3 -m compileall -q -j 15 /tmp/site >/dev/null 2>&1; touch /tmp/compiled.stamp; say compiled; }
        SERVER_ENV=$(. .gpu/env.sh; env | grep -E '^(PYTHONPATH|SGLANG_|TVM_|HF_|TRANSFORMERS_|LIBRARY_PATH)' | tr '\n' ' ')
        export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
        if [ ! -f "$TARGET/.complete" ]; then
            mkdir -p "$W/gguf"
            local gguf=$W/gguf/SmolLM2-135M-Instruct.Q4_1.gguf
            cp .gpu/*.gguf "$gguf" 2>/dev/null || cat $(ls "$W"/*.gguf.part* .gpu/*.gguf.part* 2>/dev/null) >"$gguf"
            env $SERVER_ENV python3 -c "import sys; sys.path.insert(0, 'tests/real'); from pathlib import Path; from make_model import convert
convert(Path('$gguf'), Path('$TARGET'))" >"$W/convert.log" 2>&1 && touch "$TARGET/.complete"
            [ -f "$TARGET/.complete" ] || { say "no target:"; tail -5 "$W/convert.log"; exit 1; }
            say "target made: $(du -sh "$TARGET" | cut -f1)"
        fi
    }
fi

PIDS=()
start() { # start NAME PORT MORE...: a server, and wait until it answers; SGLang's /health generates a token
    local name=$1 port=$2; shift 2
    setsid $(server "$port" "$@") >"$W/server-$name.log" 2>&1 &
    PIDS+=($!)
}
ready() { # ready PORT SECONDS
    local port=$1 ends=$((SECONDS + $2))
    until [ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/health")" = 200 ]; do
        [ $SECONDS -ge $ends ] && { say "the server on port $port is not ready"; tail -20 "$W"/server-*.log; return 1; }
        sleep 1
    done
}
stop() { local pid; for pid in "${PIDS[@]}"; do kill -INT -- "-$pid" 2>/dev/null; done; sleep 3
         for pid in "${PIDS[@]}"; do kill -9 -- "-$pid" 2>/dev/null; done; PIDS=(); }
trap stop EXIT

responses() {
    setup
    local n urls=() rc
    for n in $(seq "$SERVERS"); do start "plain$n" $((31020 + n)); urls+=("http://127.0.0.1:$((31020 + n))"); done
    for n in $(seq "$SERVERS"); do ready $((31020 + n)) 180 || return 1; done
    say "$SERVERS servers are ready"
    own tests/gpu/answers.py write $ANSWERS --model "$TARGET" --url "${urls[@]}" --out "$W/data" --seconds "$ANSWER_S"; rc=$?
    stop
    say "answers: rc=$rc"
    return $rc
}
train() {
    setup
    nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,power.limit --format=csv,noheader 2>/dev/null
    own -m vigil_draft train --target "$TARGET" --data "$W/data/train" --out "$W/draft" --draft-vocab "$VOCAB" --minutes "$MINUTES" \
        --save-minutes 2 $TRAIN ${MORE:-}
    local rc=$?
    cp "$W/draft/record.jsonl" "$OUT/"
    say "train: rc=$rc"
    return $rc
}
evaluate() {
    setup
    own -m vigil_draft eval "$W/draft" --target "$TARGET" --data "$W/data/heldout" --json >"$OUT/eval.json" || return 1
    own -c "import json; from vigil_draft.evaluate.report import told; print(told(json.load(open('$OUT/eval.json'))))"
    say evaluated
}
live() {
    setup
    local rc
    start draft 31031 --speculative-algorithm EAGLE3 --speculative-draft-model-path "$W/draft" --speculative-num-steps "$K" \
        --speculative-eagle-topk 1 --speculative-num-draft-tokens $((K + 1)) --max-running-requests 64 --cuda-graph-max-bs-decode 64
    ready 31031 180 || return 1
    say "the server with the draft is ready"
    own tests/gpu/answers.py live --data "$W/data/heldout" --url http://127.0.0.1:31031 --out "$OUT/live.json" $LIVE --most "${LIVE_PROMPTS:-400}"; rc=$?
    curl -s http://127.0.0.1:31031/metrics | grep -E '^sglang:(spec_|gen_throughput)' >"$OUT/live-metrics.txt"
    stop
    tail -c 100000 "$W/server-draft.log" >"$OUT/server-draft.log"
    own - "$OUT/eval.json" "$OUT/live.json" "$K" <<'PY'
import json, sys
promised = json.load(open(sys.argv[1]))["acceptance_length"][sys.argv[3]]["served"]["with_bonus"]
seen = json.load(open(sys.argv[2]))["acceptance_length"]
print(f"acceptance length at k {sys.argv[3]}: promised {promised:.3f}, live {seen:.3f}: {seen / promised - 1:+.1%}")
PY
    say "live: rc=$rc"
    return $rc
}
keep() { # what should survive the machine: at most 8 files of 16 MB
    tar czf "$OUT/draft.tar.gz" -C "$W/draft" config.json model.safetensors vigil.json README.md
    tar cf - -C "$W" data/heldout | xz -T0 -2 >"$OUT/heldout.tar.xz"
    tar cf - -C "$W" data/train | xz -T0 -6 | split -b 15500000 - "$OUT/train.tar.xz."
    ls -la "$OUT"
}
case ${1:-all} in
pieces) cp .gpu/*.gguf.part* .gpu/prompts*.jsonl* "$W/" 2>/dev/null; ls -la "$W" ;;
target) setup ;;
responses) responses ;;
train) train ;;
eval) evaluate ;;
live) live ;;
keep) keep ;;
all) responses && train && evaluate && live; rc=$?; keep; exit $rc ;;
*) echo "draft.sh pieces|target|responses|train|eval|live|keep|all"; exit 2 ;;
esac
