"""SGLang's speculation: steps, top-k and draft tokens that go together, and what it changes without a word.

Read in sglang 0.4.9, 0.5.2, 0.5.6, 0.5.10, 0.5.14 and 0.5.23 (srt/server_args.py, later arg_groups/speculative_hook.py), and
tried in 0.5.23 with ServerArgs.resolve_once().
"""

import re
from collections.abc import Iterator

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.misspelt import meant_by
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.ranks import PIPELINE, attention_data, has_config, size, whole

HOOK = "sglang 0.4.9 to 0.5.23, handle_speculative_decoding"
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "NONE")
TREES = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"})
_STEPS, _TOPK, _TOKENS = "--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"
_REQUESTS = 48
_COMPLETES = re.compile(r"gemma-?4|iquest", re.IGNORECASE)
"""Models whose numbers SGLang completes in ways of their own (0.5.23: _handle_frozen_kv_mtp, _handle_iquest_q1_mtp_draft)."""
_ADAPTIVE = frozenset({0, 1, 3, 5, 7})
"""The steps of the default tiers in 0.5.23; 0.5.14 has them without 5."""


def check_sglang_speculation(command: Command) -> Iterator[Finding]:
    """Find settings of speculation that do not go together, and those that are changed silently."""
    given = command.last("--speculative-algorithm", "--speculative-algo")
    if given is None or not given.value or has_config(command):
        return
    algorithm = given.value.upper()
    yield from _named(given, algorithm)
    if algorithm in TREES:
        yield from () if _COMPLETES.search(" ".join(command.words[command.own :])) else _tree(command)
        yield from _adaptive(command, algorithm)
        yield from _page(command)
    elif algorithm in ALGORITHMS and command.last("--speculative-adaptive") is not None:
        yield _not_adaptive(command, f"only EAGLE and EAGLE3 adapt, not {algorithm}")
    yield from _requests(command, given, algorithm)
    yield from _pipeline(command, algorithm)


def _named(given: Given, algorithm: str) -> Iterator[Finding]:
    """Find a misspelt algorithm; a name that is not surely one of these may be a plugin's, or of a newer version."""
    found = meant_by(algorithm, ALGORITHMS)
    if found is None:
        return
    right, sure = found
    text = f"SGLang knows no speculative algorithm {given.value}; {right} is like it"
    advice = f"{given.name} {right}; one of {', '.join(ALGORITHMS[:7])}"
    severity = Severity.FATAL if sure else Severity.WARNING
    yield pointed(
        given, "FLAG002", severity, text, advice, edits=with_value(given, right), seen="sglang 0.5.23, spec_info.py"
    )


def _tree(command: Command) -> Iterator[Finding]:
    """Check the three numbers of a draft tree: all or none, and no more tokens than the tree has."""
    steps, topk, tokens = (command.last(name) for name in (_STEPS, _TOPK, _TOKENS))
    adaptive = command.last("--speculative-adaptive") is not None
    if steps is None and (topk or tokens) and not adaptive:
        given = tokens or topk
        text = f"{given.name if given else ''} without {_STEPS}: SGLang takes all three numbers or chooses all three itself"
        yield _incomplete(command, given, text)
    elif steps is not None and topk is None and not adaptive:
        yield _incomplete(
            command, steps, f"{_STEPS} without {_TOPK}: SGLang compares what is not there, and ends with a TypeError"
        )
    else:
        yield from _sizes(command, steps, tokens)


def _incomplete(command: Command, given: Given | None, text: str) -> Finding:
    """Complete the numbers to a chain: as many draft tokens as asked for, or one more than the steps."""
    steps, tokens = whole(command, _STEPS), whole(command, _TOKENS)
    topk = whole(command, _TOPK) or 1
    if steps is None:
        steps = tokens - 1 if tokens is not None and tokens > 1 and topk == 1 else 3
    tokens = steps + 1 if tokens is None or topk == 1 else tokens
    numbers = f"{_STEPS} {steps} {_TOPK} {topk} {_TOKENS} {tokens}"
    there = [one for name in (_STEPS, _TOPK, _TOKENS) for one in command.all_of(name)]
    edits = (
        Edit(at=there[0].at, drop=there[0].count, put=tuple(numbers.split())),
        *(Edit(at=one.at, drop=one.count) for one in there[1:]),
    )
    return pointed(given, "FLAG004", Severity.FATAL, text, f"{numbers}, or none of them", edits=edits, seen=HOOK)


def _sizes(command: Command, steps: Given | None, tokens: Given | None) -> Iterator[Finding]:
    depth, topk, wanted = whole(command, _STEPS), whole(command, _TOPK), whole(command, _TOKENS)
    if depth is None or topk is None or depth < 1:
        return
    if topk == 1:
        if wanted is not None and wanted != depth + 1:
            text = f"{_TOKENS} {wanted} is changed to {depth + 1}: with top-k 1 it is a chain of {depth} steps and one token"
            advice = (
                f"{_STEPS} {wanted - 1} for {wanted} draft tokens, or {_TOKENS} {depth + 1} for what will be in force"
            )
            yield pointed(tokens, "SPEC004", Severity.WARNING, text, advice, seen=HOOK)
        return
    most = topk + (depth - 1) * topk * topk + 1
    if wanted is None:
        text = f"{_TOPK} {topk} without {_TOKENS}: SGLang has no width for its tree"
        yield _incomplete_width(steps, text, min(most, 2 * depth * topk))
    elif wanted > most:
        text = f"{_TOKENS} {wanted} is more than a tree of {depth} steps with top-k {topk} has: {most - 1} nodes and the root"
        edits = with_value(tokens, str(most)) if tokens is not None else ()
        advice = f"{_TOKENS} {most} or less, or a wider or deeper tree"
        seen = "sglang 0.5.23, speculative/eagle_utils.py: organize_draft_results"
        yield pointed(tokens, "FLAG004", Severity.FATAL, text, advice, edits=edits, seen=seen)


