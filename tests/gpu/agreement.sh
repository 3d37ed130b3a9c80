#!/usr/bin/env bash
# `vigil bench` beside `sglang.bench_serving` on a real SGLang 0.5.17 on a lent GPU machine: bench/agreement.py over a server that
# vigil brings up. Run there from the repository's root, with the folder .gpu carried; see README.md beside this. Leaves
# agreement-h200.json in $OUT. After cases.sh on the same machine it takes two minutes.
set -u
ROOT=$PWD
W=/tmp/w/agreement; rm -rf $W; mkdir -p $W
export XDG_STATE_HOME=$W/state
if [ ! -f /tmp/ready.stamp ]; then
    . .gpu/unpack.sh
    python3 -m pip install -q --no-index --no-deps --no-compile --target /tmp/vsite .gpu/whl/*.whl 2>&1 | tail -1
    (. .gpu/env.sh; python3 -m compileall -q -j 15 /tmp/site >/dev/null 2>&1; python3 .gpu/mkdraft.py)
    touch /tmp/ready.stamp
fi
( . .gpu/env.sh; env | grep -E '^(PYTHONPATH|SGLANG_|TVM_|HF_|TRANSFORMERS_|LIBRARY_PATH)' >$W/server.env )
# a Python with vigil in it, since the tools are run without our PYTHONPATH; and SGLang's where agreement.py looks for it
python3 -m venv --without-pip --system-site-packages $W/venv
printf '%s\n' /tmp/vsite "$ROOT/packages/vigil/src" >"$(echo $W/venv/lib/python3*/site-packages)/vigil.pth"
mkdir -p $W/engines/sglang/bin $W/engines/models
mkdir -p $W/stub; echo 'def load_dataset(*_, **__): raise RuntimeError("a stub: no hub is reached from here")' >$W/stub/datasets.py
printf '#!/bin/sh\nexec env %s PYTHONPATH=%s:/tmp/site python3 "$@"\n' "$(tr '\n' ' ' <$W/server.env)" "$W/stub" >$W/engines/sglang/bin/python
chmod +x $W/engines/sglang/bin/python
ln -sfn /tmp/smolcfg $W/engines/models/SmolLM2-135M-Instruct
export VIGIL_ENGINES=$W/engines
$W/venv/bin/python -m vigil up --name agreement --timeout 3m --env-file $W/server.env -- python3 -m sglang.launch_server --model-path /tmp/smolcfg \
    --load-format dummy --attention-backend fa3 --sampling-backend pytorch --grammar-backend none --mem-fraction-static 0.3 \
    --max-total-tokens 100000 --max-running-requests 128 --cuda-graph-max-bs-decode 128 --disable-prefill-cuda-graph --host 127.0.0.1 --port 31011 2>&1 | tail -3
$W/venv/bin/python bench/agreement.py --url http://127.0.0.1:31011 --model /tmp/smolcfg --server "SGLang 0.5.17, H200" \
    --open 64 16 1 --rounds "${ROUNDS:-3}" --budget "${BUDGET_S:-150}" --out "${OUT:-$W}/agreement-h200.json" >$W/out.txt 2>&1
rc=$?
grep -v '^ ' $W/out.txt | tail -30; tail -c 2500 $W/out.txt
$W/venv/bin/python -m vigil stop agreement --grace 20s
exit $rc
