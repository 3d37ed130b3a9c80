"""Play the `llama-server` command with the same server in the xllamacpp wheel: the tests' real engine.

It maps the command's flags to `CommonParams`, and dies as the real command does: an unknown flag is exit 1 with
`error: invalid argument: --x`, SIGTERM ends it at once while it loads and cleanly with 0 once it serves.
`install.sh` makes the executable `llama-server` that calls `main`.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

PR_SET_NAME = 15
SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})

Setter = Callable[[Any, str], None]


def main(argv: list[str]) -> int:
    """Serve until a signal comes; return the exit code of the real command."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"llama-server")
    import xllamacpp  # noqa: PLC0415 - slow; a bad flag is answered first

    params = xllamacpp.CommonParams()
    params.port = 8080
    params.n_parallel = 4
    params.kv_unified = True
    if (key := os.environ.get("LLAMA_API_KEY")) is not None:
        params.api_keys = [key]
    problem = apply_flags(params, argv)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return 1  # the engine has said why in its own words
    # The real command takes SIGTERM in hand only after the load. Blocked, so that no handler is needed.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    signal.sigwait(SIGNALS)
    del server
    return 0


def apply_flags(params: Any, argv: list[str]) -> str | None:
    """Set `params` from the command line; return the text of the first error as the real command words it."""
    rest = list(argv)
    while rest:
        flag = rest.pop(0)
        if flag in SWITCHES:
            SWITCHES[flag](params, "")
        elif flag in VALUES:
            if not rest:
                return f'error while handling argument "{flag}": expected value for argument'
            try:
                VALUES[flag](params, rest.pop(0))
            except ValueError:
                return f'error while handling argument "{flag}": stoi\n\nusage:\n{flag}\n\n\nto show complete usage, run with -h'
            except KeyError as err:
                return f'error while handling argument "{flag}": unknown speculative type: {err.args[0]}'
        else:
            return f"error: invalid argument: {flag}"
    return None


def number(*path: str) -> Setter:
    """Make a setter of the integer attribute at `path`."""

    def put(params: Any, value: str) -> None:
        *folders, name = path
        for folder in folders:
            params = getattr(params, folder)
        setattr(params, name, int(value))

    return put


def constant(name: str, *, value: bool) -> Setter:
    """Make a setter of a switch."""
    return lambda params, _: setattr(params, name, value)


def put_model(params: Any, value: str) -> None:
    """Set the model's file."""
    params.model.path = value


def put_draft(params: Any, value: str) -> None:
    """Set the draft model's file."""
    params.speculative.draft.mparams.path = value


def put_speculation(params: Any, value: str) -> None:
    """Set the kinds of speculative decoding: a comma list of the real command's words."""
    import xllamacpp  # noqa: PLC0415 - slow; a bad flag is answered first

    members = xllamacpp.common_speculative_type.__members__
    known = {
        name.removeprefix("COMMON_SPECULATIVE_TYPE_").lower().replace("_", "-"): kind for name, kind in members.items()
    }
    params.speculative.types = [known[word] for word in value.split(",")]


SWITCHES: dict[str, Setter] = {
    "--metrics": constant("endpoint_metrics", value=True),
    "--props": constant("endpoint_props", value=True),
    "--slots": constant("endpoint_slots", value=True),
    "--no-slots": constant("endpoint_slots", value=False),
    "--no-warmup": constant("warmup", value=False),
    "--no-repack": constant("no_extra_bufts", value=True),
    "--no-webui": constant("ui", value=False),
    "--jinja": constant("use_jinja", value=True),
    "--no-jinja": constant("use_jinja", value=False),
}
VALUES: dict[str, Setter] = {
    **dict.fromkeys(("-m", "--model"), put_model),
    "--host": lambda params, value: setattr(params, "hostnames", [value]),
    "--port": number("port"),
    **dict.fromkeys(("-c", "--ctx-size"), number("n_ctx")),
    **dict.fromkeys(("-t", "--threads"), number("cpuparams", "n_threads")),
    **dict.fromkeys(("-tb", "--threads-batch"), number("cpuparams_batch", "n_threads")),
    **dict.fromkeys(("-np", "--parallel"), number("n_parallel")),
    **dict.fromkeys(("-b", "--batch-size"), number("n_batch")),
    **dict.fromkeys(("-ub", "--ubatch-size"), number("n_ubatch")),
    **dict.fromkeys(("-ngl", "--gpu-layers", "--n-gpu-layers"), number("n_gpu_layers")),
    **dict.fromkeys(("-lv", "--verbosity"), number("verbosity")),
    **dict.fromkeys(("-a", "--alias"), lambda params, value: setattr(params, "model_alias", set(value.split(",")))),
    "--api-key": lambda params, value: setattr(params, "api_keys", value.split(",")),
    "--api-prefix": lambda params, value: setattr(params, "api_prefix", value),
    "--chat-template": lambda params, value: setattr(params, "chat_template", value),
    "--spec-type": put_speculation,
    **dict.fromkeys(("-md", "--spec-draft-model", "--model-draft"), put_draft),
    **dict.fromkeys(("--spec-draft-n-max",), number("speculative", "draft", "n_max")),
    **dict.fromkeys(("--spec-draft-n-min",), number("speculative", "draft", "n_min")),
}
