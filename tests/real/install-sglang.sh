#!/usr/bin/env bash
# Install SGLang for the CPU into .engines/sglang, beside vLLM's torch and transformers; print the folder. A second call ends
# at once. Calls install-vllm.sh first: torch and what both need (3 GB) are taken from that environment, not installed twice.
#
# The versions stand in sglang.lock. Run it with `--device cpu --attention-backend torch_native --disable-overlap-schedule`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${VIGIL_ENGINES:-$(dirname "$(dirname "$here")")/.engines}
venv=$home/sglang
want=$(cat "${BASH_SOURCE[0]}" "$here/sglang.lock" "$here/vllm.lock" | sha256sum)

vllm=$("$here/install-vllm.sh")
exec 9>"$home/.sglang.lock"
flock 9
if [[ -f $venv/.installed && $(<"$venv/.installed") == "$want" ]]; then
  echo "$venv"
  exit 0
fi

rm -rf "$venv"
"${PYTHON:-python3.11}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps -r "$here/sglang.lock" >&2

where='import sysconfig; print(sysconfig.get_path("purelib"))'
packages=$("$venv/bin/python" -c "$where")
"$vllm/bin/python" -c "$where" >"$packages/beside-vllm.pth"

# SGLang imports torchvision at its start, and PyPI's torchvision is a CUDA build whose compiled part does not load beside
# torch's CPU build, so its Python part stops at "operator torchvision::nms does not exist". Declare the two operators that it
# asks for by name, without an implementation: the import works, and calling one is an error that says so. A text model never
# does. Everything else in torchvision is as released.
cat >>"$packages/torchvision/extension.py" <<'PY'


# Added by vigil's tests/real/install-sglang.sh: the operators' names, for torch's CPU build.
if not _has_ops() and not hasattr(torch.ops.torchvision, "nms"):
    _declared = torch.library.Library("torchvision", "FRAGMENT")
    _declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
PY

"$venv/bin/python" -c 'import torchvision.transforms.v2, sglang.srt.server_args' >&2
echo "$want" >"$venv/.installed"
echo "$venv"
