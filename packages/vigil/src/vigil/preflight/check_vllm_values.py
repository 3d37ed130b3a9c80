"""vLLM's other pairs: batches and lengths, graphs and requests, parallel sizes.

Read in vllm 0.32 (config/scheduler.py, config/parallel.py, config/vllm.py), and tried with EngineArgs.create_engine_config().
"""

from collections.abc import Iterator

from vigil.preflight import check_json
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.listed import listed
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.ranks import DATA, has_config, size, whole
from vigil.screen import plain

SCHEDULER = "vllm 0.32, config/scheduler.py: verify_max_model_len"
_BATCH, _REQUESTS, _LENGTH = "--max-num-batched-tokens", "--max-num-seqs", "--max-model-len"
TRANSFER = "--kv-transfer-config"
_LOCAL = ("--data-parallel-size-local", "-dpl")


def check_vllm_values(command: Command) -> Iterator[Finding]:
    """Find values that do not go together."""
    yield from _batches(command)
    yield from _length(command)
    yield from _data(command)
    yield from _graphs(command)
    yield from _tools(command)
    yield from _transfer(command)


def _transfer(command: Command) -> Iterator[Finding]:
    """Find a connector for the KV cache that is not told which side it is on."""
    read = check_json.read(command, TRANSFER)
    if read is None or any(one.plain.startswith(f"{TRANSFER}.") for one in command.flags):
        return
    connector, role = read.value.get("kv_connector"), read.value.get("kv_role")
    if isinstance(connector, str) and role is None:
        text = f"{TRANSFER} names the connector {plain(connector, 60)}, and no kv_role"
        advice = 'add "kv_role": "kv_producer" or "kv_consumer", or "kv_both" where this server does both'
        seen = "vllm 0.9 to 0.33, KVTransferConfig.__post_init__"
        yield pointed(read.given, "FLAG004", Severity.FATAL, text, advice, seen=seen)


def _tools(command: Command) -> Iterator[Finding]:
    """Find tools that the model may choose, and nobody to read its choice."""
    given = command.last("--enable-auto-tool-choice")
    if given is None or command.last("--tool-call-parser") is not None or has_config(command):
        return
    text = "--enable-auto-tool-choice needs a --tool-call-parser: the start ends without one"
    advice = "name the parser of this model, such as --tool-call-parser hermes (its model card says which)"
    yield pointed(given, "FLAG004", Severity.FATAL, text, advice, seen="vllm 0.32, validate_parsed_serve_args")


def _batches(command: Command) -> Iterator[Finding]:
    given, batch, requests, length = (
        command.last(_BATCH),
        *(whole(command, one) for one in (_BATCH, _REQUESTS, _LENGTH)),
    )
    if given is None or batch is None or batch < 1:
        return
    if requests is not None and batch < requests:
        text = f"{_BATCH} {batch} is less than {_REQUESTS} {requests}: each request takes one token of a batch at least"
        edits = with_value(given, str(requests))
        yield pointed(
            given, "FLAG004", Severity.FATAL, text, f"{_BATCH} {requests} or more", edits=edits, seen=SCHEDULER
        )
    if length is not None and batch < length and command.last("--no-enable-chunked-prefill") is not None:
        text = (
            f"{_BATCH} {batch} is less than {_LENGTH} {length}, and without chunked prefill a prompt must fit one batch"
        )
        edits = with_value(given, str(length))
        advice = f"{_BATCH} {length}, or leave --no-enable-chunked-prefill out"
        yield pointed(given, "FLAG004", Severity.FATAL, text, advice, edits=edits, seen=SCHEDULER)


def _length(command: Command) -> Iterator[Finding]:
    given, length = command.last(_LENGTH), whole(command, _LENGTH)
    if given is not None and length is not None and (length == 0 or length < -1):
        text = f"{_LENGTH} {length} must be at least 1 (-1: as long as memory allows)"
        yield pointed(
            given,
            "FLAG003",
            Severity.FATAL,
            text,
            "a number from 1 on, or leave it out",
            seen="vllm 0.32, config/model.py",
        )
    long, most = command.last("--long-prefill-token-threshold"), whole(command, "--long-prefill-token-threshold")
    if long is not None and most is not None and length is not None and 0 < length < most:
        text = f"{long.name} {most} is more than {_LENGTH} {length}"
        edits = with_value(long, str(length))
        yield pointed(
            long, "FLAG004", Severity.FATAL, text, f"{long.name} {length} or less", edits=edits, seen=SCHEDULER
        )


def _data(command: Command) -> Iterator[Finding]:
    given, local, data = command.last(*_LOCAL), whole(command, *_LOCAL), size(command, DATA)
    if given is not None and local is not None and local > data:
        text = f"{given.name} {local} is more than --data-parallel-size {data}"
        yield pointed(
            given, "FLAG004", Severity.FATAL, text, f"{given.name} {data} or less", seen="vllm 0.32, config/parallel.py"
        )


def _graphs(command: Command) -> Iterator[Finding]:
    """Find graphs for fewer tokens than a batch of all requests decodes: larger batches run without."""
    if command.last("--enforce-eager") is not None:
        return
    given = command.last("--cudagraph-capture-sizes", "--cuda-graph-sizes", "--max-cudagraph-capture-size")
    sizes, requests = listed(command, given), whole(command, _REQUESTS)
    read = check_json.read(command, "--speculative-config", "-sc")
    drafted = read.value.get("num_speculative_tokens") if read is not None else None
    width = 1 + drafted if isinstance(drafted, int) and 0 < drafted < 1000 else 1  # noqa: PLR2004
    if given is None or not sizes or requests is None or max(sizes) < 1:
        return
    most, wanted = max(sizes), requests * width
    if most < wanted:
        each = f" x {width} tokens each" if width > 1 else ""
        text = f"graphs for {most} tokens at most, and {requests} requests{each} may decode at a time: {wanted}"
        advice = f"--max-cudagraph-capture-size {wanted} (it takes memory), or {_REQUESTS} {max(1, most // width)}"
        yield pointed(given, "GRAPH001", Severity.WARNING, text, advice, seen="vllm 0.32, config/vllm.py")
