"""SGLang's other pairs: parallel sizes, chunks and pages, graphs and requests. Each read in the versions that are named."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.listed import listed
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.ranks import ATTENTION_DATA, DATA, PIPELINE, TENSOR, attention_data, has_config, size, whole

CHECKS_ARGS = "sglang 0.4.9 to 0.5.23, check_server_args"


def check_sglang_values(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find values that do not go together."""
    yield from _attention(command)
    yield from _nodes(command)
    yield from _chunk(command)
    yield from _graphs(command)
    yield from _served_name(command, version)


def _attention(command: Command) -> Iterator[Finding]:
    """Check data-parallel attention: its groups share the tensor parallel ranks."""
    tensor, groups, replicas = size(command, TENSOR), attention_data(command), size(command, DATA)
    own = command.last(*ATTENTION_DATA)
    given = own or command.last(*DATA["sglang"])
    switch = command.last("--enable-dp-attention")
    if own is not None and groups > 1 and replicas > 1 and switch is None:
        text = f"{own.name} {groups} with --dp {replicas}: SGLang runs copies or parts of attention, not both"
        yield pointed(
            own, "FLAG004", Severity.FATAL, text, "leave --dp out", seen="sglang 0.5.23, handle_data_parallelism"
        )
    elif groups > 1 and tensor >= 1 and tensor % groups:
        text = f"attention in {groups} groups over --tp {tensor}: {tensor} is no multiple of {groups}"
        advice = f"--tp {-(-tensor // groups) * groups}, or as many groups as divide {tensor}"
        yield pointed(
            given, "FLAG004", Severity.FATAL, text, advice, seen="sglang 0.4.9 to 0.5.23: tp_size % dp_size == 0"
        )
    elif switch is not None and groups == 1 and not has_config(command):
        text = "--enable-dp-attention does nothing with --dp 1: SGLang turns it off without a word"
        advice = "say how many groups: --dp N (a divisor of --tp)"
        yield pointed(
            switch, "SPEC004", Severity.WARNING, text, advice, seen="sglang 0.5.2 to 0.5.14, _handle_data_parallelism"
        )
    head = command.last("--enable-dp-lm-head")
    if head is not None and replicas > 1 and groups == 1:
        text = "--enable-dp-lm-head needs data-parallel attention"
        advice = "add --enable-dp-attention (or --attn-dp-size N), or leave it out"
        yield pointed(head, "FLAG004", Severity.FATAL, text, advice, seen="sglang 0.4.9 to 0.5.23, enable_dp_lm_head")


def _nodes(command: Command) -> Iterator[Finding]:
    """Check the hosts: their number divides the ranks, each has a number of its own, and they know where to meet."""
    given, nodes = command.last("--nnodes"), whole(command, "--nnodes") or 1
    if given is None or nodes < 2:  # noqa: PLR2004
        return
    ranks = size(command, TENSOR) * size(command, PIPELINE)
    if ranks % nodes and command.last("--ep-join-mode") is None:
        text = f"tp x pp = {ranks} ranks cannot be spread over {nodes} hosts evenly"
        yield pointed(
            given, "FLAG004", Severity.FATAL, text, f"a multiple of {nodes}, with --tp over all hosts", seen=CHECKS_ARGS
        )
    if size(command, DATA) > 1 and attention_data(command) == 1 and not has_config(command):
        text = f"--dp {size(command, DATA)} over {nodes} hosts: copies of a model run on one host each"
        advice = "start one server on each host, or use data-parallel attention"
        yield pointed(given, "FLAG004", Severity.FATAL, text, advice, seen=CHECKS_ARGS)
    number = whole(command, "--node-rank")
    if number is not None and not 0 <= number < nodes:
        text = f"--node-rank {number} is none of {nodes} hosts: they count from 0 to {nodes - 1}"
        yield pointed(
            command.last("--node-rank"),
            "FLAG003",
            Severity.WARNING,
            text,
            f"a number from 0 to {nodes - 1}",
            seen="torch",
        )
    if command.last("--dist-init-addr", "--nccl-init-addr") is None and not has_config(command):
        text = f"{nodes} hosts, and no --dist-init-addr that tells them where to meet: each would wait for the others"
        yield pointed(
            given,
            "DIST001",
            Severity.WARNING,
            text,
            "--dist-init-addr HOST:PORT of the first, on all",
            seen=CHECKS_ARGS,
        )


def _chunk(command: Command) -> Iterator[Finding]:
    given, chunk, page = (
        command.last("--chunked-prefill-size"),
        whole(command, "--chunked-prefill-size"),
        whole(command, "--page-size"),
    )
    if (
        given is None
        or chunk is None
        or page is None
        or min(chunk, page) < 1
        or command.text("--disaggregation-mode") == "decode"
    ):
        return
    chunk_of_each = chunk // max(1, attention_data(command))  # data-parallel attention shares a chunk
    if chunk_of_each % page:
        step = page * max(1, attention_data(command))
        right = str(max(1, chunk // step) * step)
        text = f"{given.name} {chunk} is no multiple of --page-size {page}"
        yield pointed(
            given,
            "FLAG004",
            Severity.FATAL,
            text,
            f"{given.name} {right}",
            edits=with_value(given, right),
            seen=CHECKS_ARGS,
        )


def _graphs(command: Command) -> Iterator[Finding]:
    """Find graphs for fewer requests than may run: larger batches run without graphs, much slower."""
    running = whole(command, "--max-running-requests")
    given = command.last("--cuda-graph-bs", "--cuda-graph-bs-decode")
    sizes = listed(command, given)
    most = max(sizes) if sizes else whole(command, "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")
    given = given if sizes else command.last("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode")
    off = command.last("--disable-cuda-graph", "--disable-decode-cuda-graph") is not None
    if running is None or most is None or given is None or off or most < 1:
        return
    groups = max(1, attention_data(command))
    share = running // groups
    if most < share:
        text = f"graphs for {most} requests at most, and {share} may run: batches above {most} run without a graph"
        advice = f"--cuda-graph-max-bs {share} (it takes memory), or --max-running-requests {most * groups}"
        yield pointed(
            given, "GRAPH001", Severity.WARNING, text, advice, seen="sglang 0.5.23, decode_cuda_graph_runner.py"
        )


def _served_name(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    given = command.last("--served-model-name")
    name = given.value if given is not None else None
    if given is None or not name or ":" not in name or "://" in name or (version is not None and version < (0, 5, 6)):
        return
    right = name.replace(":", "-")
    text = f"{given.name} {name}: SGLang keeps the colon for MODEL:ADAPTER of LoRA"
    seen = "sglang 0.5.6 to 0.5.23, check_server_args"
    yield pointed(
        given, "FLAG002", Severity.FATAL, text, f"{given.name} {right}", edits=with_value(given, right), seen=seen
    )
