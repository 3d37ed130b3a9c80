#!/usr/bin/env bash
# The real comparison of docs/bench.md on a lent GPU machine: SGLang 0.5.17 off, with n-gram drafts, and with EAGLE-3, whose random
# draft has the width of an 8B. Run there from the repository's root, with the folder .gpu carried; see README.md beside this.
# A call may last 600 s: it stops in time, and the next call on the same machine goes on after the last finished row (on a bare
# one too, where .gpu holds the compare.tar.gz that this left in $OUT). Exit code 0: all is measured; 130: call it again.
set -u
ROOT=$PWD
W=${WORK:-/tmp/w/compare}; mkdir -p "$W"
RESULTS=$W/${NAME:-h200}
OUT=${OUT:-$W}
LIMIT_S=${LIMIT_S:-555}     # of this call, all together
ROUNDS=${ROUNDS:-3}
SECONDS_EACH=${SECONDS_EACH:-4s}
RANGE=${RANGE:-0.5}           # lengths within 50 % of INPUT and OUTPUT: of one length, requests fall in step and out of it
ASK=${ASK:---input ${INPUT:-128} --output ${OUTPUT:-128} --range-ratio $RANGE}
MODEL=${MODEL:-/tmp/big --load-format dummy}    # widen.sh gives a model that answers, and a draft of it
DRAFT=${DRAFT:-/tmp/draft8}
LOADS=${LOADS:-1,8,32,64,128,256}
ARMS_NOW=${ARMS:-off ngram eagle3}
export XDG_STATE_HOME=$W/state
left() { echo $((LIMIT_S - SECONDS)); }
say() { echo "[${SECONDS} s] $*"; }

[ -f .gpu/compare.tar.gz ] && [ ! -e "$RESULTS" ] && tar xzf .gpu/compare.tar.gz -C "$W" && say "goes on with .gpu/compare.tar.gz"

if [ "${REHEARSE:-}" = fake ] || [ "${REHEARSE:-}" = 1 ]; then # the same script over the streaming fake, without a GPU
    python3() { "$ROOT/.venv/bin/python" "$@"; }
    vigil() { "$ROOT/.venv/bin/python" -m vigil "$@"; }
    vigil_for() { local limit=$1; shift; timeout --preserve-status -s INT -k 60 "$limit" "$ROOT/.venv/bin/python" -m vigil "$@"; }
    nvidia-smi() { echo no GPU; }
    mkdir -p "$W/bin"; : >"$W/server.env"
    printf '#!/bin/sh\nshift\ncase "$*" in\n*EAGLE3*) pace="--step 0.008 --step-each 0.0004" ;;\n*NGRAM*) pace="--step 0.007 --step-each 0.0002 --tokens-a-step 2" ;;\n*) pace="--step 0.006 --step-each 0.0001" ;;\nesac\nport=; while [ $# -gt 0 ]; do [ "$1" = --port ] && port=$2; shift; done\nexec "%s" "%s" --port "$port" $pace\n' \
        "$ROOT/.venv/bin/python" "$ROOT/tests/fakes/stream.py" >"$W/bin/sglang"; chmod +x "$W/bin/sglang"
    server() { local port=$1; shift; echo "$W/bin/sglang serve --port $port $*"; }
    CHECK=--no-check
elif [ "${REHEARSE:-}" = cpu ]; then # over the real SGLang of tests/real/install-sglang.sh, on the CPU; EAGLE-3 is left out: it needs a draft
    python3() { "$ROOT/.venv/bin/python" "$@"; }
    vigil() { "$ROOT/.venv/bin/python" -m vigil "$@"; }
    vigil_for() { local limit=$1; shift; timeout --preserve-status -s INT -k 60 "$limit" "$ROOT/.venv/bin/python" -m vigil "$@"; }
    nvidia-smi() { echo no GPU; }
    ENGINES=${VIGIL_ENGINES:-$ROOT/.engines}
    echo HF_HUB_OFFLINE=1 >"$W/server.env"
    server() {
        local port=$1; shift
        echo "$ENGINES/sglang/bin/python -m sglang.launch_server --model-path $ENGINES/models/SmolLM2-135M-Instruct --device cpu" \
            "--attention-backend torch_native --disable-overlap-schedule --mem-fraction-static 0.3 --enable-metrics" \
            "--host 127.0.0.1 --port $port $*"
    }
    CHECK=; ARMS_NOW=${ARMS:-off ngram}
