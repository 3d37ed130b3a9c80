"""Lives in a log are counted, whoever started the server again and whatever carried its lines.

The logs are made up here, of each engine's own opening lines and of the words of shells, containers and supervisors.
"""

import functools
import operator

import pytest

from vigil.diagnosis.postmortem import Log, Postmortem
from vigil.engines import TABLES


def count(lines: list[str]) -> int:
    postmortem = Postmortem(tuple(TABLES.values()), Log(file="x.log"))
    postmortem.feed("".join(f"{line}\n" for line in lines).encode())
    return postmortem.close().attempts


def vllm(n: int, *, banner: bool = True, pid: int = 40) -> list[str]:
    api, core, at = f"(APIServer pid={pid + n})", f"(EngineCore_DP0 pid={pid + 50 + n})", f"03-01 1{n}:00"
    head = [
        f"{api} INFO {at}:01 [api_server.py:1839] vLLM API server version 0.11.0",
        f"{api} INFO {at}:01 [utils.py:233] non-default args: {{'model': '/m'}}",
    ]
    return [
        *(head if banner else []),
        f"{core} INFO {at}:08 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/m'",
        f"{core} INFO {at}:12 [gpu_model_runner.py:2602] Starting to load model /m...",
        f"{core} ERROR {at}:23 [core.py:708] EngineCore failed to start.",
        f"{core} ERROR {at}:23 [core.py:708] Traceback (most recent call last):",
        f'{core} ERROR {at}:23 [core.py:708]   File "/v/vllm/v1/engine/core.py", line 699, in run_engine_core',
        f"{core} ERROR {at}:23 [core.py:708] ValueError: No available memory for the cache blocks.",
        f"{api} Traceback (most recent call last):",
        f'{api}   File "/v/bin/vllm", line 8, in <module>',
        f"{api} RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}",
    ]


def sglang(n: int, *, banner: bool = True, port: int = 30000) -> list[str]:
    at = f"[2026-03-01 1{n}:00"
    dead = [
        line
        for rank in (0, 1)
        for line in (
            f"{at}:09 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):",
            '  File "/s/sglang/srt/model_executor/model_runner.py", line 647, in load_model',
            "    self.model = get_model(",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 352.00 MiB.",
            "",
            f"{at}:09] Received sigquit from a child process. It usually means the child failed.",
        )
    ]
    return [
        *([f"{at}:01] server_args=ServerArgs(model_path='/m', tp_size=2, port={port})"] if banner else []),
        *(f"{at}:04 TP{rank}] Init torch distributed begin." for rank in (0, 1)),
        *(f"{at}:05 TP{rank}] Load weight begin. avail mem=78.7 GB" for rank in (0, 1)),
        *dead,
    ]


def llama(n: int, *, banner: bool = True) -> list[str]:
    return [
        *(
            [
                "build: 6050 (78452405) with cc (Ubuntu 11.4.0) 11.4.0 for x86_64-linux-gnu",
                f"system info: n_threads = {8 + n}",
            ]
            if banner
            else []
        ),
        "main: loading model",
        "srv    load_model: loading model '/m.gguf'",
        "gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)",
        "srv    operator(): operator(): cleaning up before exit...",
        "main: exiting due to model loading error",
    ]


def llama_2026(n: int, *, banner: bool = True) -> list[str]:
    return [
        *(
            [
                f"0.00.100.00{n} I cmn  common_param: common_params_print_info: verbosity = 3 (adjust with the `-lv N` CLI arg)"
            ]
            if banner
            else []
        ),
        f"0.00.106.00{n} I srv    load_model: loading model '/m.gguf'",
        f"0.00.110.00{n} E gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)",
        f"0.00.110.00{n} E srv  llama_server: exiting due to model loading error",
    ]


ENGINES = {"vllm": vllm, "sglang": sglang, "llama": llama, "llama-2026": llama_2026}
CARRIERS = (
    "{}",
    "vllm-1  | {}",
    "[pod/srv-0/vllm] {}",
    "srv-0 vllm {}",
    "2026-03-01T1N:00:01+0000 gpu1 vllm[12]: {}",
    "2026-03-01T1N:00:01.123456789Z stderr F {}",
    "Mar 01 1N:00:01 {}",
    "0: {}",
    "[1,0]<stdout>:{}",
    "(ServeReplica:default:VLLM pid=6840, ip=10.0.0.1) {}",
    "[VLLM LOG] {}",
    "0|vllm     | {}",
    "2026-03-01 1N:00:01,123 - srv - INFO - {}",
)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("engine", ENGINES)
def test_lives_are_counted_by_their_banners_whatever_carried_them(engine: str, carrier: str) -> None:
    lives = [[carrier.replace("N", str(n), 1).format(line) for line in ENGINES[engine](n)] for n in range(3)]
    assert count(functools.reduce(operator.iadd, lives, [])) == 3
    assert count(lives[0]) == 1
    assert count([*lives[0][:3], *lives[1]]) == 2, "killed without a word"
    assert count([*lives[0][-4:], *lives[1]]) == 2, "its beginning is cut off"