def _incomplete_width(steps: Given | None, text: str, width: int) -> Finding:
    edits = (Edit(at=steps.at + steps.count, put=(_TOKENS, str(width))),) if steps is not None else ()
    return pointed(steps, "FLAG004", Severity.FATAL, text, f"{_TOKENS} {width}, for example", edits=edits, seen=HOOK)


def _adaptive(command: Command, algorithm: str) -> Iterator[Finding]:
    """Find what turns --speculative-adaptive off silently (0.5.14 on: adaptive_unsupported_reason), and steps of no tier."""
    given, topk, steps = command.last("--speculative-adaptive"), whole(command, _TOPK), whole(command, _STEPS)
    if given is None:
        return
    if algorithm == "STANDALONE":
        yield _not_adaptive(command, "only EAGLE and EAGLE3 adapt, not STANDALONE")
    elif topk not in {None, 1}:
        yield _not_adaptive(command, f"it needs {_TOPK} 1, not {topk}")
    elif attention_data(command) > 1:
        yield _not_adaptive(command, "it does not work with data-parallel attention")
    elif any(
        command.last(flag) for flag in ("--enable-two-batch-overlap", "--enable-pdmux", "--enable-multi-layer-eagle")
    ):
        yield _not_adaptive(command, "it does not work with two-batch overlap, PD multiplexing or multi-layer EAGLE")
    elif steps is not None and steps not in _ADAPTIVE and command.last("--speculative-adaptive-config") is None:
        text = f"{_STEPS} {steps} is none of the steps that adaptive speculation changes between: {sorted(_ADAPTIVE)}"
        advice = f"{_STEPS} 3, or tiers of your own with --speculative-adaptive-config"
        yield pointed(
            command.last(_STEPS), "FLAG004", Severity.FATAL, text, advice, seen="sglang 0.5.23, adaptive_spec_params.py"
        )


def _not_adaptive(command: Command, why: str) -> Finding:
    given = command.last("--speculative-adaptive")
    text = f"--speculative-adaptive is turned off with one warning in the log: {why}"
    advice = "mend that, or leave --speculative-adaptive out and know that nothing adapts"
    return pointed(
        given, "SPEC004", Severity.WARNING, text, advice, seen="sglang 0.5.14 to 0.5.23, adaptive_unsupported_reason"
    )


def _page(command: Command) -> Iterator[Finding]:
    """Find trees over pages on a backend that cannot do them; 0.5.2 to 0.5.10 allow fewer backends still."""
    backend, topk, page = command.last("--attention-backend"), whole(command, _TOPK), whole(command, "--page-size")
    known = {"flashinfer", "fa3", "triton"}
    if backend is None or backend.value in known or topk is None or page is None or topk < 2 or page < 2:  # noqa: PLR2004
        return
    text = (
        f"{_TOPK} {topk} with --page-size {page} works with {', '.join(sorted(known))} only, not with {backend.value}"
    )
    given = command.last("--page-size")
    edits = with_value(given, "1") if given is not None else ()
    yield pointed(
        given, "FLAG004", Severity.FATAL, text, "--page-size 1, or one of those backends", edits=edits, seen=HOOK
    )


def _requests(command: Command, given: Given, algorithm: str) -> Iterator[Finding]:
    """Tell of the limit that speculation brings: a warning where graphs for more requests are asked for."""
    if algorithm not in ALGORITHMS[:9] or algorithm == "UNO" or command.last("--max-running-requests") is not None:
        return
    graphs = whole(command, "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode") or 0
    text = f"no more than {_REQUESTS} requests will run at a time: SGLang sets --max-running-requests {_REQUESTS} for {algorithm}"
    more = f", and graphs for {graphs} are asked for" if graphs > _REQUESTS else ""
    severity = Severity.WARNING if more else Severity.NOTE
    advice = "say how many you want: --max-running-requests N"
    yield pointed(given, "SPEC005", severity, text + more, advice, seen=f"{HOOK}; sglang#34290")


def _pipeline(command: Command, algorithm: str) -> Iterator[Finding]:
    """Find speculation over pipeline stages: only EAGLE, from 0.5.2x on, where only the prompt is read or behind a variable."""
    stages = size(command, PIPELINE)
    if stages < 2 or algorithm not in ALGORITHMS[:6]:  # noqa: PLR2004
        return
    possible = algorithm in {"EAGLE", "NEXTN"}
    if possible and (command.text("--disaggregation-mode") == "prefill" or "SGLANG_ENABLE_PP_SPEC" in command.env):
        return
    given = command.last(*PIPELINE["sglang"])
    text = f"{algorithm} does not work with {stages} pipeline stages"
    severity = Severity.WARNING if possible else Severity.FATAL
    advice = "use --tp for all GPUs, or leave speculation out"
    seen = "sglang 0.4.9 to 0.5.23, check_server_args: pp_size > 1"
    yield pointed(given, "FLAG004", severity, text, advice, seen=seen)
