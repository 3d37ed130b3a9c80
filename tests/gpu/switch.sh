#!/usr/bin/env bash
# vigil-engine in a real SGLang 0.5.17 on a lent GPU machine: the widened pair of widen.sh under `vigil up --speculate off-above:N`.
# Does it suspend and resume, is it attested, what is accepted before and after, how often does a load that hovers at the threshold
# switch it, is it told on, off and auto? Run there from the repository's root after `widen.sh make`, with .gpu/env.sh carried and
# vigil-engine's wheel in /tmp/vsite. Leaves accounts and rows in $OUT.
#   bash tests/gpu/switch.sh [turn] [told] [hover] [pair]         # pair: what the small pair accepts of the same 200 prompts
set -u
ROOT=$PWD
W=${WORK:-/tmp/w/switch}; mkdir -p "$W"
WIDE=${WIDE:-/tmp/w/wide}
OUT=${OUT:-$W/out}; mkdir -p "$OUT"
N=${N:-16}
export XDG_STATE_HOME=$W/state
say() { echo "[${SECONDS} s] $*"; }
vigil() { PATH=/tmp/vsite/bin:$PATH PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src python3 -m vigil "$@"; }
( . .gpu/env.sh; env | grep -E '^(PYTHONPATH|SGLANG_|TVM_|HF_|TRANSFORMERS_|LIBRARY_PATH)' >"$W/server.env" )

account() { # account LABEL: what is in force now, in one line
    vigil spec switched --json >"$OUT/spec-$1.json" 2>&1
    python3 - "$OUT/spec-$1.json" "$1" <<'PY'
import json, sys
text = open(sys.argv[1]).read()
try:
    for one in json.loads(text).get("processes") or [json.loads(text)]:
        print(sys.argv[2], {name: one.get(name) for name in ("k", "mode", "steps", "switches", "switches_last_minute", "refused")},
              "acceptance", {name: each.get("length") for name, each in (one.get("acceptance") or {}).items()})
except (ValueError, AttributeError):
    print(sys.argv[2], text[:600])
PY
}
load() { # load LABEL CONCURRENCY SECONDS
    vigil bench switched --prompts "$WIDE/heldout.jsonl" --chat --natural-ends --output 256 --seed "$RANDOM" --concurrency "$2" --repeats 1 --seconds "$3s" --most "$(($3 + 8))s" \
        --json --out "$OUT/bench-$1" 2>/dev/null | python3 -c "
import json, sys
for row in json.load(sys.stdin)['rows']: print('$1', row['point']['value'], 'at once', round(row['output_per_s']), 'tokens/s, accepted', row['told'].get('accept_length'))"
    account "$1"
}
accepted() { # accepted NAME: of the same 200 prompts
    vigil bench "$1" --prompts "$WIDE/heldout.jsonl" --chat --natural-ends --output 256 --seed 5 --requests 200 --concurrency 16 --repeats 1 --json --out "$OUT/pair-$1" 2>/dev/null |
        python3 -c "import json, sys; row = json.load(sys.stdin)['rows'][0]; print('$1', 'accepted', row['told'].get('accept_length'), 'in', row['ended'], 'answers of', row['output_tokens'], 'tokens')"
}
SMALL=${SMALL:-/tmp/w/draft/SmolLM2-135M-Instruct}
SERVE="--attention-backend fa3 --sampling-backend pytorch --grammar-backend none --enable-metrics --max-total-tokens 200000 --max-running-requests 128 --cuda-graph-max-bs-decode 128 --disable-prefill-cuda-graph
    --host 127.0.0.1 --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
vigil up --speculate "off-above:$N" --name switched --timeout 4m --env-file "$W/server.env" -- python3 -m sglang.launch_server --model-path "$WIDE/target" \
    --speculative-draft-model-path "$WIDE/draft" --mem-fraction-static 0.6 --port 31061 $SERVE >"$OUT/up.txt" 2>&1
rc=$?
grep -v '^vigil: \[' "$OUT/up.txt" | head -30
say "up: rc=$rc"
for what in ${*:-turn told pair hover}; do
    case $what in
    turn) account begin; load before 8 8; load off 64 8; load after 8 8 ;;
    told) vigil spec switched off; load told-off 8 4; vigil spec switched on; load told-on 64 4; vigil spec switched auto; account auto ;;
    hover) # arrivals at random around the threshold
        vigil bench switched --prompts "$WIDE/heldout.jsonl" --chat --natural-ends --output 256 --rate "${RATE:-12}" --repeats 1 --seconds "${HOVER_S:-40}s" --json --out "$OUT/bench-hover" >/dev/null 2>&1
        account hover ;;
    pair)
        vigil spec switched on >/dev/null; accepted switched; vigil spec switched auto >/dev/null
        vigil up --name small --timeout 2m --no-check --env-file "$W/server.env" -- python3 -m sglang.launch_server --model-path "$SMALL" \
            --speculative-draft-model-path "$ROOT/packages/vigil-draft-smollm2/src/vigil_draft_smollm2/draft" --mem-fraction-static 0.5 --port 31062 $SERVE >"$OUT/up-small.txt" 2>&1
        accepted small; vigil stop small --grace 5s ;;
    esac
    say "$what is done"
done
LOG=$(ls "$XDG_STATE_HOME"/vigil/servers/switched/starts/*/server.log | tail -1)
echo "switches in the log: $(grep -c 'Switch adaptive runtime state' "$LOG")"
grep -E 'vigil-engine|Switch adaptive' "$LOG" | tail -12
tail -c 300000 "$LOG" >"$OUT/server.log"
cp "$(ls "$XDG_STATE_HOME"/vigil/servers/switched/starts/*/engine/*.json | tail -1)" "$OUT/account.json" 2>/dev/null
[ $rc = 0 ] || tail -20 "$LOG"
vigil stop switched --grace 20s
exit $rc
