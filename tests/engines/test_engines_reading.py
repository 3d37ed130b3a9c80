"""Lines of other versions than our logs have, from the engines' sources and public reports; and hostile ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.engine_table import EngineTable, Phase
from vigil.engines import TABLES
from vigil.reading import HEAD_CHARS, read_sign

P = Phase
LINES = [
    # SGLang, old spellings (sources of 0.4.9 to 0.5.10)
    ("sglang", "[2025-08-13 09:41:01 TP0] Load weight begin. avail mem=78.58 GB", P.LOADING_WEIGHTS),
    (
        "sglang",
        "[2025-09-14 20:08:12] Capture cuda graph begin. This can take up to several minutes.",
        P.CAPTURING_GRAPHS,
    ),
    ("sglang", "[2026-01-02 20:08:12] Capture draft extend cuda graph begin. This can take", P.CAPTURING_GRAPHS),
    ("sglang", "[2026-01-02 20:08:12] Capture piecewise CUDA graph end. Time elapsed: 3.1 s.", P.CAPTURING_GRAPHS),
    ("sglang", "[2026-05-15 20:31:33] KV Cache is allocated. #tokens: 131072, KV size: 8.58 GB", P.ALLOCATING_KV),
    ("sglang", "[2026-05-15 20:31:33] Mamba Cache is allocated. max_mamba_cache_size: 12", P.ALLOCATING_KV),
    ("sglang", "[2025-09-14 20:08:14 TP0] Entering DeepGEMM JIT Pre-Compile session. It may", P.COMPILING),
    # vLLM, all forms of prefix
    ("vllm", "INFO 04-28 09:00:00 [gpu_model_runner.py:1276] Starting to load model /m...", P.LOADING_WEIGHTS),
    (
        "vllm",
        "(VllmWorker rank=0 pid=814) INFO 04-28 09:00:00 [x.py:1] Starting to load model /m...",
        P.LOADING_WEIGHTS,
    ),
    ("vllm", "(EngineCore_DP0 pid=9) INFO 01-02 09:00:00 [x.py:1] Loading drafter model...", P.LOADING_DRAFT),
    (
        "vllm",
        "(Worker_TP0 pid=9) INFO 01-02 09:00:00 [x.py:1] Model loading took 15.1 GiB and 9.1 seconds",
        P.ALLOCATING_KV,
    ),
    (
        "vllm",
        "INFO 06-15 09:00:01 [x.py:462] Using cache directory: /c/7a1 for vLLM's torch.compile",
        P.COMPILING,
    ),
    ("vllm", "INFO 06-15 09:00:03 [backends.py:472] Dynamo bytecode transform time: 4.80 s", P.COMPILING),
    ("vllm", "INFO 06-15 09:00:03 [monitor.py:34] torch.compile takes 21.42 s in total", P.COMPILING),
    ("vllm", "INFO 06-15 09:00:03 [kv_cache_utils.py:829] GPU KV cache size: 120,000 tokens", P.ALLOCATING_KV),
    (
        "vllm",
        "INFO 01-30 21:39:09 model_runner.py:625] Capturing the model for CUDA graphs. This may",
        P.CAPTURING_GRAPHS,
    ),
    ("vllm", "INFO 06-15 09:00:03 [x.py:1] Graph capturing finished in 18 secs, took 0.55 GiB", P.CAPTURING_GRAPHS),
    (
        "vllm",
        "(APIServer pid=7) INFO 09-20 10:00:00 [api_server.py:1] Starting vLLM API server 0 on http://0.0.0.0:8000",
        P.BINDING,
    ),
    ("vllm", "(APIServer pid=7) INFO:     Application startup complete.", P.SERVING),
    # llama-server, old and middle
    ("llamacpp", "build: 6428 (a1faeb) with cc (Ubuntu 11.4.0) 11.4.0 for x86_64-linux-gnu", P.LAUNCHING),
    ("llamacpp", "main: HTTP server is listening, hostname: 0.0.0.0, port: 8080, http threads: 15", P.LAUNCHING),
    ("llamacpp", "main: loading model", P.LOADING_WEIGHTS),
    ("llamacpp", "srv    load_model: loading model '/m.gguf'", P.LOADING_WEIGHTS),
    ("llamacpp", "llama_kv_cache_unified:        CPU KV buffer size =   144.00 MiB", P.ALLOCATING_KV),
    ("llamacpp", "common_init_from_params: warming up the model with an empty run - please wait ...", P.WARMING_UP),
    ("llamacpp", "main: server is listening on http://127.0.0.1:8080 - starting the main loop", P.SERVING),
    ("llamacpp", "0.00.5 I srv  llama_server: server is listening on http://0.0.0.0:8080", P.SERVING),
    ("generic", "INFO:     Uvicorn running on http://127.0.0.1:8090 (Press CTRL+C to quit)", P.SERVING),
]
BARS = [
    ("sglang", "Loading safetensors checkpoint shards:  98% Completed | 63/64 [00:13<00:00, 19.74it/s]", 63, 64),
    ("sglang", "Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]", 0, 1),
    ("sglang", "Loading safetensors using InstantTensor:  50% Completed | 5/10 [00:00<00:01, 1it/s]", 5, 10),
    ("sglang", "Capturing batches (bs=4 avail_mem=9.21 GB):  33%|###3      | 1/3 [00:00<00:01,  4.93it/s]", 1, 3),
    ("sglang", "Capturing num tokens (num_tokens=8192 avail_mem=1.2 GB):   4%|▎ | 2/58 [00:01<00:35,  1.6it/s]", 2, 58),
    ("sglang", "DeepGEMM warmup:  12%|█▏        | 2048/16384 [00:44<00:00,  5.75it/s]", 2048, 16384),
    (
        "vllm",
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██████████| 67/67 [00:02<00:00, 26it/s]",
        67,
        67,
    ),
    ("vllm", "Capturing CUDA graph shapes:  50%|█████     | 10/20 [00:02<00:02, 4it/s]", 10, 20),
    ("vllm", "Fetching 12 files:  33%|███▎      | 4/12 [00:10<00:20,  2.5s/it]", 4, 12),
    (
        "vllm",
        "model-00001-of-00004.safetensors:  45%|████▍     | 1.20G/2.70G [00:10<00:12, 118MB/s]",
        1_200_000_000,
        2_700_000_000,
    ),
    ("generic", "Loading weights: 100%|██████████| 272/272 [00:00<00:00, 11068.27it/s]", 272, 272),
]
NOTHINGS = [
    ("sglang", '[2026-11-30 07:49:26] INFO:     127.0.0.1:42862 - "GET /health HTTP/1.1" 503 Service Unavailable'),
    ("sglang", "    server_args=server_args,"),
    ("sglang", "[2026-11-30 07:49:26] Receive: obj=GenerateReqInput(text='The server is fired up and ready to roll!')"),
    ("sglang", "    raise Exception('Capture cuda graph failed')"),
    ("vllm", "(APIServer pid=1) INFO 11-30 07:40:26 [logger.py:40] Received request cmpl-1: prompt: 'EngineDeadError'"),
    ("vllm", "Route: /v1/models, Methods: GET"),
    ("llamacpp", "[51234] 0.01.2 I srv  llama_server: listening on http://127.0.0.1:51234"),
    ("llamacpp", "[51234] 0.00.1 I cmn  common_param: common_params_print_info: verbosity = 3 (adjust with)"),
    ("llamacpp", "srv  log_server_r: request: GET /listening%20on%20http://x 127.0.0.1 404"),
    ("llamacpp", "0.00.1 I srv  llama_server: build: something else"),
]


@pytest.mark.parametrize(("engine", "line", "phase"), LINES)
def test_line_of_another_version_has_its_phase(engine: str, line: str, phase: Phase) -> None:
    reading = read_sign(TABLES[engine], line)
    assert reading is not None
    assert reading.phase is phase


@pytest.mark.parametrize(("engine", "line", "done", "total"), BARS)
def test_bar_is_read(engine: str, line: str, done: int, total: int) -> None:
    reading = read_sign(TABLES[engine], line)
    assert reading is not None
    assert (reading.done, reading.total) == (done, total)


@pytest.mark.parametrize(("engine", "line"), NOTHINGS)
def test_line_that_quotes_or_only_resembles_says_nothing(engine: str, line: str) -> None:
    assert read_sign(TABLES[engine], line) is None


def test_bar_beyond_its_total_has_no_progress() -> None:
    reading = read_sign(TABLES["sglang"], "Multi-thread loading shards: 100% Completed | 9/4 [00:00<?, ?it/s]")
    assert reading is not None
    assert reading.total is None


@pytest.mark.parametrize(
    ("engine", "tag"),
    [
        ("sglang", "[2026-01-20 02:40:07 DP0 TP1]"),
        ("sglang", "[2026-01-20 02:40:07 TP7]"),
        ("sglang", "[2026-01-20 02:40:07.123 DP1 TP0 EP0]"),
        ("sglang", "[2026-01-20 02:40:07 TP10]"),
        ("vllm", "(VllmWorker rank=2 pid=814)"),
        ("vllm", "(VllmWorker-3 pid=814)"),
        ("vllm", "(Worker_TP1_EP1 pid=814)"),
        ("vllm", "(Worker_DP0_TP1 pid=814)"),
        ("vllm", "(EngineCore_DP1 pid=814)"),
    ],
)
def test_other_ranks_move_nothing_but_their_death_counts(engine: str, tag: str) -> None:
    table = TABLES[engine]
    begin = "Load weight begin. avail mem=1 GB" if engine == "sglang" else "INFO 1 [x] Starting to load model m..."
    death = "Scheduler hit an exception: Traceback" if engine == "sglang" else "ERROR 1 [x] WorkerProc failed to start."
    assert read_sign(table, f"{tag} {begin}") is None
    reading = read_sign(table, f"{tag} {death}")
    assert reading is not None
    assert reading.fatal


@pytest.mark.parametrize(
    ("engine", "tag"),
    [
        ("sglang", "[2026-01-20 02:40:07]"),
        ("sglang", "[2026-01-20 02:40:07 TP0]"),
        ("sglang", "[2026-01-20 02:40:07 DP0 PP0 TP0 EP0]"),
        ("sglang", "[2026-01-20 02:40:07 TP8]"),
        ("vllm", "(VllmWorker rank=0 pid=814)"),
        ("vllm", "(Worker_DP0_TP0_EP0 pid=814)"),
        ("vllm", "(Worker pid=814)"),
        ("vllm", "(EngineCore_DP0 pid=814)"),
        ("vllm", "(EngineCore_0 pid=814)"),
    ],
)
def test_first_rank_moves_the_phase(engine: str, tag: str) -> None:
    begin = "Load weight begin. avail mem=1 GB" if engine == "sglang" else "INFO 1 [x] Starting to load model m..."
    reading = read_sign(TABLES[engine], f"{tag} {begin}")
    assert reading is not None
    assert reading.phase is Phase.LOADING_WEIGHTS


@pytest.mark.parametrize(
    ("line", "alive"),
    [
        (
            "INFO 1 [x] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation throughput: 81.2 tokens/s, R",
            True,
        ),
        (
            "INFO 1 [x] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation throughput: 0.4 tokens/s, R",
            True,
        ),
        (
            "INFO 1 [x] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, R",
            False,
        ),
    ],
)
def test_vllm_throughput_of_nothing_is_not_life(line: str, alive: bool) -> None:  # noqa: FBT001
    reading = read_sign(TABLES["vllm"], line)
    assert (reading is not None and reading.alive) == alive


@pytest.mark.parametrize(
    ("line", "alive"),
    [
        (
            "[2026-11-30 07:51:38] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.00",
            True,
        ),
        ("[2025-01-30 07:51:38] Prefill batch. #new-seq: 4, #new-token: 64, #cached-token: 0, token usage: 0.00", True),
        ("[2025-01-30 07:51:38] Prefill batch. #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00", False),
        ("[2025-05-15 09:00:01 TP0] Decode batch. #running-req: 1, #token: 40, token usage: 0.00", True),
    ],
)
def test_sglang_prefill_of_a_probe_is_not_life(line: str, alive: bool) -> None:  # noqa: FBT001
    reading = read_sign(TABLES["sglang"], line)
    assert (reading is not None and reading.alive) == alive


@given(table=st.sampled_from(list(TABLES.values())), text=st.text(max_size=300))
def test_unknown_text_never_raises(table: EngineTable, text: str) -> None:
    read_sign(table, text)


@given(data=st.data(), table=st.sampled_from(list(TABLES.values())))
def test_pieces_of_signs_in_any_order_never_raise(data: st.DataObject, table: EngineTable) -> None:
    pieces = [sign.text for sign in table.signs] + ["1/3 [", "[2026-01-01 00:00:00 TP", "(Worker_", "9" * 40, "G/", " "]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=12)))
    reading = read_sign(table, text)
    assert reading is None or reading.total is None or 0 <= (reading.done or 0) <= reading.total


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_text_of_a_table_is_found(table: EngineTable) -> None:
    for text in (*table.banners, *table.ready_lines, *table.fatal_lines):
        if table.banner_pattern is None or text not in table.banners:
            assert read_sign(table, f"x {text} y") is not None, text
    for sign in table.signs:
        if sign.pattern is None:
            reading = read_sign(table, f"x {sign.text} y")
            assert reading is not None
            assert reading.phase is sign.phase


@pytest.mark.timeout(20)
@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
@pytest.mark.parametrize(
    "unit", ["Capturing ", "1/", "(Worker_TP0", " TP0", "Fetching 1 files", "a b", "[", "1.1G/1.1"]
)
def test_hostile_line_is_read_at_once(table: EngineTable, unit: str) -> None:
    long = unit * (100_000 // len(unit))
    for prefix in ("", "[2026-01-01 00:00:00", "Capturing ", "Prefill batch, "):
        for _ in range(50):
            read_sign(table, prefix + long)


def test_nothing_beyond_the_head_of_a_line_is_read() -> None:
    line = "x" * HEAD_CHARS + "The server is fired up and ready to roll!"
    assert read_sign(TABLES["sglang"], line) is None
