"""SGLang 0.4.9 to 0.5.23: what it prints, in which order, and where it answers.

Read in the sources of 0.4.9, 0.5.2, 0.5.10 and 0.5.23, and in real logs of 0.5.17 (H200) and 0.5.23 (CPU).
"""

from vigil.engine_table import EngineTable, MetricNames, Phase, Sign
from vigil.engines.bars import COUNTED, DOWNLOADING, LOADING
from vigil.engines.patched import PATCHED
from vigil.ready_lines import SGLANG

_SIGNS = (
    *(Sign(phase=Phase.SERVING, text=text) for text in SGLANG),
    Sign(phase=Phase.IMPORTING, text="'sglang serve' is the recommended entrypoint", since="0.5.10 or before"),
    Sign(phase=Phase.IMPORTING, text="server_args=ServerArgs(", since="0.5.17 at least"),
    Sign(phase=Phase.IMPORTING, text="server_args={", since="0.5.23 or before"),
    # "Init torch distributed begin" (to about 0.5.17) and "Init parallel begin" are no signs: a draft repeats them.
    Sign(phase=Phase.LOADING_WEIGHTS, text="Load weight begin", starts=True),
    *LOADING,
    *DOWNLOADING,
    Sign(phase=Phase.ALLOCATING_KV, text="Cache is allocated"),
    Sign(phase=Phase.ALLOCATING_KV, text="Memory pool end"),
    Sign(phase=Phase.COMPILING, text="DeepGEMM JIT"),
    Sign(phase=Phase.COMPILING, text="DeepGEMM warmup:", pattern=COUNTED),
    Sign(phase=Phase.COMPILING, text="Running FlashInfer autotune", since="0.5.10 or before"),
    # "Capture cuda graph begin" (to 0.5.10), "Capture target verify CUDA graph begin" (0.5.17 on), and draft, cpu, npu.
    Sign(phase=Phase.CAPTURING_GRAPHS, text=" graph begin", pattern=r"Capture [A-Za-z_ ]{2,40} graph begin"),
    Sign(phase=Phase.CAPTURING_GRAPHS, text=" graph end", pattern=r"Capture [A-Za-z_ ]{2,40} graph end"),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="Capturing batches", pattern=COUNTED),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="Capturing num tokens", pattern=COUNTED, since="0.5.10 or before"),
    Sign(phase=Phase.BINDING, text="max_total_num_tokens=", pattern=r"\] max_total_num_tokens=\d"),
    Sign(phase=Phase.BINDING, text="Engine startup timings (s):", since="0.5.17 or before"),
    Sign(phase=Phase.BINDING, text="Started server process"),
    # uvicorn calls its start-up complete before SGLang has served its own warm-up request: /health still says 503.
    Sign(phase=Phase.WARMING_UP, text="Application startup complete."),
    Sign(phase=Phase.WARMING_UP, text="Uvicorn running on"),
)

_RELAYS = (
    "Received sigquit from a child process",
    "SIGQUIT received. signum=",
    "Triggering SIGQUIT for cleanup",
    "scheduler died during initialization",
    "scheduler is dead. Please check if there are relevant logs",
    "Initialization failed. warmup error",
)

