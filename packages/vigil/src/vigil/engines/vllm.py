"""vLLM 0.9 to 0.33: what it prints, in which order, and where it answers.

Read in the sources of 0.32, in real logs of 0.32 (CPU) and in public reports from 0.8 on. A line's prefix is `INFO
06-19 23:05:01 [file:line]` to 0.9, `(VllmWorker rank=0 pid=1)` or `(EngineCore_DP0 pid=1)` before that to about 0.31,
and `(EngineCore pid=1) INFO ...` later; none of it is needed here but to tell ranks apart.
"""

from vigil.engine_table import EngineTable, MetricNames, Phase, Sign
from vigil.engines.bars import COUNTED, DOWNLOADING, LOADING
from vigil.engines.patched import PATCHED
from vigil.ready_lines import VLLM

_SIGNS = (
    *(Sign(phase=Phase.SERVING, text=text) for text in VLLM),
    Sign(phase=Phase.IMPORTING, text="non-default args:"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="Starting to load model"),
    Sign(phase=Phase.LOADING_DRAFT, text="Loading drafter model"),
    *LOADING,
    *DOWNLOADING,
    Sign(phase=Phase.LOADING_WEIGHTS, text="Loading weights took"),
    Sign(phase=Phase.ALLOCATING_KV, text="Model loading took"),
    Sign(phase=Phase.COMPILING, text="Using cache directory:", pattern=r"torch\.compile"),
    Sign(phase=Phase.COMPILING, text="Dynamo bytecode transform time"),
    Sign(phase=Phase.COMPILING, text="Compiling a graph for"),
    Sign(phase=Phase.COMPILING, text="Directly load"),
    Sign(phase=Phase.COMPILING, text="torch.compile takes"),
    Sign(phase=Phase.COMPILING, text="Warming up model for the compilation", since="CPU"),
    Sign(phase=Phase.ALLOCATING_KV, text="Available KV cache memory:"),
    Sign(phase=Phase.ALLOCATING_KV, text="KV cache size:"),
    Sign(phase=Phase.ALLOCATING_KV, text="# GPU blocks:", since="to 0.10 (V0)"),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="Capturing CUDA graph", pattern=COUNTED),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="CUDA graphs", pattern=r"Capturing [\w -]{0,40}CUDA graphs"),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="Capturing model for speculator"),
    Sign(phase=Phase.CAPTURING_GRAPHS, text="Graph capturing finished"),
    Sign(phase=Phase.BINDING, text="init engine (profile, create kv cache, warmup model) took"),
    Sign(phase=Phase.BINDING, text="Starting vLLM API server", since="to about 0.31"),
    Sign(phase=Phase.BINDING, text="Starting vLLM server on", since="0.32"),
    Sign(phase=Phase.BINDING, text="Started server process"),
    Sign(phase=Phase.BINDING, text="Waiting for application startup."),
)

_RELAYS = (
    "Engine core initialization failed",
    "Frontend process failed during engine core initialization",
    "WorkerProc initialization failed due to an exception in a background process",
    "Engine process failed to start",
    "EngineDeadError",
    "AsyncLLM output_handler failed",
    "engine core exited unexpectedly",
    "died unexpectedly",
)

