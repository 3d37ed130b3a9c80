# ruff: noqa: E501, ISC004 - real log lines are long
"""How the engines talk: the lines and progress bars of a start, of traffic and of the common deaths.

The formats are those of the real logs (SGLang 0.5.17, vLLM 0.32, llama-server b11434); the contents are short.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A part of a start: `share` of the load time, `lines` before it, a bar of `shards` during it, `after` at its end.

    `blocks`: the bar is tqdm's own with block characters, as for graphs; else the loaders' "Completed" form.
    """

    phase: str
    share: float
    lines: tuple[str, ...] = ()
    bar: str = ""
    shards: int = 0
    blocks: bool = False
    after: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Style:
    """One engine's way of talking. `stamp` dresses a message as a log line; times in messages are filled by `format`."""

    name: str
    stamp: Callable[[str], str]
    steps: tuple[Step, ...]
    bound: tuple[str, ...]
    ready: tuple[str, ...]
    worker_titles: tuple[str, ...] = ()
    draft: Step | None = None
    decode: str = ""
    access: str = ""
    listens_first: bool = False
    health_ok: bytes = b""
    metric_running: str = "fake_running"
    metric_waiting: str = "fake_waiting"
    metric_tokens: str = "fake_tokens_total"
    usage_code: int = 2
    port_code: int = 1
    oom_signal: int = 0
    stopping: str = "shutting down"
    deaths: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


BORN = time.monotonic()
DAY_S = 86400.0
SHIFT_S = -DAY_S if "--rehearse" in sys.argv else 0.0


def clock(form: str) -> str:
    """Return the local time (yesterday's in a rehearsal)."""
    return time.strftime(form, time.localtime(time.time() + SHIFT_S))


def stamp_sglang(text: str) -> str:
    """`[2026-11-30 07:53:31] text`; a leading `|` marks a raw line."""
    return text[1:] if text.startswith("|") else f"[{clock('%Y-%m-%d %H:%M:%S')}] {text}"


def stamp_vllm(text: str) -> str:
    """`(EngineCore pid=12) INFO 11-30 07:23:08 [core.py:133] text`, from `EngineCore core.py:133 text`."""
    if text.startswith("|"):
        return text[1:]
    who, where, message = text.split(" ", 2)
    level, _, where = where.rpartition("!")
    return f"({who} pid={os.getpid()}) {level or 'INFO'} {clock('%m-%d %H:%M:%S')} [{where}] {message}"


def stamp_llamacpp(text: str) -> str:
    """`0.00.001.546 I text`, the time since the start; the text brings its own level."""
    if text.startswith("|"):
        return text[1:]
    spent_us = int((time.monotonic() - BORN) * 1e6)
    minutes, rest = divmod(spent_us, 60_000_000)
    return f"{minutes}.{rest // 1_000_000:02d}.{rest // 1000 % 1000:03d}.{rest % 1000:03d} {text}"


def stamp_generic(text: str) -> str:
    """`07:53:31 text`."""
    return text[1:] if text.startswith("|") else f"{clock('%H:%M:%S')} {text}"


def bar(label: str, done: int, total: int, spent_s: float, *, blocks: bool) -> str:
    """Return one state of a tqdm bar as SGLang and vLLM print it."""
    rate = done / spent_s if spent_s > 0 and done else 0.0
    left_s = (total - done) / rate if rate else 0.0
    speed = f"{rate:5.2f}it/s" if rate else "?it/s"
    spent = f"{int(spent_s) // 60:02d}:{int(spent_s) % 60:02d}"
    left = f"{int(left_s) // 60:02d}:{int(left_s) % 60:02d}" if rate else "?"
    if blocks:
        return f"{label}: {100 * done // total:3d}%|{'█' * (10 * done // total):10}| {done}/{total} [{spent}<{left}, {speed}]"
    return f"{label}: {100 * done // total:3d}% Completed | {done}/{total} [{spent}<{left}, {speed}]"


