# ruff: noqa: E501 - a table
"""The fault table of issue 2 as data: how each fault is started, and what must be said about it.

Placeholders in words: `{port}`, `{dir}` (the row's own folder), `{mark}` (the side file of moments), `{py}`, `{fakes}`, and
`{30s}`: a time that is scaled as the policy is. The runner is `bench/faults.py`.
"""

import dataclasses

SGLANG = ("{py}", "{fakes}/bin/sglang", "serve", "--model-path", "m", "--port", "{port}")
VLLM = ("{py}", "{fakes}/bin/vllm", "serve", "m", "--port", "{port}")
LLAMA = ("{py}", "{fakes}/bin/llama-server", "-m", "m", "--port", "{port}")
OTHER = ("{py}", "{fakes}/server.py", "--port", "{port}", "--served-model-name", "m")
JOB = ("{py}", "{fakes}/job.py", "--scale", "{scale}", "--mark", "{mark}")
FLASH = ("{fakes}/flash/sglang", "serve", "--model-path", "m", "--port", "{port}", "--mark", "{mark}")
FLASH_OTHER = ("{fakes}/flash.sh", "--mark", "{mark}")
LOCAL, SSH = "local", "ssh"
BOTH = (LOCAL, SSH)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One scripted fault.

    `verb`: `up`, `run`, or `wait` (the runner starts the command itself, as somebody else would, with its log in `{dir}/log`).
    `command`, `faults`: the fake and its flags. `wrap`: a command in front of it. `options`: of vigil. `expect`: the words of the
    verdicts in their order; with `follow` all of them, else the last. A word `error:N` is an exit code without a verdict.
    `cause`: the code, or any of several (empty: not looked at). `checks`: names in `bench/fault_checks.py`. `act`: what happens
    meanwhile, a name in `bench/fault_acts.py`. `before`: commands that run beside it from before the start.
    `mark`: the moment that the time is measured from: FAULT, or TOKENS (the first at which a token could be had).
    `limit_s`: how long the row may take in real time, unscaled. `slow`: minutes in real time.
    """

    name: str
    group: str
    verb: str = "up"
    command: tuple[str, ...] = SGLANG
    faults: tuple[str, ...] = ()
    wrap: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    follow: bool = False
    expect: tuple[str, ...]
    cause: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    act: str = ""
    before: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = BOTH
    mark: str = "FAULT"
    limit_s: float = 60.0


READY = ("ready",)
CRASHED = ("crashed",)
CLEAN = ("gone", "port_free")
LOOP = ("{fakes}/loop.sh",)
HEAL = "1 healthy"
DEATH = "2 deaths"
LOOPS = "3 loops"
STUCK = "4 stuck"
LIES = "5 lies"
OURS = "6 the watcher's own trouble"


def words(text: str) -> tuple[str, ...]:
    """Split flags for the table."""
    return tuple(text.split())


def healthy(name: str, faults: str = "", **more: object) -> Row:
    """Make a row that must end ready, and at once."""
    return Row(
        **{
            "name": name,
            "group": HEAL,
            "faults": words(faults),
            "expect": READY,
            "mark": "TOKENS",
            "checks": ("verified", "not_early", "at_once"),
            **more,
        }
    )  # type: ignore[arg-type]


def death(name: str, faults: str, *cause: str, **more: object) -> Row:
    """Make a row whose server dies for good."""
    return Row(
        **{
            "name": name,
            "group": DEATH,
            "faults": words(faults),
            "expect": CRASHED,
            "cause": cause,
            "checks": CLEAN,
            **more,
        }
    )  # type: ignore[arg-type]


def lie(name: str, faults: str, *expect: str, **more: object) -> Row:
    """Make a row whose server does not serve as it says."""
    return Row(**{"name": name, "group": LIES, "faults": words(faults), "expect": expect, "limit_s": 180.0, **more})  # type: ignore[arg-type]


def loop(name: str, faults: str, pause: str, *cause: str, **more: object) -> Row:
    """Make a row whose command runs under a shell loop."""
    wrap = (*LOOP, "--pause", pause, "--")
    made = {
        "name": name,
        "group": LOOPS,
        "faults": words(faults),
        "wrap": wrap,
        "expect": ("crash_looping",),
        "cause": cause,
        "limit_s": 120.0,
    }
    return Row(**{**made, "checks": ("attempts_2",), **more})  # type: ignore[arg-type]


# fmt: off
HEALTHY_ROWS = (
    healthy("fast", "--load 0.5s --warmup 50ms"),
    healthy("fast-vllm", "--load 0.5s", command=VLLM),
    healthy("fast-llama-server", "--load 0.5s", command=LLAMA),
    healthy("fast-other-program", "--load 0.5s", command=OTHER),
    healthy("silent-minute-in-graphs", "--load 4s --silence 60s --silence-in capturing_graphs", limit_s=120.0),
    healthy("noisy", "--load 2s --noise"),
    healthy("empty-health-body", "--load 1s --health-body empty", command=OTHER),
    healthy("quiet-after-ready", "--load 1s --quiet"),
    healthy("log-comes-late", "--load 2s --log-file {dir}/late.log --log-late {1s}", verb="wait", options=("--log", "{dir}/late.log")),
    healthy("wait-url-alone", "--load 2s", verb="wait"),
    healthy("wait-quiet-after-ready", "--load 1s --quiet", verb="wait", options=("--log", "{dir}/log")),
    healthy("workers", "--load 1s --workers 3"),
    healthy("with-draft", "--load 2s --speculative-draft-model-path d"),
    healthy("own-key", "--load 1s --api-key sekret-123456"),
    healthy("own-key-in-its-environment", "--load 1s", options=("--env", "FAKE_API_KEY=x", "--api-key-env", "ROW_KEY"), act="key_x"),
)
DEATH_ROWS = (
    death("exit-1", "--load 4s --die exit:1 --after 2s"),
    death("exit-0", "--load 4s --die exit:0 --after 2s"),
    death("exit-2-usage", "--load 4s --num-speculative-tokens 16", "FLAG001"),
    death("usage-llama-server", "--bogus-flag 3", "FLAG001", command=LLAMA),
    death("missing-model", "--load 4s --die missing --after 1s", "FILE001"),
    death("gpu-memory", "--load 4s --die oom --after 2s --workers 2", "MEM001"),
    death("import-error", "--load 4s --die import --after 1s", "IMP001", command=VLLM),
    death("signal-9", "--load 4s --die signal:9 --after 2s --workers 2"),
    death("abort", "--load 4s --die abort --after 2s"),
    death("kernel-oom-killer", "--load 4s --die memory --after 2s", "MEM003", wrap=("{py}", "{fakes}/in_cgroup.py", "--limit", "100m", "--"),
          checks=(*CLEAN, "says_oom")),
    death("after-the-port-opened", "--load 2s --warmup 30s --die exit:1 --at bound --after 1s"),
    death("orphans-left", "--load 4s --die exit:1 --after 2s --workers 3 --orphans"),
    death("worker-behind-green-health", "--load 2s --workers 3 --die worker --at ready --after 3s", expect=("ready", "unhealthy"), follow=True, checks=(),
          limit_s=120.0),
    death("long-after-ready", "--load 2s --die exit:1 --at ready --after 45s", follow=True, expect=("ready", "crashed"), limit_s=120.0),
    death("worker-dies-while-loading", "--load 60s --workers 3 --die worker --after 40s", expect=("unhealthy",), checks=("says_died",), limit_s=120.0),
    death("exit-0-after-ready", "--load 2s --die exit:0 --at ready --after 3s --workers 2", follow=True, expect=("ready", "crashed"), command=VLLM),
    death("killed-after-ready", "--load 2s --die signal:9 --at ready --after 3s --workers 2", follow=True, expect=("ready", "crashed")),
    Row(name="job-finishes", group=DEATH, verb="run", command=JOB, faults=words("--steps 10"), expect=("finished",), checks=("gone",)),
    Row(name="job-crashes", group=DEATH, verb="run", command=JOB, faults=words("--steps 10 --die exit:1 --at-step 5"), expect=CRASHED, checks=("gone",)),
    Row(name="ignores-sigterm", group=DEATH, faults=words("--load 1s --ignore-term --workers 2"), follow=True, expect=("ready", "stopped"),
        act="stop_hard", checks=CLEAN, mark="ASKED"),
    Row(name="stops-slowly", group=DEATH, faults=words("--load 1s --workers 2 --leave-after 20s"), follow=True, expect=("ready", "stopped"), act="stop",
        checks=CLEAN, mark="ASKED"),
    Row(name="stopped-by-somebody", group=DEATH, faults=words("--load 1s --workers 2"), follow=True, expect=("ready", "stopped"), act="stop",
        checks=CLEAN, mark="ASKED"),
)
LOOP_ROWS = (
    loop("every-0.05s", "", "0.05", "FLAG001", command=FLASH),
    loop("every-0.05s-of-an-unknown-program", "", "0.05", "FLAG001", command=FLASH_OTHER),
    loop("every-3s", "--load 9s --die nccl --after 2.5s", "{0.5s}", checks=("attempts_3",)),
    loop("every-30s", "--load 60s --die nccl --after 29s", "{1s}", checks=("attempts_3",), limit_s=180.0),
    loop("plain-exit-1", "--load 9s --die exit:1 --after 1s", "{0.5s}", checks=("attempts_3",)),
    loop("ready-then-dead-under-load", "--load 2s --die oom --at ready --after 60s --background-load 100", "{0.5s}", "MEM005", follow=True,
         expect=("ready", "crash_looping"), checks=("attempts_3",), limit_s=360.0),
    loop("wait-log-and-url-append", "--load 4s --die import --after 2s", "0", "IMP001", verb="wait",
         wrap=(*LOOP, "--pause", "{0.5s}", "--log", "{dir}/log", "--mode", "append", "--"), options=("--log", "{dir}/log")),
    loop("wait-log-truncated-each-time", "--load 4s --die import --after 2s", "0", "IMP001", verb="wait",
         wrap=(*LOOP, "--pause", "{0.5s}", "--log", "{dir}/log", "--mode", "truncate", "--"), options=("--log", "{dir}/log")),
    loop("wait-log-rotated", "--load 4s --die import --after 2s", "0", "IMP001", verb="wait",
         wrap=(*LOOP, "--pause", "{0.5s}", "--log", "{dir}/log", "--mode", "rotate", "--"), options=("--log", "{dir}/log")),
    loop("wait-by-the-loop's-pid", "--load 4s --die nccl --after 2s", "0", verb="wait", wrap=(*LOOP, "--pause", "{0.5s}", "--log", "{dir}/log", "--"),
         options=("--log", "{dir}/log", "--pid", "{pid}"), checks=("attempts_3",)),
    loop("recovers-at-the-third", "--load 2s --die import,nccl,none --after 1s --attempts {dir}/attempts", "{0.5s}", expect=READY, checks=("attempts_3_here", "not_early"),
         mark="TOKENS"),
)
STUCK_ROWS = (
    Row(name="asleep-for-ever", group=STUCK, faults=words("--load 10s --stick sleep --after 5s"), expect=("stalled",), checks=("alive", "says_stack"),
        limit_s=700.0),
    Row(name="asleep-before-a-line", group=STUCK, command=OTHER, faults=words("--load 10s --stick sleep --after 0.01s"), expect=("stalled",), limit_s=700.0),
    Row(name="spinning", group=STUCK, faults=words("--load 10s --stick spin --after 5s"), expect=("stalled",), checks=("says_spinning",), limit_s=700.0),
    Row(name="crawling-download", group=STUCK, command=OTHER, faults=words("--load 2s --crawl {dir}/part --crawl-for 400s"), expect=READY,
        checks=("not_early", "at_once"), mark="TOKENS", limit_s=600.0),
    Row(name="job-stuck", group=STUCK, verb="run", command=JOB, faults=words("--steps 10 --stick --at-step 4"), expect=("stalled",), limit_s=700.0),
    Row(name="wait-up-with-a-quiet-log", group=STUCK, verb="wait", faults=words("--load 1s --quiet"), options=("--log", "{dir}/log"), expect=READY,
        checks=("at_once",), mark="TOKENS"),
    Row(name="wait-stuck-with-a-quiet-log", group=STUCK, verb="wait", faults=words("--load 10s --stick sleep --after 5s"), options=("--log", "{dir}/log"),
        expect=("stalled",), limit_s=700.0),
)
LIE_ROWS = (
    lie("health-200-requests-hang", "--load 1s --lie hang --at bound", "unhealthy"),
    lie("health-200-requests-fail", "--load 1s --lie fail --at bound", "unhealthy", command=VLLM),
    lie("health-accepts-and-never-answers", "--load 1s --lie mute-health --at bound", "ready", mark="TOKENS", checks=("at_once",)),
    # Two readings: "it was ready; now it does not serve" would leave `stalled` (law 7) for one that never said anything. But an
    # open port says that something is up, and the issue counts this among the lies: the same hung engine as behind a green
    # health path, told after the same minute and not after five.
    lie("nothing-ever-answers", "--load 1s --lie mute --at bound", "unhealthy", checks=("alive",)),
    lie("hangs-after-ready", "--load 1s --lie hang --at ready --after 5s", "ready", "unhealthy", follow=True),
    lie("fails-after-ready", "--load 1s --lie fail --at ready --after 5s", "ready", "unhealthy", follow=True, command=VLLM),
    # Law 4 asks for a token, and none can be had without a key: not `ready`. It answers, so that it is not dead either: `degraded`
    # ("it serves, but ...") says both, and its reason that no token was proven.
    lie("refuses-our-key", "--load 1s --lie locked --at bound", "degraded"),
    lie("redirects", "--load 1s --lie redirect --at bound", "unhealthy"),
    lie("health-starves-while-tokens-flow", "--load 1s --lie starve --at ready --after 3s --background-load 200", "ready", "busy", follow=True, command=VLLM),
    lie("starves-from-the-start-while-tokens-flow", "--load 1s --lie starve --at bound --background-load 200 --enable-metrics", "busy"),
    lie("starves-while-tokens-flow-by-log-only", "--load 1s --lie starve --at bound --background-load 200", "busy"),
    lie("port-taken-before", "--load 2s", "refused", cause=("PORT001",), checks=("not_started",),
        before=(("{py}", "{fakes}/squatter.py", "--port", "{port}", "--answer", "openai"),)),
    lie("port-taken-before-by-one-that-says-nothing", "--load 2s", "refused", cause=("PORT001",), checks=("not_started",),
        before=(("{py}", "{fakes}/squatter.py", "--port", "{port}", "--answer", "silent"),)),
    lie("port-taken-after-our-start", "--load 30s", "unhealthy", cause=("PORT001",), act="squat"),
    lie("wait-for-ours-while-another-answers", "--load 60s", "unhealthy", verb="wait", cause=("PORT001",), options=("--log", "{dir}/log", "--pid", "{pid}"),
        before=(("{py}", "{fakes}/squatter.py", "--port", "{port}", "--answer", "openai"),)),
    lie("model-not-listed", "--load 1s --lie other-model --at bound", "degraded", options=("--model", "m"), mark="TOKENS"),
    lie("reply-without-a-token", "--load 1s --lie tokenless --at bound", "unhealthy"),
    lie("reply-without-a-count", "--load 1s --lie uncounted --at bound", "unhealthy"),
    lie("yesterday's-ready-in-the-log", "--load 5s", "ready", options=("--log", "{dir}/log"), act="old_log", checks=("not_early", "at_once"), mark="TOKENS"),
    lie("yesterday's-ready-and-stuck", "--load 10s --stick sleep --after 4s", "stalled", options=("--log", "{dir}/log"), act="old_log", limit_s=700.0),
    lie("wait-yesterday's-ready", "--load 5s", "ready", verb="wait", options=("--log", "{dir}/log"), act="old_log", checks=("not_early", "at_once"), mark="TOKENS"),
)
OWN_ROWS = (
    Row(name="we-are-killed-while-loading", group=OURS, faults=words("--load 10s"), expect=READY, act="kill_watcher", checks=("one_life", "at_once"), mark="TOKENS"),
    Row(name="we-are-killed-after-ready", group=OURS, faults=words("--load 1s"), follow=True, expect=READY, act="kill_watcher_ready", checks=("one_life",),
        mark="NONE"),
    Row(name="cut-while-loading", group=OURS, faults=words("--load 40s"), expect=READY, act="cut_loading", where=(SSH,), mark="TOKENS", limit_s=120.0),
    Row(name="cut-after-ready", group=OURS, faults=words("--load 1s"), follow=True, expect=("ready", "stopped"), act="cut_ready", where=(SSH,), mark="ASKED",
        limit_s=120.0),
    Row(name="frozen-after-ready", group=OURS, faults=words("--load 1s"), follow=True, expect=("ready", "stopped"), act="freeze_ready", where=(SSH,), mark="ASKED",
        limit_s=120.0),
    Row(name="died-while-cut", group=OURS, faults=words("--load 1s --die exit:7 --at ready --after 10s"), follow=True, expect=("ready", "crashed"),
        act="cut_ready_only", where=(SSH,), mark="MENDED", checks=("exit_7",), limit_s=120.0),
    Row(name="cut-for-good", group=OURS, faults=words("--load 1s"), follow=True, expect=("ready", "unreachable"), act="cut_for_good", where=(SSH,), mark="CUT",
        limit_s=180.0),
    Row(name="host-rebooted", group=OURS, faults=words("--load 1s"), follow=True, expect=("ready", "crashed"), cause=("HOST001",), act="reboot",
        options=("--reach", "{dir}/host"), where=(LOCAL,), mark="REBOOTED", limit_s=120.0),
    Row(name="no-python3-there", group=OURS, expect=("error:1",), options=("--reach", "env -i PATH=/nowhere"), where=(LOCAL,), checks=("says_python3", "one_line", "not_started"),
        mark="NONE"),
    Row(name="host-does-not-resolve", group=OURS, expect=("error:2",), options=("--on", "no-such-host.invalid"), where=(LOCAL,),
        checks=("says_resolve", "one_line", "not_started"), mark="NONE"),
    Row(name="log-cannot-be-read", group=OURS, verb="wait", faults=words("--load 1s --log-file /dev/null"), options=("--log", "{dir}"), expect=READY, checks=("warned", "at_once"),
        mark="TOKENS"),
    Row(name="log-to-choke-on", group=OURS, command=("{py}", "{fakes}/hostile.py", "--bytes", "{1GB}", *OTHER[2:]), faults=words("--load 2s"), expect=READY,
        mark="TOKENS", limit_s=240.0),
    Row(name="disk-full-from-the-start", group=OURS, faults=words("--load 1s"), expect=("error:1",), act="full_disk", where=(LOCAL,), checks=("gone", "says_full", "one_line",
        "not_started"), mark="NONE"),
    Row(name="disk-fills-up-meanwhile", group=OURS, faults=words("--load 8s"), options=("--log", "{dir}/log", "--trace", "{dir}/trace"), expect=READY,
        act="fill_disk", where=(LOCAL,), checks=("at_once",), mark="TOKENS"),
    Row(name="clock-jumps-ahead-and-back", group=OURS, faults=words("--load 8s"), expect=READY, act="jump_clock", where=(LOCAL,), checks=("at_once",), mark="TOKENS"),
)

# fmt: on
ROWS: tuple[Row, ...] = (*HEALTHY_ROWS, *DEATH_ROWS, *LOOP_ROWS, *STUCK_ROWS, *LIE_ROWS, *OWN_ROWS)
