#!/usr/bin/env bash
# A real SGLang 0.5.17 on a lent GPU machine, brought up and broken under vigil. Run there from the repository's root, with the
# folder .gpu carried (site.tar.xz, small.tgz, fa3.tar.xz, unpack.sh, env.sh, mkdraft.py, whl/); see tests/gpu/README.md.
# Prints one line a case and leaves traces, verdicts and the ends of the logs in $OUT/cases.tar.gz.
set -u
ROOT=$PWD
W=/tmp/w; rm -rf $W; mkdir -p $W
export XDG_STATE_HOME=$W/state
if [ -n "${REHEARSE:-}" ]; then # the same script, over the fake server, on a machine without a GPU
    touch $W/server.env
    vigil() { "$ROOT/.venv/bin/python" -m vigil "$@"; }
    python3() { "$ROOT/.venv/bin/python" "$@"; }
    nvidia-smi() { echo no GPU; }
    server() { local port=$1; shift; echo "$ROOT/tests/fakes/bin/sglang serve --load 5s --workers 1 --port $port $*"; }
else
if [ ! -f /tmp/ready.stamp ]; then
    . .gpu/unpack.sh
    python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/vsite .gpu/whl/*.whl 2>&1 | tail -1
    (. .gpu/env.sh; python3 -m compileall -q -j 15 /tmp/site >/dev/null 2>&1; python3 .gpu/mkdraft.py)
    touch /tmp/ready.stamp
fi
. .gpu/env.sh
env | grep -E '^(PYTHONPATH|SGLANG_|TVM_|HF_|TRANSFORMERS_|LIBRARY_PATH)' >$W/server.env
unset PYTHONPATH
vigil() { PATH=/tmp/vsite/bin:$PATH PYTHONPATH=/tmp/vsite:$ROOT/packages/vigil/src python3 -m vigil "$@"; }
server() { # server PORT MORE...
    local port=$1; shift
    echo python3 -m sglang.launch_server --model-path /tmp/smolcfg --load-format dummy --attention-backend fa3 --sampling-backend pytorch \
        --grammar-backend none --enable-metrics --mem-fraction-static 0.3 --max-total-tokens 20000 --cuda-graph-max-bs-decode 4 \
        --disable-prefill-cuda-graph --host 127.0.0.1 --port "$port" "$@"
}
fi
case_of() { # case_of NAME EXPECTED VIGIL-ARGUMENTS...
    local name=$1 expected=$2 verb=$3; shift 3
    local t0=$SECONDS
    vigil "$verb" --json --trace $W/$name.jsonl "$@" >$W/$name.json 2>$W/$name.err
    local rc=$?
    python3 - "$name" "$expected" $rc $((SECONDS - t0)) $W/$name.json <<'P'
import json, sys
name, expected, rc, took, path = sys.argv[1:]
lines = open(path).read().splitlines()
v = json.loads(lines[-1]) if lines else {}
cause = (v.get("cause") or {}).get("code")
print(f"{name:22} expected {expected:14} got {v.get('verdict')} rc={rc} cause={cause} level={v.get('ready_level')} owner={v.get('owner')} after={v.get('since_s')} s ({took} s): {v.get('reason')}")
P
}
workers() { # pids of the tree below the launched server of NAME whose title holds TEXT
    python3 - "$1" "$2" <<'P'
import glob, json, os, sys
main = json.load(open(glob.glob(f"/tmp/w/state/vigil/servers/{sys.argv[1]}/current/life.json")[0]))["main"]["pid"]
parents = {int(p): int(open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[1]) for p in os.listdir("/proc") if p.isdigit()}
below = {main}
for _ in range(6): below |= {p for p, q in parents.items() if q in below}
print(*[p for p in below if sys.argv[2] in open(f"/proc/{p}/cmdline").read()])
P
}
E3="--speculative-algorithm EAGLE3 --speculative-draft-model-path /tmp/draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
nvidia-smi --query-gpu=name,memory.used --format=csv,noheader

CHECK=  # where the look ahead is wrong about the plain server, the rest goes on without it
vigil check --env-file $W/server.env -- $(server 31003 $E3) || CHECK=--no-check
case_of refused refused up --name refused --timeout 2m --env-file $W/server.env -- $(server 31001 --num-speculative-tokens 16)
case_of flag crashed up --no-check --name flag --timeout 2m --env-file $W/server.env -- $(server 31001 --num-speculative-tokens 16) &
case_of nomodel crashed up --no-check --name nomodel --timeout 2m --env-file $W/server.env -- $(server 31002 --model-path /tmp/no-such-model) &
case_of base ready up $CHECK --name base --timeout 3m --env-file $W/server.env -- $(server 31003) &
case_of eagle ready up $CHECK --name eagle --timeout 3m --env-file $W/server.env -- $(server 31004 $E3) &
( sleep 20; exec python3 -m http.server 31005 --bind 127.0.0.1 ) >/dev/null 2>&1 & SQUATTER=$!
case_of squatted unhealthy up $CHECK --name squatted --env-file $W/server.env --timeout 3m -- $(server 31005) &
case_of loop crash_looping up --no-check --name loop --env-file $W/server.env --timeout 5m -- bash -c "while true; do $(server 31006 --mem-fraction-static 0.001); sleep 1; done" &
for job in $(jobs -p); do [ "$job" = "$SQUATTER" ] || wait "$job"; done
kill $SQUATTER 2>/dev/null

vigil ps
# what runs: asked for and in force, speculation measured, the classes that live
vigil show eagle --args
case_of expected ready wait eagle --expect speculation --expect arg.speculative_algorithm=EAGLE3 --expect class=EAGLEWorker --timeout 2m
grep -o '"expectations":.*' $W/expected.json | cut -c1-900
# after ready: a scheduler that hangs, one that dies
vigil wait base --follow --json --timeout 2m --trace $W/hung.jsonl >$W/hung.json 2>/dev/null & H=$!
vigil wait eagle --follow --json --timeout 2m --trace $W/killed.jsonl >$W/killed.json 2>/dev/null & K=$!
sleep 15
S=$(workers base sglang::scheduler); T=$(date +%s.%N); kill -STOP $S
D=$(workers eagle sglang::scheduler); kill -KILL $D
wait $H; echo "hung: rc=$? $(tail -1 $W/hung.json | cut -c1-300)"
grep -o '"text":"[^"]*\(stack\|is stopped\)[^"]*"' $W/hung.json | sort -u
wait $K; echo "killed: rc=$? $(tail -1 $W/killed.json | cut -c1-400)"
kill -CONT $S
vigil wait base --json --timeout 1m | cut -c1-120
for name in base eagle squatted loop flag nomodel; do vigil stop $name --grace 20s; done
sleep 1; echo "left: $(ps -eo pid,args | grep -c '[s]glang')"; nvidia-smi --query-gpu=memory.used --format=csv,noheader
# memory of the GPU that somebody else holds
if [ -z "${REHEARSE:-}" ]; then
    vigil run --name hog --for 12s --env-file $W/server.env -- python3 -c "import time, torch; held = torch.empty(int(145e9), dtype=torch.uint8, device='cuda'); print('held', flush=True); time.sleep(120)" 2>/dev/null | tail -3
    vigil check --env-file $W/server.env -- $(server 31007)
    case_of full crashed up --no-check --name full --timeout 2m --env-file $W/server.env -- $(server 31007)
    vigil diagnose full
    vigil stop hog --grace 5s; tail -c 60000 $W/state/vigil/servers/full/current/server.log >$W/full.log; vigil stop full --grace 5s
fi
for name in base eagle squatted loop flag nomodel; do tail -c 60000 $W/state/vigil/servers/$name/current/server.log >$W/$name.log; done
tar czf ${OUT:-/tmp}/cases.tar.gz -C $W --exclude state .