AGAIN = (
    "The server process exited with code 1. Relaunching...",
    "respawning vllm",
    "Server died. Starting again in 5s",
    "sglang server exited (rc=1), restart in 30s",
    "watchdog: server unhealthy, restarting",
    "Retrying in 10 seconds (attempt 2/5)",
    "[launcher] attempt #2",
    "try 2/5",
    "=== start 2 ===",
    "--- run 2 ---",
    "##### starting vllm, try 2 #####",
    "docker: container die vllm (exitCode=1)",
    " Container vllm  Started",
    "web.1 | exited with code 1",
    "[2026-03-01 10:05:00 +0000] [7] [ERROR] Worker (pid:12) exited with code 1",
    "[supervise] child exited status=1",
    "runsv vllm: child crashed",
    "monit: vllm process is not running, trying to restart",
    "vllm.service: Start request repeated too quickly.",
)


@pytest.mark.parametrize("words", AGAIN)
@pytest.mark.parametrize("engine", ENGINES)
def test_lives_without_banners_are_told_apart_by_a_supervisors_words(engine: str, words: str) -> None:
    first, second = (ENGINES[engine](n, banner=False) for n in range(2))
    assert count(["$ ./serve.sh 2>&1 | tee log", *first, words, *second]) == 2
    assert count(["$ ./serve.sh 2>&1 | tee log", *first, words]) == 1


def test_words_of_a_download_that_tries_again_end_no_life() -> None:
    tries = "Error while downloading from https://hub.example/m: read timed out. Retrying in 5s [Retry 1/5]."
    assert count([*vllm(0)[:3], tries, *vllm(0)[3:]]) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_log_that_was_written_twice_tells_of_one_life(engine: str) -> None:
    life = ENGINES[engine](0)
    assert count([line for one in life for line in (one, one)]) == 1, "through two tees"
    if "llama" not in engine:  # its lines tell no time of day
        assert count([*life, *life]) == 1, "pasted twice"


def test_ranks_and_workers_of_one_start_each_print_the_banner() -> None:
    workers = [sglang(0, port=31000 + one)[0] for one in range(4)]
    assert count([*workers, *sglang(0, banner=False)]) == 1
    assert (
        count([*workers, *sglang(0, banner=False), "Killed", *(line.replace(" 10:", " 11:") for line in workers)]) == 2
    )
    ranks = [
        f"INFO 03-01 10:00:0{rank} [utils.py:233] non-default args: {{'tensor_parallel_size': 4}}" for rank in range(4)
    ]
    assert count(ranks) == 1


def test_elastic_agent_that_starts_its_ranks_again_begins_a_life() -> None:
    def ranks(hour: int) -> list[str]:
        return [
            f"INFO 03-01 {hour}:00:0{n} [utils.py:233] non-default args: {{'tensor_parallel_size': 4}}"
            for n in range(4)
        ]

    agent = (
        "W0301 10:01:02.000000 900 torch/distributed/elastic/agent/server/api.py:929] [default] Worker group FAILED. "
    )
    assert count([*ranks(10), f"{agent}3/3 attempts left; will restart worker group", *ranks(10), "done"]) == 2


def test_engine_that_says_hello_late_belongs_to_the_same_life() -> None:
    core = "(EngineCore_DP{0} pid=2{0}) {1} 03-01 10:00:09 [core.py:7] {2}"
    hello = [core.format(n, "INFO", "Initializing a V1 LLM engine (v0.11.0) with config: model='/m'") for n in range(4)]
    failed = core.format(0, "ERROR", "EngineCore failed to start.")
    assert count([*vllm(0)[:2], *hello[:3], failed, hello[3]]) == 1


def test_children_of_a_router_are_no_lives_of_it() -> None:
    router = [*llama_2026(0)[:1], "0.05.000.001 I srv  llama_server: listening on http://127.0.0.1:8080"]
    spawn = "0.06.000.001 I srv          load: spawning server instance with name=m{0} on port 4900{0}"
    children = [[spawn.format(n), *(f"[4900{n}] {line}" for line in llama_2026(n))] for n in range(3)]
    assert count(sum(children, router)) == 1
    assert count([*sum(children, router), "Killed", *sum(children, router)]) == 2


@pytest.mark.parametrize(
    "first",
    [
        '  File "/s/scheduler.py", line 2, in run',
        "scheduler = Scheduler(server_args, port_args)",
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]",
        'INFO:     10.0.0.1:5001 - "GET /health HTTP/1.1" 200 OK',
        "/v/torch/cuda/__init__.py:63: FutureWarning: The pynvml package is deprecated.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 352.00 MiB.",
    ],
)
def test_log_that_begins_in_the_middle_of_something_has_no_opening(first: str) -> None:
    second = 'File "/s/scheduler.py", line 3, in run' if first.startswith("scheduler") else "x"
    assert count([first, second, *sglang(0, banner=False), first, second]) == 1


def test_clock_that_is_set_back_begins_no_life() -> None:
    assert count([*sglang(1)[:4], *sglang(0, banner=False)]) == 1
