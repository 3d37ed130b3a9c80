"""How many ranks a command asks for, and on how many GPUs of this host they run."""

import msgspec

from vigil.preflight.command import Command, Given

TENSOR = {"sglang": ("--tp", "--tp-size", "--tensor-parallel-size"), "vllm": ("--tensor-parallel-size", "-tp")}
PIPELINE = {"sglang": ("--pp-size", "--pipeline-parallel-size", "--pp"), "vllm": ("--pipeline-parallel-size", "-pp")}
DATA = {"sglang": ("--dp", "--dp-size", "--data-parallel-size"), "vllm": ("--data-parallel-size", "-dp")}
ATTENTION_DATA = ("--attn-dp-size", "--attention-data-parallel-size")
_LOCAL = ("--data-parallel-size-local", "-dpl")
_ONE_RANK = (
    "--data-parallel-rank",
    "-dpr",
    "--data-parallel-external-lb",
    "-dpe",
    "--data-parallel-multi-port-external-lb",
)
_CONTEXT = ("--prefill-context-parallel-size", "-pcp")


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """`here`: GPUs of this host that are used; `replica`: GPUs that share one copy of the weights, over all nodes.

    `first` and `step`: the first GPU, and the distance to the next (SGLang's --base-gpu-id, --gpu-id-step).
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    nodes: int = 1
    here: int = 1
    replica: int = 1
    first: int = 0
    step: int = 1

    @property
    def told(self) -> str:
        """The sizes in words: `tp 8 x pp 2`."""
        named = (("tp", self.tensor), ("pp", self.pipeline), ("dp", self.data))
        return " x ".join(f"{name} {size}" for name, size in named if size > 1) or "1 GPU"


def ranks_of(command: Command) -> Ranks | None:
    """Return the ranks of a command, or None where it uses no GPUs of its own, or somebody else places them (Ray, a launcher)."""
    if (command.text("--device") or "").startswith(("cpu", "xpu", "tpu", "hpu", "npu", "mps")) or has_config(command):
        return None
    if command.engine == "sglang":
        return _sglang(command)
    return _vllm(command) if command.engine == "vllm" else None


def has_config(command: Command) -> bool:
    """Say whether a file brings further settings, which are not seen here."""
    return command.last("--config") is not None and (command.filed is None or not command.filed.whole)


def attention_data(command: Command) -> int:
    """Return how many ways attention runs data parallel in SGLang: `--attn-dp-size N`, or `--dp N --enable-dp-attention`."""
    given = whole(command, *ATTENTION_DATA)
    if given is not None:
        return given
    return size(command, DATA) if command.last("--enable-dp-attention") is not None else 1


def size(command: Command, names: dict[str, tuple[str, ...]]) -> int:
    """Return a parallel size as the engine takes it, 1 where it is not given."""
    found = whole(command, *names[command.engine])
    return 1 if found is None else found


def whole(command: Command, *names: str) -> int | None:
    """Return the value of a flag as a whole number, or None."""
    found = command.number(*names)
    return int(found) if found is not None and found == int(found) else None


def flag_of(command: Command) -> Given | None:
    """Return the flag that makes the ranks many: the first of the sizes that is given."""
    for names in (TENSOR, PIPELINE, DATA):
        found = command.last(*names.get(command.engine, ()))
        if found is not None and found.value not in {None, "1"}:
            return found
    return None


def _sglang(command: Command) -> Ranks | None:
    if command.last("--use-ray") is not None:
        return None
    tensor, pipeline = size(command, TENSOR), size(command, PIPELINE)
    replicas = 1 if attention_data(command) > 1 else size(command, DATA)
    nodes = max(1, whole(command, "--nnodes") or 1)
    if min(tensor, pipeline, replicas) < 1 or (tensor * pipeline) % nodes:
        return None
    return Ranks(
        tensor=tensor,
        pipeline=pipeline,
        data=replicas,
        nodes=nodes,
        here=replicas * tensor * pipeline // nodes,
        replica=tensor * pipeline,
        first=whole(command, "--base-gpu-id") or 0,
        step=whole(command, "--gpu-id-step") or 1,
    )


def _vllm(command: Command) -> Ranks | None:
    executor = command.text("--distributed-executor-backend")
    elsewhere = executor not in {None, "mp", "uni"} or command.text("--data-parallel-backend", "-dpb") == "ray"
    nodes = max(1, whole(command, "--nnodes", "-n") or 1)
    tensor, pipeline, data = size(command, TENSOR), size(command, PIPELINE), size(command, DATA)
    context = whole(command, *_CONTEXT) or 1
    world = tensor * pipeline * context
    if elsewhere or min(world, data) < 1 or world % nodes or (nodes > 1 and data > 1):
        return None
    if command.last("--data-parallel-hybrid-lb", "-dph") is not None and command.last(*_LOCAL) is None:
        return None
    local = whole(command, *_LOCAL)
    local = local if local is not None else 1 if command.last(*_ONE_RANK) is not None else data
    shared = data if command.last("--enable-expert-parallel", "-ep") is not None else 1
    return Ranks(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        nodes=nodes,
        here=world // nodes * local,
        replica=world * shared,
    )
