"""llama-server of llama.cpp: what it prints, in which order, and where it answers.

Read in logs of b11434 (Oct 2026, `0.00.001.546 I srv  llama_server: ...`), in the sources of mid 2026, and in public
reports of b4205 to b6428 (`main: server is listening on ...`). At verbosity 3 a start of 2026 prints six lines; all
else is for older builds.
"""

from vigil.engine_table import EngineTable, MetricNames, Phase, Sign
from vigil.ready_lines import LLAMACPP

_SIGNS = (
    *(Sign(phase=Phase.SERVING, text=text) for text in LLAMACPP),
    Sign(phase=Phase.LAUNCHING, text=": initializing ...", since="September 2026 (llama.cpp#29125)"),
    Sign(phase=Phase.LAUNCHING, text="common_params_print_info: verbosity", since="2026"),
    Sign(phase=Phase.LAUNCHING, text="build: ", pattern=r"^build: \d+ \(|main: loading model\b", since="to early 2026"),
    Sign(phase=Phase.LAUNCHING, text="HTTP server is listening, hostname", since="to early 2026"),
    Sign(phase=Phase.LOADING_DRAFT, text="loading draft model"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="loading model '"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="main: loading model"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="llama_model_loader: loaded meta data"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="load_tensors:"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="trying to download model from"),
    Sign(phase=Phase.LOADING_WEIGHTS, text="downloading from http"),
    Sign(phase=Phase.ALLOCATING_KV, text="llama_kv_cache"),
    Sign(phase=Phase.ALLOCATING_KV, text="constructing llama_context"),
    Sign(phase=Phase.WARMING_UP, text="warming up the model with an empty run"),
    Sign(phase=Phase.WARMING_UP, text="initializing, n_slots", since="seen in b11434"),
    Sign(phase=Phase.WARMING_UP, text="initializing slots, n_slots", since="to mid 2026"),
    # The socket is bound before the load already; what follows the model is only the main loop.
    Sign(phase=Phase.WARMING_UP, text=": model loaded"),
)

_RELAYS = (
    "exiting due to model loading error",
    "exiting due to HTTP server error",
)

_DRAFT_FLAGS = ("--spec-draft-model", "--model-draft", "-md", "--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd")

TABLE = EngineTable(
    name="llamacpp",
    title="llama-server",
    commands=("llama-server", "llama serve"),
    images=("ggml-org/llama.cpp:server", "ggerganov/llama.cpp:server"),
    main_signs=("llama-server", "llama serve"),
    # One of the two is printed once a life: the first from early 2026 on, the second before. "initializing ..." is
    # newer.
    banners=("common_params_print_info: verbosity", "build: ", "main: loading model"),
    banner_pattern=r"common_params_print_info: verbosity = \d|(?:^|[\s>:])build: \d+ \([0-9a-f]+\)",
    signs=_SIGNS,
    ready_lines=LLAMACPP,
    alive_lines=("print_timing:", "eval time ="),
    harmless=(
        "security: no API key is set",
        "security: router mode enabled",
        "the full capacity of the model will not be utilized",
        "retrying without pipeline parallelism",
        "server default port will be changed",
        "encountered an error while trying to fit params",
        "no models found on the system",
        "no usable GPU found",
    ),
    relays=_RELAYS,
    fatal_lines=(
        *_RELAYS,
        "error: invalid argument:",
        "error while handling argument",
        "the argument has been removed",
        "failed to initialize HTTP server",
        "GGML_ASSERT(",
        "Received second interrupt, terminating immediately",
    ),
    # A router relays its children's lines as "[54321] line"; a request line quotes the path that a client sent.
    echo_pattern=r"\[ *\d{1,6}\] |.{0,60}log_server_r",
    hallmarks=(
        "llama_model_loader:",
        "common_params_print_info:",
        "srv    load_model:",
        "srv  llama_server:",
        "main: server is listening on http",
        "main: HTTP server is listening",
        "error: invalid argument:",
        "llama_model_load:",
        "load_tensors:",
        "llama_new_context_with_model:",
        "llama_init_from_model:",
        "llama_context:",
        "ggml_cuda_init:",
        "ggml_backend_cuda_buffer_type_alloc_buffer:",
        "gguf_init_from_file:",
        "slot launch_slot_:",
        "slot update_slots:",
        "srv  update_slots:",
        "GGML_ASSERT(",
    ),
    version_patterns=(
        r"build_info: (b\d+[\w-]{0,40})",
        r"\bbuild:? (\d+) \([0-9a-f]{4,40}\)",
    ),
    repeats_as={Phase.LOADING_WEIGHTS: Phase.LOADING_DRAFT},
    silent_s={
        Phase.LAUNCHING: 120.0,
        # With mmap off a model is read at once and at verbosity 3 nothing is printed on the way.
        Phase.LOADING_WEIGHTS: 300.0,
        Phase.LOADING_DRAFT: 300.0,
        Phase.ALLOCATING_KV: 300.0,
        Phase.WARMING_UP: 300.0,
    },
    metrics=MetricNames(
        path="/metrics",
        needs_flag="--metrics",
        running=("llamacpp:requests_processing",),
        waiting=("llamacpp:requests_deferred",),
        tokens_total=("llamacpp:tokens_predicted_total",),
        drafts=("llamacpp:spec_decode_num_drafts_total",),  # from 2026 on
        accepted=("llamacpp:spec_decode_num_accepted_tokens_total",),
    ),
    measured_by="/completion",
    info_paths=("/props",),
    environment=("LLAMA_", "GGML_", "CUDA_VISIBLE_DEVICES"),
    key_flags=("--api-key",),
    key_variables=("LLAMA_API_KEY",),
    host_variables=("LLAMA_ARG_HOST",),
    port_variables=("LLAMA_ARG_PORT",),
    tls_flags=("--ssl-cert-file",),
    tls_variables=("LLAMA_ARG_SSL_CERT_FILE",),
    model_flags=("--model", "-m", "--hf-repo", "-hf", "-hfr"),
    model_variables=("LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"),
    draft_flags=(*_DRAFT_FLAGS, "--mmproj", "--lora"),
    name_flags=("--alias", "-a"),
    name_variables=("LLAMA_ARG_ALIAS",),
    default_host="127.0.0.1",
    default_port=8080,  # "will be changed to :9931 in a future release"
    speculation_flags=("--spec-type", *_DRAFT_FLAGS, "--spec-default"),
)
