"""The flags of the fake server: what it plays, and when it goes wrong. Standard library only."""

import argparse
import os
import re
import shlex

UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
STYLES = ("sglang", "vllm", "llamacpp", "generic")
MOMENTS = ("launch", "bound", "ready")
LIES = (
    "hang", "fail", "tokenless", "uncounted", "other-model", "mute", "mute-health", "locked", "redirect", "starve", "unhealthy",
)  # fmt: skip

# Flags of the real engines that the fake accepts and ignores; with a value, or without one.
IGNORED_VALUES = (
    "--tp", "--tp-size", "--tensor-parallel-size", "--dp", "--mem-fraction-static", "--gpu-memory-utilization",
    "--max-model-len", "--max-num-seqs", "--attention-backend", "--device", "--dtype",
    "--speculative-algorithm", "--speculative-config",
    "--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens",
    "--ctx-size", "-c", "--threads", "-t", "-np", "--parallel",
)  # fmt: skip
IGNORED_SWITCHES = ("--trust-remote-code", "--enforce-eager", "--disable-cuda-graph", "--skip-server-warmup", "--jinja")


def seconds(text: str) -> float:
    """Read a duration such as `300ms`, `2s`, `1m` or `0.5` (seconds)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"not a duration: {text!r}")
    return float(found[1]) * UNITS_S[found[2] or ""]


def make_parser(style: str) -> argparse.ArgumentParser:
    """Return the parser of a fake that is started under the name of `style`."""
    parser = argparse.ArgumentParser(prog="fake server", add_help=True, allow_abbrev=False, exit_on_error=False)
    add_server_flags(parser, style)
    add_start_flags(parser)
    add_fault_flags(parser)
    ignored = parser.add_argument_group("accepted for the sake of the engines and ignored")
    for flag in IGNORED_VALUES:
        ignored.add_argument(flag, help=argparse.SUPPRESS, dest="ignored")
    for flag in IGNORED_SWITCHES:
        ignored.add_argument(flag, action="store_true", help=argparse.SUPPRESS, dest="ignored")
    return parser


def add_server_flags(parser: argparse.ArgumentParser, style: str) -> None:
    """Add what a healthy server needs."""
    add = parser.add_argument_group("the server").add_argument
    add("words", nargs="*", help="`serve` and the model, as the engines' own command lines have them")
    add("--style", choices=STYLES, default=style, help="whose log and endpoints it imitates")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8000)
    add("--model", "--model-path", "-m", default="", help="the model's path")
    add("--served-model-name", "--alias", default="", help="the id in /v1/models; default: the path")
    add("--speculative-draft-model-path", "-md", dest="draft", default="", help="also plays the load of a draft model")
    add("--api-key", default=os.environ.get("FAKE_API_KEY", ""), help="asked for by /v1/*; also from $FAKE_API_KEY")
    add("--enable-metrics", "--metrics", action="store_true", dest="metrics", help="serve /metrics (vllm: always)")
    add("--workers", type=int, default=0, help="worker processes with the engine's titles")
    add("--orphans", action="store_true", help="workers outlive the server's own exit (a SIGKILL always orphans them)")
    add("--ignore-term", action="store_true", help="take SIGTERM and SIGINT and go on")
    add(
        "--leave-after",
        type=seconds,
        default=0.0,
        help="how long it takes to end on SIGTERM, its workers gone and its port closed",
    )
    add("--log-file", default="", help="write the log to this file instead of standard output")
    add("--log-late", type=seconds, default=0.0, help="make that file only after this time")
    add("--background-load", type=float, default=0.0, help="tokens a second generated for clients that nobody sees")


def add_start_flags(parser: argparse.ArgumentParser) -> None:
    """Add how the start-up goes."""
    add = parser.add_argument_group("the start").add_argument
    add("--scale", type=float, default=1.0, help="multiplies every duration given")
    add("--load", type=seconds, default=1.0, help="from the launch to the open port")
    add("--warmup", type=seconds, default=0.2, help="from the open port to the first token")
    add("--silence", type=seconds, default=0.0, help="extra time without a byte of log")
    add("--silence-in", default="capturing_graphs", help="the phase that is silent")
    add("--noise", action="store_true", help="print scary and harmless lines, with an ignored traceback")
    add("--quiet", action="store_true", help="not one byte of log once it is ready")
    add("--health-body", choices=("empty", "ok"), default=None, help="body of a good /health; default: as the engine")
    add("--crawl", default="", help="download into this file, slowly, before the load")
    add("--crawl-for", type=seconds, default=0.0, help="how long the download takes")
    add("--crawl-bytes", type=int, default=8192, help="bytes that come each tenth of a second (unscaled: real bytes)")
    add("--rehearse", action="store_true", help="print yesterday's whole start at once and leave")


def add_fault_flags(parser: argparse.ArgumentParser) -> None:
    """Add what goes wrong, and the moment."""
    add = parser.add_argument_group("the fault").add_argument
    kinds = "exit:N signal:N abort usage missing import port oom nccl memory worker worker-exit none; a list: one an attempt"
    add("--die", default="", help=kinds)
    add("--stick", choices=("sleep", "spin"), default=None, help="stop making progress, for ever")
    add("--lie", choices=LIES, default=None, help="serve dishonestly")
    add("--recover", type=seconds, default=0.0, help="end the lie after this time")
    add("--at", choices=MOMENTS, default="launch", help="the moment from which --after counts")
    add("--after", type=seconds, default=0.0, help="when the fault strikes")
    seen = "let --at ready be the moment of the first completion: a watcher far away needs time to come"
    add("--when-asked", action="store_true", help=seen)
    add("--attempts", default="", help="file that counts the attempts, for a list in --die")
    add("--mark", default="", help="file that gets `FAULT <unix time> <what>` and `TOKENS <unix time>`")


def parse(argv: list[str], style: str) -> argparse.Namespace | str:
    """Read the flags, and those in $FAKE; return the first unknown flag where there is one.

    All durations come back scaled.
    """
    options, unknown = make_parser(style).parse_known_args([*argv, *shlex.split(os.environ.get("FAKE", ""))])
    if unknown:
        return unknown[0]
    for name in ("load", "warmup", "silence", "crawl_for", "after", "recover", "log_late", "leave_after"):
        setattr(options, name, getattr(options, name) * options.scale)
    words = [word for word in options.words if word != "serve"]
    options.model = options.model or (words[0] if words else "fake-model")
    options.served = options.served_model_name or options.model
    options.metrics = options.metrics or options.style == "vllm"
    return options