TABLE = EngineTable(
    name="sglang",
    title="SGLang",
    commands=("sglang serve", "sglang.launch_server", "sglang.srt.entrypoints.http_server"),
    main_signs=("sglang serve", "sglang.launch_server", "sglang/launch_server.py"),
    # Printed by engine.py only, in the process that starts the schedulers (0.4.9 to 0.5.23: one place for the HTTP
    # server).
    banners=("server_args=ServerArgs(", "server_args={"),
    banner_pattern=r"(?:^|\] )server_args=(?:ServerArgs\(|\{)",
    signs=_SIGNS,
    ready_lines=SGLANG,
    alive_lines=("Decode batch", "Prefill batch"),
    # A health call of SGLang is a prefill of one token, and so, nearly, is our own probe: one small prompt is not life.
    idle_pattern=r"Prefill batch[.,] #new-seq: [01], #new-token: \d{1,2},",
    harmless=(
        "Ignore import error when loading",
        "Using default MoE kernel config",
        "Performance might be sub-optimal",
        "Fallback to triton version",
        "Fail to set RLIMIT_NOFILE",
        "MOE_RUNNER_BACKEND is not initialized",
        "MOE_A2A_BACKEND is not initialized",
        "Cannot detect CUDA architecture",
        "is connected to 0 peer ranks",
        "is deprecated and will be removed",
        "SyntaxWarning: invalid escape sequence",
        "destroy_process_group() was not called",
        "leaked semaphore objects",
        "leaked shared_memory objects",
        "Health check request received during shutdown",
        "Pyspy failed (",
        "Triton is not supported on current platform",
    ),
    # kill_process_tree ends every life, an orderly one too: a relay, but not a word of giving up.
    relays=(*_RELAYS, "kill_process_tree called"),
    fatal_lines=(
        *_RELAYS,
        "Scheduler hit an exception",
        "DetokenizerManager hit an exception",
        "TokenizerManager hit an exception",
        "DataParallelController hit an exception",
        "error while attempting to bind on address",
        "watchdog timeout (self.watchdog_timeout=",
        "Watchdog timeout (self.watchdog_timeout=",
        ": error: unrecognized arguments:",
        ": error: ambiguous option:",
        ": error: argument -",
        ": error: the following arguments are required:",
    ),
    # --log-requests quotes the prompts themselves.
    echo_pattern=r"\[[^\]]{0,80}\] (?:Receive|Finish): ",
    # "[2026-11-30 07:51:04 DP0 TP0] ..."; on a further node of eight GPUs the first rank is TP8, and so on.
    rank_pattern=(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
        r"(?: (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)(?:0|8|16|24)(?=[ \]]))*"
        r"(?P<other> (?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d)?"
    ),
    hallmarks=(
        "server_args=ServerArgs(",
        "'sglang serve'",
        "sglang serve: error:",
        "Load weight begin. avail mem=",
        "Init torch distributed begin.",
        "Init parallel begin.",
        "Decode batch, #running-req:",
        "Decode batch. #running-req:",
        "The server is fired up and ready to roll!",
        "site-packages/sglang/",
        "/sglang/srt/",
        "Load weight end. type=",
        "Memory pool end. avail mem=",
        "Capture cuda graph begin. This can take",
        "Capturing batches (",
        "Scheduler hit an exception",
        "Prefill batch, #new-seq:",
        "Prefill batch. #new-seq:",
        "sglang.launch_server",
        "launch_server.py: error:",
    ),
    version_patterns=(r"\bsglang[ =v]{1,3}(\d+\.\d+\.\d+[\w.+]{0,40})",),
    workers=("sglang::",),
    repeats_as={Phase.LOADING_WEIGHTS: Phase.LOADING_DRAFT},
    imports=True,
    silent_s={
        Phase.LAUNCHING: 120.0,
        # 78 s were seen between the banner and the schedulers' first line (CPU box, logs/sglang/cpu-torch-native).
        Phase.IMPORTING: 300.0,
        Phase.LOADING_WEIGHTS: 300.0,
        Phase.LOADING_DRAFT: 300.0,
        Phase.ALLOCATING_KV: 300.0,
        # DeepGEMM says "typically 10-20 mins" of itself, but its bars move (sglang#10424).
        Phase.COMPILING: 900.0,
        Phase.CAPTURING_GRAPHS: 600.0,
        Phase.BINDING: 120.0,
        # SGLANG_WARMUP_TIMEOUT is 600 s in 0.5.23, after which SGLang kills itself.
        Phase.WARMING_UP: 600.0,
    },
    health_costs_token=True,  # from 0.5.2 on; /health was a constant 200 in 0.4.9
    metrics=MetricNames(
        path="/metrics",
        needs_flag="--enable-metrics",
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        tokens_total=("sglang:generation_tokens_total",),
        accept_length=("sglang:spec_accept_length",),
    ),
    key_flags=("--api-key",),
    tls_flags=("--ssl-certfile",),
    model_flags=("--model-path", "--model"),
    draft_flags=("--speculative-draft-model-path", "--speculative-draft-model", "--tokenizer-path"),
    imports_as=("sglang", "sgl_kernel"),
    argument_classes=("ServerArgs",),
    argument_roots=(
        "sglang.srt.runtime_context:_CONTEXT.server_args",  # 0.5.23
        "sglang.srt.server_args:_global_server_args",  # 0.5.4 to about 0.5.20
        "sglang.srt.entrypoints.http_server:_global_state.tokenizer_manager.server_args",
    ),
    measured_by="/generate",
    info_paths=("/server_info", "/get_server_info"),  # the first since 0.5.10 or before; the second is deprecated
    environment=("SGLANG_", "SGL_", "NCCL_", "CUDA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    packages=("sglang", "sgl-kernel", "sglang-kernel", *PATCHED),
    model_position=True,
    default_host="127.0.0.1",
    default_port=30000,
    speculation_flags=("--speculative-algorithm", "--speculative-algo"),
)