else
    if [ ! -f /tmp/ready.stamp ]; then
        . .gpu/unpack.sh
        python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/vsite .gpu/whl/*.whl 2>&1 | tail -1
        touch /tmp/ready.stamp
        say unpacked
    fi
    . .gpu/env.sh
    if [ ! -f /tmp/wide.stamp ]; then
        [ "$DRAFT" = /tmp/draft8 ] && ( python3 .gpu/mkdraft_wide.py >"$W/draft.log" 2>&1; tail -1 "$W/draft.log" ) &
        # The n-gram tables are C++ that is compiled at the first start: here, where it costs no arm its patience.
        [[ " $ARMS_NOW " == *" ngram "* ]] && ( python3 -c 'from sglang.kernels.ops.speculative.ngram_corpus import get_ngram_corpus_cls as get; get(); print("n-gram tables built")' >"$W/ngram.log" 2>&1; tail -1 "$W/ngram.log" ) &
        [ -f /tmp/compiled.stamp ] || { python3 -m compileall -q -j 12 /tmp/site >/dev/null 2>&1; touch /tmp/compiled.stamp; }
        wait; touch /tmp/wide.stamp
        say "compiled, draft made"
    fi
    env | grep -E '^(PYTHONPATH|SGLANG_|TVM_|HF_|TRANSFORMERS_|LIBRARY_PATH)' >"$W/server.env"
    unset PYTHONPATH
    vigil() { PATH=/tmp/vsite/bin:$PATH PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src python3 -m vigil "$@"; }
    vigil_for() { local limit=$1; shift; PATH=/tmp/vsite/bin:$PATH PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src timeout --preserve-status -s INT -k 30 "$limit" python3 -m vigil "$@"; }
    server() { # server PORT MORE...; --max-running-requests is left away: compare must set it alike itself
        local port=$1; shift
        echo python3 -m sglang.launch_server --model-path $MODEL --attention-backend fa3 --sampling-backend pytorch \
            --grammar-backend none --enable-metrics --mem-fraction-static 0.6 --max-total-tokens 300000 --cuda-graph-max-bs-decode 256 \
            --disable-prefill-cuda-graph --host 127.0.0.1 --port "$port" "$@"
    }
    CHECK=
fi

arm() {
    case $1 in
    off) server 31001 ;;
    ngram) server 31002 --speculative-algorithm NGRAM ;;
    eagle3) server 31003 --speculative-algorithm EAGLE3 --speculative-draft-model-path $DRAFT --speculative-num-steps 3 \
        --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 ;;
    esac
}
compare() { # compare FOLDER SECONDS OPTIONS... ; temperature 0: above it SGLang's verify step needs flashinfer, which is a stub there
    local folder=$1 limit_s=$2 name; shift 2
    local arms=()
    for name in $ARMS_NOW; do arms+=(--arm "$name=$(arm "$name")"); done
    vigil_for "$limit_s" compare "${arms[@]}" --env-file "$W/server.env" $CHECK --timeout 4m $ASK \
        --seconds "$SECONDS_EACH" --most 30s --out "$folder" "$@" >"$folder.txt" 2>>"$folder.err"
}
nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,power.limit --format=csv,noheader
if [ -z "${REHEARSE:-}" ]; then # where the look ahead is wrong about an arm, it is said, and the arms go on without it
    rm -f "$W/refused"
    for name in $ARMS_NOW; do
        ( vigil check --env-file "$W/server.env" -- $(arm "$name") >"$W/check-$name.txt" 2>&1 || echo "$name" >>"$W/refused" ) &
    done
    wait
    [ -f "$W/refused" ] && { CHECK=--no-check; for name in $(cat "$W/refused"); do say "check refuses $name:"; head -5 "$W/check-$name.txt"; done; }
fi

say "comparison of $ARMS_NOW: ${ROUNDS} rounds of $LOADS"
compare "$RESULTS" $(($(left) - 25)) --concurrency "$LOADS" --repeats "$ROUNDS" ${MORE:-}
rc=$?
say "compare: rc=$rc, $(wc -l <"$RESULTS/rows.jsonl") rows"
vigil report "$RESULTS" >"$RESULTS.txt" 2>&1; cat "$RESULTS.txt"
vigil report --json "$RESULTS" >"$RESULTS.json" 2>/dev/null
grep -v '^\[' "$RESULTS.err" | tail -15
mkdir -p "$W/logs"
for start in "$XDG_STATE_HOME"/vigil/servers/compare-*/starts/*; do
    name=$(basename "$(dirname "$(dirname "$start")")")-$(basename "$start")
    tail -c 150000 "$start/server.log" >"$W/logs/$name.log" 2>/dev/null
    for file in verdict exit; do cp "$start/$file.json" "$W/logs/$name.$file.json" 2>/dev/null; done
done
echo "left running: $(ps -eo pid,args | grep -c '[s]glang.launch_server')"
nvidia-smi --query-gpu=memory.used --format=csv,noheader
tar czf "$OUT/compare.tar.gz.new" -C "$W" --exclude state --exclude "compare.tar.gz*" --exclude bin --warning=no-file-changed .; mv "$OUT/compare.tar.gz.new" "$OUT/compare.tar.gz"
say "kept: $OUT/compare.tar.gz"
exit $rc