TRACEBACK = (
    "|Traceback (most recent call last):",
    '|  File "/opt/venv/lib/python3.11/site-packages/engine/scheduler.py", line 3171, in run_scheduler_process',
    "|    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank)",
)
NOISE = (
    "|/opt/venv/lib/python3.11/site-packages/torchao/quantization/quant_api.py:1731: SyntaxWarning: invalid escape sequence '\\.'",
    "|Exception ignored in: <function Pool.__del__ at 0x7f0f1c2b3ac0>",
    "|Traceback (most recent call last):",
    '|  File "/usr/lib/python3.11/multiprocessing/pool.py", line 268, in __del__',
    '|    _warn(f"unclosed running multiprocessing pool {self!r}",',
    "|ResourceWarning: unclosed running multiprocessing pool <multiprocessing.pool.Pool state=RUN pool_size=4>",
    "|[W1130 07:23:57.724113804 utils.cpp:68] Warning: NUMA binding failed (function init_cpu_memory_env)",
    "|Error: Failed to initialize NumPy: _ARRAY_API not found (Triggered internally at tensor_numpy.cpp:84.)",
)
OOM = (
    "|torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.11 GiB of which"
    " 1.44 GiB is free. Process {pid} has 77.66 GiB memory in use.",
)
IMPORT = (
    "|Traceback (most recent call last):",
    '|  File "/opt/venv/bin/serve", line 5, in <module>',
    "|    from engine.entry import main",
    '|  File "/opt/venv/lib/python3.11/site-packages/engine/entry.py", line 12, in <module>',
    "|    import flashinfer",
    "|ModuleNotFoundError: No module named 'flashinfer'",
)
NCCL = (
    *TRACEBACK,
    "|torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO"
    " for details), NCCL version 2.27.5",
    "|ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
)
MISSING = (
    "|Traceback (most recent call last):",
    '|  File "/opt/venv/lib/python3.11/site-packages/transformers/utils/hub.py", line 479, in cached_files',
    "|    hf_hub_download(",
    "|OSError: {model} is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
)

SGLANG = Style(
    name="sglang",
    stamp=stamp_sglang,
    steps=(
        Step(phase="importing", share=0.2, after=(
            "server_args=ServerArgs(model_path='{model}', tokenizer_path='{model}', host='{host}', port={port}, tp_size=1, dtype='auto')",
            "Using default HuggingFace chat template with detected content format: string",
        )),
        Step(phase="launching", share=0.05, lines=("Init torch distributed begin.",), after=(
            "Init torch distributed ends. elapsed=0.04 s, mem usage=0.09 GB",
        )),
        Step(phase="loading_weights", share=0.4, lines=("Load weight begin. avail mem=139.13 GB",), bar="Multi-thread loading shards", shards=16,
             after=("Load weight end. elapsed=3.15 s, type=LlamaForCausalLM, avail mem=122.86 GB, mem usage=16.27 GB.",)),
        Step(phase="allocating_kv", share=0.05, lines=(
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1930503, K size: 20.71 GB, V size: 20.71 GB",
            "Memory pool end. avail mem=97.23 GB",
        )),
        Step(phase="capturing_graphs", share=0.2, lines=(
            "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4, 8], avail mem=96.60 GB",
        ), bar="Capturing batches (bs=8 avail_mem=96.60 GB)", shards=4, blocks=True, after=(
            "Capture target decode CUDA graph end. elapsed=1.59 s, mem usage=0.07 GB, avail mem=96.53 GB.",
            "max_total_num_tokens=1930503, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=8192,"
            " available_gpu_mem=96.53 GB",
        )),
        Step(phase="binding", share=0.1, after=(
            "INFO:     Started server process [{pid}]",
            "INFO:     Waiting for application startup.",
            "INFO:     Application startup complete.",
        )),
    ),
    draft=Step(phase="loading_draft", share=0.1, lines=("Load weight begin. avail mem=122.80 GB",), bar="Loading safetensors checkpoint shards", shards=1,
               after=("Load weight end. elapsed=0.35 s, type=LlamaForCausalLMEagle3, avail mem=121.92 GB, mem usage=0.88 GB.",)),
    bound=("INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)",),
    ready=("The server is fired up and ready to roll!",),
    worker_titles=("sglang::scheduler", "sglang::detokenizer"),
    decode="Decode batch, #running-req: {running}, #token: {tokens}, token usage: 0.01, cuda graph: True, gen throughput (token/s): {rate:.2f},"
           " #queue-req: {waiting}",
    access='INFO:     {peer} - "{method} {path} HTTP/1.1" {status}',
    metric_running="sglang:num_running_reqs", metric_waiting="sglang:num_queue_reqs", metric_tokens="sglang:generation_tokens_total",
    port_code=3,
    oom_signal=9,
    stopping="SIGTERM received. signum=15 frame=None. Draining requests and shutting down...",
    deaths={
        "usage": (
            "|usage: sglang serve [-h] --model-path MODEL_PATH [--tokenizer-path TOKENIZER_PATH]",
            "|                    [--host HOST] [--port PORT] [--speculative-num-draft-tokens N]",
            "|sglang serve: error: unrecognized arguments: {flag}",
        ),
        "missing": MISSING,
        "import": IMPORT,
        "port": ("ERROR:    [Errno 98] error while attempting to bind on address ('{host}', {port}): address already in use",),
        "oom": ("Scheduler hit an exception: Traceback (most recent call last):", *TRACEBACK[1:], *OOM, "|",
                "Received sigquit from a child process. It usually means the child failed."),
        "nccl": ("Scheduler hit an exception: Traceback (most recent call last):", *NCCL[1:]),
    },
)  # fmt: skip