TABLE = EngineTable(
    name="vllm",
    title="vLLM",
    commands=(
        "vllm serve",
        "vllm.entrypoints.openai.api_server",
        "vllm.entrypoints.api_server",
        "vllm.entrypoints.launchers.api_server.entry",
    ),
    images=("vllm/vllm-openai",),
    main_signs=("vllm serve", "vllm.entrypoints.", "vllm/entrypoints/openai/api_server.py"),
    # Printed once by the API server, however many of them there are; "args: Namespace(" is its form to 0.8.
    banners=("non-default args:", "args: Namespace("),
    banner_pattern=r"(?:^|\] )(?:non-default )?args: ",
    signs=_SIGNS,
    ready_lines=VLLM,
    alive_lines=("Avg generation throughput:",),
    idle_pattern=r"Avg generation throughput: 0(?:\.0{1,3})? ",
    harmless=(
        "No available shared memory broadcast block",
        "Custom allreduce is disabled",
        "Found ulimit of",
        "Failed to create oneDNN linear, fallback",
        "Triton is not installed",
        "Triton is installed, but",
        "is not found in LD_PRELOAD",
        "NUMA binding: Using MEMBIND",
        "FutureWarning:",
        "destroy_process_group() was not called",
        "nanobind: leaked",
        "leaked semaphore objects",
        "leaked shared_memory objects",
        "Enforce eager set, disabling",
        "Config file not found at",
    ),
    relays=_RELAYS,
    fatal_lines=(
        *_RELAYS,
        "EngineCore failed to start",
        "EngineCore encountered a fatal error",
        "EngineCore hit an exception",
        "WorkerProc failed",
        "WorkerProc hit an exception",
        "Timed out waiting for engine core processes to start",
        ": error: unrecognized arguments:",
        ": error: ambiguous option:",
        ": error: argument -",
        ": error: the following arguments are required:",
    ),
    # --enable-log-requests and --enable-log-outputs quote prompts and answers.
    echo_pattern=r".{0,90}\] (?:Received request|Generated response) ",
    # "(EngineCore_DP1 pid=7)", "(Worker_DP0_TP1_EP1 pid=7)", "(VllmWorker rank=2 pid=7)", "(VllmWorker-0 pid=7)".
    rank_pattern=(
        r"\((?:EngineCore|VllmWorker|Worker|APIServer)"
        r"(?:_(?:DP|PP|TP|EP|PCP|DCP)?0| rank=0(?= )|-0(?= ))*"
        r"(?P<other>_[A-Z]{0,3}\d| rank=\d|-\d)?"
    ),
    hallmarks=(
        "vLLM API server version",
        "vLLM server version",
        "Starting vLLM",
        "LLM engine (v",
        "(EngineCore",
        "(APIServer pid=",
        "(VllmWorker",
        "vllm: error:",
        "site-packages/vllm/v1/",
        "site-packages/vllm/entrypoints/",
        "/vllm/v1/",
        "/vllm/entrypoints/",
        "/vllm/engine/",
        "/vllm/executor/",
        "vllm serve: error:",
        "(Worker_TP",
        "(RayWorkerWrapper pid=",
        "Avg prompt throughput:",
    ),
    version_patterns=(
        r"LLM engine \(v(\d+\.\d+[\w.+]{0,40})\)",
        r"vLLM (?:API )?server version (\d+\.\d+[\w.+]{0,40})",
        r"\[(?:api_)?utils\.py:\d+\].{0,60} version (\d+\.\d+[\w.+]{0,40})$",
    ),
    workers=("VLLM::EngineCore", "VLLM::Worker", "VLLM::DPCoordinator"),
    repeats_as={Phase.LOADING_WEIGHTS: Phase.LOADING_DRAFT},  # the bars after "Loading drafter model" are the draft's
    imports=True,
    silent_s={
        Phase.LAUNCHING: 120.0,  # 32 s were seen before the first line
        Phase.IMPORTING: 300.0,  # 64 s were seen between two lines of a healthy start (logs/vllm-cpu)
        Phase.LOADING_WEIGHTS: 300.0,
        Phase.LOADING_DRAFT: 300.0,
        # The profiling run hides a compilation, and its kernels' own compilers print nothing.
        Phase.ALLOCATING_KV: 600.0,
        # Compilation printed nothing of its own for 182 s on a CPU (logs/vllm-cpu/slow-compile-sigterm).
        Phase.COMPILING: 900.0,
        Phase.CAPTURING_GRAPHS: 600.0,
        Phase.BINDING: 120.0,
        Phase.WARMING_UP: 600.0,  # VLLM_ENGINE_READY_TIMEOUT_S is 600 s
    },
    metrics=MetricNames(
        path="/metrics",
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        tokens_total=("vllm:generation_tokens_total", "vllm:generation_tokens"),
        drafts=("vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_drafts"),
        proposed=("vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_draft_tokens"),
        accepted=("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens"),
    ),
    key_flags=("--api-key",),
    key_variables=("VLLM_API_KEY",),
    tls_flags=("--ssl-certfile",),
    model_flags=("--model",),
    draft_flags=("--speculative-model", "--speculative-config.model", "--tokenizer"),
    draft_configs=("--speculative-config", "-sc"),
    imports_as=("vllm",),
    argument_classes=("VllmConfig",),
    argument_roots=("vllm.config.vllm:_current_vllm_config", "vllm.config:_current_vllm_config"),
    measured_by="/v1/completions",
    info_paths=("/server_info?config_format=json", "/server_info"),  # with VLLM_SERVER_DEV_MODE=1 only
    environment=("VLLM_", "NCCL_", "CUDA_VISIBLE_DEVICES", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    packages=("vllm", "vllm-flash-attn", *PATCHED),
    model_position=True,
    default_host="0.0.0.0",  # noqa: S104 - a fact about vLLM: without --host it binds everywhere
    default_port=8000,
    speculation_flags=("--speculative-config", "-sc", "--speculative-model"),
)
