#!/usr/bin/env bash
# The same draft of SmolLM2-135M by `vigil draft train` and by speculators 0.9's own command on one lent GPU, for the same seconds each: tokens a second,
# peak memory, held-out acceptance length (bench/draft_trainers.py). On the GPU machine, from the repository's root (see README.md beside this):
#   bash tests/gpu/rival.sh pieces          # in each call that brings parts: what .gpu* hold is copied to $W and to where draft.sh looks for it
#   bash tests/gpu/rival.sh setup           # unpack, make the target, look whether speculators can be imported
#   bash tests/gpu/rival.sh all             # setup, then the comparison; again: arms that are finished are not trained again
# A call may last 600 s: it ends by itself before, and the next one on the same machine goes on after the last finished arm.
# ARMS, SECONDS_EACH, TOKENS, MORE change it. REHEARSE=1 TRAINER_PYTHON=PYTHON PY=PYTHON bash tests/gpu/rival.sh all: on the CPU with a toy.
set -u
ROOT=$PWD
W=${WORK:-/tmp/w/rival}; PARTS=$W/parts; mkdir -p "$PARTS"
OUT=${OUT:-$W/out}; mkdir -p "$OUT"
D=${DRAFT_WORK:-/tmp/w/draft}     # the target's place, as in draft.sh
PY=${PY:-python3}
S=${SITE:-/tmp/specsite}
SITE=$S/site-packages             # speculators and what the machine lacks; dill takes modules elsewhere than in a folder of this name for the user's own
BEHIND=$S/more/site-packages      # what the machine should have itself, behind it
VSITE=${VSITE:-/tmp/vsite}        # vigil's own requirements
ARMS=${ARMS:-speculators own}
SECONDS_EACH=${SECONDS_EACH:-60}
say() { echo "[${SECONDS} s] $*"; }
unset PYTHONDONTWRITEBYTECODE     # twelve readers import all of it
export PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
own() { PYTHONPATH=$VSITE:$ROOT/packages/vigil/src:$ROOT/packages/vigil-draft/src "$PY" "$@"; }
untar() { mkdir -p "$2"; tar xJf "$1" -C "$2" 2>/dev/null || "$PY" -c "import tarfile; tarfile.open('$1').extractall('$2')"; }

