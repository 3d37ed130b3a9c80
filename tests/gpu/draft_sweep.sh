#!/usr/bin/env bash
# Several short trainings of a draft side by side on one GPU (each is bound by its launches), to choose what the long one is given.
# After `draft.sh responses` on the same machine. One variant a line: NAME WORDS MLP LEARNING-RATE; MINUTES of training each.
set -u
W=${WORK:-/tmp/w/draft}
OUT=${OUT:-$W/out}; mkdir -p "$OUT"
export PYTHONPATH=/tmp/vsite:$PWD/packages/vigil/src:$PWD/packages/vigil-draft/src HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
VARIANTS=${VARIANTS:-"wide-mlp 4864 1536 1e-3
many-words 7168 768 1e-3
slower 7168 768 3e-4
faster 7168 768 3e-3
all-words 32000 1536 1e-3"}
one() {
    python3 -m vigil_draft train --target "$W/SmolLM2-135M-Instruct" --data "$W/data/train" --out "$W/sweep-$1" --draft-vocab "$2" --intermediate "$3" \
        --lr "$4" --minutes "${MINUTES:-1.5}" --length 2048 --tokens-per-step 32768 --epochs 1000 --keep-gib 14 --save-minutes 60 ${MORE:-} >"$W/sweep-$1.log" 2>&1
    cp "$W/sweep-$1/record.jsonl" "$OUT/sweep-$1.jsonl" 2>/dev/null
}
while read -r name words mlp rate; do one "$name" "$words" "$mlp" "$rate" & done <<<"$VARIANTS"
wait
while read -r name words mlp rate; do
    echo "$name: $words words, MLP $mlp, learning rate $rate"; grep -v '^step' "$W/sweep-$name.log" | grep -v Loading | tail -3; grep '^step' "$W/sweep-$name.log" | tail -1
done <<<"$VARIANTS"
nvidia-smi --query-gpu=memory.used,utilization.gpu --format=csv,noheader