VLLM = Style(
    name="vllm",
    stamp=stamp_vllm,
    steps=(
        Step(phase="importing", share=0.3, after=(
            "APIServer api_server.py:1289 vLLM server version 0.32.0, serving model {model}",
            "APIServer utils.py:238 non-default args: {{'model': '{model}', 'port': {port}}}",
            "APIServer model.py:733 Resolved architecture: LlamaForCausalLM",
            "APIServer model.py:2152 Using max model len 8192",
        )),
        Step(phase="launching", share=0.1, lines=("EngineCore core.py:133 Initializing a V1 LLM engine (v0.32.0) with config: model='{model}'",)),
        Step(phase="loading_weights", share=0.3, lines=("Worker gpu_model_runner.py:68 Starting to load model {model}...",),
             bar="Loading safetensors checkpoint shards", shards=8, after=(
            "Worker default_loader.py:501 Loading weights took 3.80 seconds",
            "Worker gpu_model_runner.py:3338 Model loading took 15.0806 GiB memory and 4.310000 seconds",
        )),
        Step(phase="compiling", share=0.1, lines=("Worker backends.py:784 Using cache directory: /root/.cache/vllm/torch_compile_cache for vLLM's torch.compile",),
             after=("Worker monitor.py:45 torch.compile took 4.27 s in total",)),
        Step(phase="allocating_kv", share=0.05, after=(
            "Worker gpu_worker.py:298 Available KV cache memory: 55.27 GiB",
            "EngineCore kv_cache_utils.py:2327 GPU KV cache size: 452,768 tokens, Maximum concurrency for 8,192 tokens per request: 55.27x",
        )),
        Step(phase="capturing_graphs", share=0.1, bar="Capturing CUDA graphs (decode, FULL)", shards=4, blocks=True, after=(
            "Worker gpu_model_runner.py:4244 Graph capturing finished in 5 secs, took 0.55 GiB",
            "EngineCore core.py:402 init engine (profile, create kv cache, warmup model) took 13.39 s",
        )),
        Step(phase="binding", share=0.05, lines=(
            "APIServer entry.py:136 Supported tasks: ['generate']",
            "APIServer entry.py:140 Starting vLLM server on http://{host}:{port}",
            "APIServer launcher.py:195 Route: /health, Methods: GET",
            "|INFO:     Started server process [{pid}]",
            "|INFO:     Waiting for application startup.",
        )),
    ),
    draft=Step(phase="loading_draft", share=0.1, lines=("Worker gpu_model_runner.py:3301 Loading drafter model...",),
               bar="Loading safetensors checkpoint shards", shards=1),
    bound=("|INFO:     Application startup complete.",),
    ready=(),
    worker_titles=("VLLM::EngineCore", "VLLM::Worker"),
    decode="APIServer loggers.py:248 Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: {rate:.1f} tokens/s,"
           " Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: 1.2%, Prefix cache hit rate: 0.0%",
    access='|INFO:     {peer} - "{method} {path} HTTP/1.1" {status}',
    metric_running="vllm:num_requests_running", metric_waiting="vllm:num_requests_waiting", metric_tokens="vllm:generation_tokens_total",
    stopping="APIServer launcher.py:254 [shutdown] API server: shutdown triggered",
    deaths={
        "usage": ("|usage: vllm serve [model_tag] [options]", "|vllm serve: error: unrecognized arguments: {flag}"),
        "missing": MISSING,
        "import": IMPORT,
        "port": ("|Traceback (most recent call last):", '|  File "/opt/venv/lib/python3.11/site-packages/vllm/entrypoints/launcher.py", line 43, in create_server_socket',
                 "|    sock.bind(addr)", "|OSError: [Errno 98] Address already in use"),
        "oom": ("EngineCore ERROR!core.py:1210 EngineCore failed to start.", *TRACEBACK, *OOM,
                "|RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"),
        "nccl": ("EngineCore ERROR!core.py:1210 EngineCore failed to start.", *NCCL),
    },
)  # fmt: skip