pieces() {
    mkdir -p "$D"
    cp .gpu*/*.gguf.part* "$D/" 2>/dev/null
    cp -r .gpu*/spec*.tar.xz .gpu*/train.tar.xz* .gpu*/heldout.tar.xz "$PARTS/" 2>/dev/null
    [ -d .gpu4/whl ] && cp -r .gpu4/whl "$PARTS/"
    ls "$D" "$PARTS"
}
trainer() { # trainer MORE: the Python that speculators runs in, MORE in its path; does it find all that training imports?
    printf '#!/bin/sh\nexec env PYTHONPATH=%s %s "$@"\n' "$SITE$1" "$PY" >"$W/trainer-python"; chmod +x "$W/trainer-python"
    "$W/trainer-python" -P -c "import datasets, pyarrow, torch, transformers, speculators.train.cli
from importlib.metadata import version
print('speculators', version('speculators'), 'torch', torch.__version__, 'transformers', transformers.__version__, 'datasets', datasets.__version__, 'pyarrow', pyarrow.__version__, pyarrow.__file__)" 2>"$W/import.log"
}
setup() {
    pieces >/dev/null
    if [ -f "$PARTS/specsite.tar.xz" ]; then
        if [ ! -f "$SITE/.unpacked" ]; then
            untar "$PARTS/specsite.tar.xz" "$SITE"
            [ -f "$PARTS/specmore.tar.xz" ] && untar "$PARTS/specmore.tar.xz" "$BEHIND"
            [ -d "$VSITE" ] || "$PY" -m pip install -q --no-index --no-deps --no-compile --target "$VSITE" "$PARTS"/whl/*.whl 2>&1 | tail -1
            printf 'import sys\nsys.path.append("%s")\n' "$BEHIND" >"$SITE/sitecustomize.py"
            "$PY" -m compileall -q -j 8 "$SITE" >/dev/null 2>&1
            touch "$SITE/.unpacked"
        fi
        trainer "" || trainer ":$BEHIND" || { say "speculators cannot be imported:"; tail -5 "$W/import.log"; exit 1; }
        TRAINER_PYTHON=$W/trainer-python
    fi
    # its readers hand over 48 batches of 40 MB in shared memory
    [ "$(df -m --output=avail /dev/shm 2>/dev/null | tail -1)" -ge 4000 ] 2>/dev/null || mount -o remount,size=16G /dev/shm 2>/dev/null
    say "unpacked; $(df -h --output=avail /dev/shm 2>/dev/null | tail -1) of shared memory"
    if [ "${REHEARSE:-}" = 1 ]; then
        TARGET=$W/toy/target; DATA=$W/toy/data; HELD=$W/toy/held-out
        export OMP_NUM_THREADS=1
        [ -d "$TARGET" ] || (export PYTHONPATH=$VSITE:$ROOT/packages/vigil/src:$ROOT/packages/vigil-draft/src; "$PY" tests/learning/toy.py "$W/toy" 2>/dev/null)
        SHAPE="--draft-vocab 128 --length 64 --tokens-per-step 512 --ttt 3 --lr 2e-3"
        return
    fi
    TARGET=$D/SmolLM2-135M-Instruct; DATA=$W/data/train; HELD=$W/data/heldout; SHAPE=""
    if [ ! -f "$TARGET/.complete" ]; then
        mkdir -p "$D/gguf"
        cat $(ls "$D"/*.gguf.part* | sort) >"$D/gguf/SmolLM2-135M-Instruct.Q4_1.gguf"
        PYTHONPATH=$SITE "$PY" -c "import sys; sys.path.insert(0, 'tests/real'); from pathlib import Path; from make_model import convert
convert(Path('$D/gguf/SmolLM2-135M-Instruct.Q4_1.gguf'), Path('$TARGET'))" >"$W/convert.log" 2>&1 && touch "$TARGET/.complete"
        [ -f "$TARGET/.complete" ] || { say "no target:"; tail -5 "$W/convert.log"; exit 1; }
    fi
    [ -d "$HELD" ] || { cat "$PARTS"/train.tar.xz* >"$W/train.tar.xz"; untar "$W/train.tar.xz" "$W"; untar "$PARTS/heldout.tar.xz" "$W"; }
    say "target: $(du -sh "$TARGET" | cut -f1), data: $(du -sh "$DATA" | cut -f1)"
}
compare() {
    nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,power.limit --format=csv,noheader 2>/dev/null
    timeout "$((${LIMIT_S:-585} - SECONDS))" env PYTHONPATH="$VSITE:$ROOT/packages/vigil/src:$ROOT/packages/vigil-draft/src" "$PY" bench/draft_trainers.py --target "$TARGET" \
        --train "$DATA" --heldout "$HELD" --work "$W/run" --trainer-python "$TRAINER_PYTHON" --arms $ARMS --seconds "$SECONDS_EACH" \
        --tokens "${TOKENS:-1500000}" $SHAPE ${MORE:-} 2>"$W/compare.log"
    local rc=$?
    grep -v -E 'Loading weights|^$' "$W/compare.log" | tail -60
    say "compare: rc=$rc"
    cp "$W/run/draft-trainers.json" "$OUT/" 2>/dev/null
    tail -c 200000 "$W/compare.log" >"$OUT/compare.log"
    local arm
    for arm in $ARMS; do [ -f "$W/run/$arm/training/speculators.log" ] && tail -c 300000 "$W/run/$arm/training/speculators.log" >"$OUT/$arm.log"; done
    [ $rc = 0 ] || for arm in $ARMS; do tail -n 15 "$OUT/$arm.log" 2>/dev/null; done
    return $rc
}
case ${1:-all} in
pieces) pieces ;;
setup) setup ;;
all) setup && compare ;;
*) echo "rival.sh pieces|setup|all"; exit 2 ;;
esac