LLAMACPP = Style(
    name="llamacpp",
    stamp=stamp_llamacpp,
    listens_first=True,
    steps=(
        Step(phase="launching", share=0.1, lines=(
            "I srv  llama_server: initializing ...",
            "I cmn  common_param: common_params_print_info: verbosity = 3 (adjust with the `-lv N` CLI arg)",
        )),
        Step(phase="loading_weights", share=0.6, lines=("I srv    load_model: loading model '{model}'",), after=(
            "I cmn          init: llama threadpool init, n_threads = 2",
        )),
        Step(phase="allocating_kv", share=0.3, after=("I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'true'",)),
    ),
    draft=Step(phase="loading_draft", share=0.1, lines=("I srv    load_model: loading draft model '{draft}'",)),
    bound=(),
    ready=("I srv  llama_server: model loaded", "I srv  llama_server: listening on http://{host}:{port}"),
    decode="I slot print_timing: id  3 | task 0 |        eval time =     351.37 ms /    {running} tokens (   11.33 ms per token,    {rate:.2f} tokens per second)",
    health_ok=b'{"status":"ok"}',
    metric_running="llamacpp:requests_processing", metric_waiting="llamacpp:requests_deferred", metric_tokens="llamacpp:tokens_predicted_total",
    usage_code=1,
    stopping="I srv    operator(): operator(): cleaning up before exit...",
    deaths={
        "usage": ("|error: invalid argument: {flag}",),
        "missing": (
            "E gguf_init_from_file: failed to open GGUF file '{model}' (No such file or directory)",
            "E llama_model_load: error loading model: llama_model_loader: failed to load model from {model}",
            "E srv    load_model: failed to load model, '{model}'",
            "E srv  llama_server: exiting due to model loading error",
        ),
        "import": ("|llama-server: error while loading shared libraries: libcudart.so.12: cannot open shared object file: No such file or directory",),
        "port": ("E srv         start: couldn't bind HTTP server socket, hostname: {host}, port: {port}",
                 "E srv  llama_server: exiting due to HTTP server error"),
        "oom": ("E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: cudaMalloc failed: out of memory",
                "E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
                "E srv  llama_server: exiting due to model loading error"),
        "nccl": ("E ggml_cuda_error: NCCL error: unhandled system error",),
    },
)  # fmt: skip

GENERIC = Style(
    name="generic",
    stamp=stamp_generic,
    steps=(
        Step(phase="loading_weights", share=0.9, lines=("loading model {model}",), bar="loading", shards=10),
        Step(phase="binding", share=0.1, after=("model loaded",)),
    ),
    draft=Step(phase="loading_draft", share=0.1, lines=("loading draft {draft}",)),
    bound=("listening on http://{host}:{port}",),
    ready=(),
    access='{peer} "{method} {path}" {status}',
    decode="generated {tokens} tokens, {rate:.1f}/s",
    deaths={
        "usage": ("|usage: serve [-h] [--port PORT]", "|serve: error: unrecognized arguments: {flag}"),
        "missing": MISSING,
        "import": IMPORT,
        "port": ("|OSError: [Errno 98] Address already in use",),
        "oom": (*TRACEBACK, *OOM),
        "nccl": NCCL,
    },
)  # fmt: skip

STYLES = {style.name: style for style in (SGLANG, VLLM, LLAMACPP, GENERIC)}


def steps_of(style: Style, *, with_draft: bool) -> Iterator[Step]:
    """Yield the steps of a start in order, the draft's load after the weights."""
    for step in style.steps:
        yield step
        if with_draft and style.draft is not None and step.phase == "loading_weights":
            yield style.draft
