"""A request that fails in a server that goes on serving is no failed start; an engine that dies after it is one."""

from collections.abc import Sequence

import pytest

from vigil.diagnosis import End, Findings, examine
from vigil.engines import table
from vigil.facts import Line

UP = {
    "vllm": [
        "INFO 03-01 10:00:01 [api_server.py:1839] vLLM API server version 0.14.0",
        "(EngineCore pid=9) INFO 03-01 10:00:02 [core.py:77] Initializing a V1 LLM engine (v0.14.0) with config: model='/m'",
        "(EngineCore pid=9) INFO 03-01 10:00:22 [gpu_model_runner.py:90] Graph capturing finished in 9 secs, took 0.48 GiB",
        "(APIServer pid=1) INFO:     Application startup complete.",
        '(APIServer pid=1) INFO:     10.0.0.5:41000 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    ],
    "sglang": [
        "[2026-03-01 10:00:01] server_args=ServerArgs(model_path='/m')",
        "[2026-03-01 10:00:05 TP0] Load weight begin. avail mem=31.2 GB",
        "[2026-03-01 10:00:09] INFO:     Application startup complete.",
        "[2026-03-01 10:00:10] The server is fired up and ready to roll!",
        '[2026-03-01 10:01:10] INFO:     10.0.0.5:41000 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    ],
    "llamacpp": [
        "build: 6050 (78452405) with cc for x86_64-linux-gnu",
        "main: loading model",
        "srv    load_model: loading model '/m.gguf'",
        "main: server is listening on http://127.0.0.1:8080 - starting the main loop",
        "srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200",
    ],
}
WORK = {
    "vllm answers": ['(APIServer pid=1) INFO:     10.0.0.5:41002 - "POST /v1/completions HTTP/1.1" 200 OK'],
    "vllm makes tokens": [
        "(APIServer pid=1) INFO 03-01 10:09:01 [loggers.py:259] Engine 000: Avg generation throughput: 5.0 tokens/s, Running: 1"
    ],
    "vllm is healthy": ['(APIServer pid=1) INFO:     10.0.0.5:41002 - "GET /health HTTP/1.1" 200 OK'],
    "vllm says no more": [],
    "sglang answers": ['[2026-03-01 10:03:10] INFO:     10.0.0.5:41002 - "POST /generate HTTP/1.1" 200 OK'],
    "sglang makes tokens": [
        "[2026-03-01 10:03:10 TP0] Decode batch. #running-req: 1, #token: 100, gen throughput (token/s): 50.0"
    ],
    "sglang takes a prompt": [
        "[2026-03-01 10:03:10 TP0] Prefill batch. #new-seq: 2, #new-token: 512, #cached-token: 0, #running-req: 3"
    ],
    "sglang says no more": [],
    "llamacpp makes tokens": [
        "slot launch_slot_: id  0 | task 5 | processing task",
        "slot print_timing: id  0 | task 5 | ",
        "       eval time =    3465.17 ms /   179 tokens (   19.36 ms per token,    51.66 tokens per second)",
        "slot      release: id  0 | task 5 | stop processing: n_tokens = 5",
        "srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200",
    ],
    "llamacpp says no more": ["srv  update_slots: all slots are idle"],
}
SITE = "/venv/lib/python3.12/site-packages/"
DEATH = {
    "vllm": [
        "(EngineCore pid=9) ERROR 03-01 10:04:00 [core.py:1100] EngineCore encountered a fatal error.",
        "(EngineCore pid=9) ERROR 03-01 10:04:00 [core.py:1100] Traceback (most recent call last):",
        f'(EngineCore pid=9) ERROR 03-01 10:04:00 [core.py:1100]   File "{SITE}vllm/v1/engine/core.py", line 9, in run_busy_loop',
        "(EngineCore pid=9) ERROR 03-01 10:04:00 [core.py:1100] IndexError: pop from an empty deque",
        "(APIServer pid=1) ERROR 03-01 10:04:00 [async_llm.py:420] AsyncLLM output_handler failed.",
        "(APIServer pid=1) ERROR 03-01 10:04:00 [async_llm.py:420] vllm.v1.engine.exceptions.EngineDeadError",
        '(APIServer pid=1) INFO:     10.0.0.5:41002 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
    ],
    "sglang": [
        "[2026-03-01 10:04:00 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        f'  File "{SITE}sglang/srt/managers/scheduler.py", line 900, in event_loop_overlap',
        "    self.process_batch_result(tmp_batch, tmp_result)",
        "IndexError: pop from an empty deque",
        "[2026-03-01 10:04:00] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
    ],
    "llamacpp": [
        "/src/ggml/src/ggml-backend.cpp:1200: GGML_ASSERT(view->data != nullptr) failed",
        "Aborted (core dumped)",
    ],
}
ROOT = {"vllm": "IndexError", "sglang": "IndexError", "llamacpp": "GGML_ASSERT"}


def api(*frames: str, error: str, where: str = "serving_chat.py:300", said: str = "") -> list[str]:
    """One traceback as vLLM's API server logs it: each line with the process's prefix."""
    head = f"(APIServer pid=1) ERROR 03-01 10:03:05 [{where}] "
    shown = [row for one in frames for row in (f'  File "{SITE}{one}"', "    return await self.f(x)")]
    return [
        *([head + said] if said else []),
        *(head + row for row in ("Traceback (most recent call last):", *shown, error)),
    ]


def asgi(*frames: str, error: str, prefix: str = "", head: bool = True) -> list[str]:
    """One traceback as uvicorn prints it."""
    shown = [row for one in frames for row in (f'  File "{SITE}{one}"', "    await self.app(scope, receive, send)")]
    return [
        *([f"{prefix}ERROR:    Exception in ASGI application"] if head else []),
        f"{'' if head else prefix}Traceback (most recent call last):",
        f'  File "{SITE}uvicorn/protocols/http/httptools_impl.py", line 409, in run_asgi',
        "    result = await app(",
        *shown,
        error,
    ]


TOO_LONG = "The input (9000 tokens) is longer than the model's context length (4096 tokens)."
ROUTE = 'starlette/routing.py", line 73, in app'
BODIES: dict[str, dict[str, Sequence[str]]] = {
    "vllm": {
        "bad request": api(
            'vllm/entrypoints/openai/serving_chat.py", line 200, in create_chat_completion',
            error="ValueError: This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.",
        ),
        "validation": api(
            'vllm/entrypoints/openai/protocol.py", line 60, in check',
            error="pydantic_core._pydantic_core.ValidationError: 1 validation error for ChatCompletionRequest",
        ),
        "no adapter": api(
            'vllm/entrypoints/openai/serving_models.py", line 99, in load_lora_adapter',
            error="ValueError: Model does not support LoRA yet.",
        ),
        "template": api(
            'vllm/entrypoints/chat_utils.py", line 1200, in apply_hf_chat_template',
            error="jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant",
        ),
        "tool call": api(
            'vllm/entrypoints/openai/tool_parsers/hermes_tool_parser.py", line 90, in extract_tool_calls',
            error="json.decoder.JSONDecodeError: Expecting ',' delimiter: line 1 column 9 (char 8)",
            where="hermes_tool_parser.py:130",
            said="Error in extracting tool call from response.",
        ),
        "tool call of a stream": api(
            'vllm/tool_parsers/qwen3coder_tool_parser.py", line 90, in extract_tool_calls_streaming',
            error="IndexError: list index out of range",
            where="qwen3coder_tool_parser.py:130",
            said="Error trying to handle streaming tool call.",
        ),
        "tokenizer": api(
            'vllm/entrypoints/openai/serving_engine.py", line 500, in _preprocess_completion',
            'transformers/tokenization_utils_fast.py", line 700, in _decode',
            error="OverflowError: out of range integral type conversion attempted",
        ),
        "picture": api(
            'vllm/multimodal/media/connector.py", line 77, in load_from_url_async',
            'PIL/Image.py", line 3500, in open',
            error="PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f1>",
        ),
        "fetch": api(
            'aiohttp/client.py", line 800, in _request',
            error="aiohttp.client_exceptions.ClientResponseError: 404, message='Not Found', url='http://10.0.0.9/cat.png'",
        ),
        "disconnect": asgi(
            ROUTE, 'starlette/requests.py", line 230, in stream', error="starlette.requests.ClientDisconnect"
        ),
        "no response": asgi(
            ROUTE, 'starlette/middleware/base.py", line 160, in call_next', error="RuntimeError: No response returned."
        ),
        "group": asgi(ROUTE, error="anyio.EndOfStream", head=False, prefix="(APIServer pid=1) "),
        "cancelled": asgi(
            ROUTE, 'vllm/entrypoints/utils.py", line 90, in wrapper', error="asyncio.exceptions.CancelledError"
        ),
        "scrape": asgi(
            'prometheus_client/exposition.py", line 200, in generate_latest',
            error="ValueError: Incorrect label names",
            head=False,
        ),
        "float": asgi(
            ROUTE,
            'starlette/responses.py", line 190, in render',
            error="ValueError: Out of range float values are not JSON compliant",
        ),
    },
    "sglang": {
        "bad request": [
            '[2026-03-01 10:03:05] INFO:     10.0.0.5:41001 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
            f"[2026-03-01 10:03:05] Error in request: {TOO_LONG}",
            *asgi(
                'sglang/srt/entrypoints/openai/serving_base.py", line 40, in handle_request',
                error=f"ValueError: {TOO_LONG}",
                head=False,
            ),
        ],
        "disconnect": asgi(ROUTE, error="starlette.requests.ClientDisconnect", prefix="[2026-03-01 10:03:05] "),
        "lost client": asgi(
            ROUTE,
            'sglang/srt/managers/tokenizer_manager.py", line 640, in _wait_one_response',
            error="ValueError: Request is disconnected from the client side. Abort request rid='6b1'",
            prefix="[2026-03-01 10:03:05] ",
        ),
        "tool call": [
            "[2026-03-01 10:03:05] Error in parse_streaming_increment: 'name'",
            "Traceback (most recent call last):",
            f'  File "{SITE}sglang/srt/function_call/base_format_detector.py", line 170, in parse_streaming_increment',
            "KeyError: 'name'",
        ],
        "template": asgi(
            ROUTE,
            'sglang/srt/openai_api/adapter.py", line 911, in v1_chat_generate_request',
            error="jinja2.exceptions.UndefinedError: 'None' has no element 0",
            prefix="[2026-03-01 10:03:05] ",
            head=False,
        ),
        "not written": [
            "[2026-03-01 10:03:05] Error in request: ",
            "Traceback (most recent call last):",
            f'  File "{SITE}sglang/srt/entrypoints/openai/serving_chat.py", line 51, in _convert',
            "    raise NotImplementedError()",
            "NotImplementedError",
        ],
        "picture": asgi(
            'sglang/srt/managers/tokenizer_manager.py", line 500, in _tokenize_one_request',
            'sglang/srt/utils.py", line 800, in load_image',
            error="ValueError: Invalid image: data:image/png;base64,AAAA",
            prefix="[2026-03-01 10:03:05] ",
            head=False,
        ),
        "socket": asgi(
            'uvicorn/protocols/http/h11_impl.py", line 500, in send',
            error="h11._util.LocalProtocolError: Can't send data when our state is ERROR",
            prefix="[2026-03-01 10:03:05] ",
            head=False,
        ),
    },
    "llamacpp": {
        "template": [
            'got exception: {"code":500,"message":"this custom template is not supported","type":"server_error"}'
        ],
        "too large": [
            "srv    send_error: task id = 3, error: input is too large to process. increase the physical batch size"
        ],
        "json": [
            'srv    operator(): got exception: {"code":400,"message":"parse error at column 5","type":"invalid_request_error"}'
        ],
        "cancelled": ["srv          stop: cancel task, id_task = 3"],
    },
}
CASES = [(engine, body) for engine, bodies in BODIES.items() for body in bodies]


def look(rows: Sequence[str], engine: str, end: End | None = None) -> Findings:
    return examine([Line(n, row) for n, row in enumerate(rows, 1)], end or End(), table(engine))


@pytest.mark.parametrize(("engine", "body"), CASES, ids=[f"{e}-{b}" for e, b in CASES])
def test_request_that_failed_in_a_server_that_goes_on_is_no_cause(engine: str, body: str) -> None:
    for name, work in WORK.items():
        if name.startswith(engine):
            found = look([*UP[engine], *BODIES[engine][body], *work], engine)
            assert (name, found) == (name, Findings(cause=None, candidates=(), stuck=None))


@pytest.mark.parametrize(("engine", "body"), CASES, ids=[f"{e}-{b}" for e, b in CASES])
def test_engine_that_dies_after_a_request_failed_is_the_cause(engine: str, body: str) -> None:
    rows = [*UP[engine], *BODIES[engine][body], *DEATH[engine]]
    found = look(rows, engine)
    assert found.cause is not None
    assert ROOT[engine] in found.cause.text
    assert found.cause.kind == "crash_runtime"


ANYBODY = {
    "vllm": [
        "Exception in callback Foo.bar(<Task finished>)",
        "Traceback (most recent call last):",
        f'  File "{SITE}foo/client.py", line 9, in bar',
        "foo.errors.GoneError: the other side went away",
    ],
    "sglang": [
        "Exception in thread Thread-9 (send):",
        "Traceback (most recent call last):",
        f'  File "{SITE}foo/client.py", line 9, in send',
        "foo.errors.GoneError: the other side went away",
    ],
}
STOPPED = {
    "vllm": ["(APIServer pid=1) INFO:     Shutting down", "(APIServer pid=1) INFO:     Application shutdown complete."],
    "sglang": [
        "[2026-03-01 10:05:00] INFO:     Shutting down",
        "[2026-03-01 10:05:01] INFO:     Application shutdown complete.",
    ],
}


@pytest.mark.parametrize("engine", ANYBODY)
def test_what_nobody_died_of_is_no_cause_where_requests_are_answered_behind_it(engine: str) -> None:
    work = WORK[f"{engine} answers"]
    assert look([*UP[engine], *ANYBODY[engine], *work], engine).cause is None
    assert look([*UP[engine], *ANYBODY[engine], *work, *STOPPED[engine]], engine).cause is None
    found = look([*UP[engine], *ANYBODY[engine], *DEATH[engine]], engine)
    assert found.cause is not None


@pytest.mark.parametrize(("engine", "body"), CASES, ids=[f"{e}-{b}" for e, b in CASES])
def test_server_that_is_shut_down_later_did_not_end_by_its_requests(engine: str, body: str) -> None:
    if engine in STOPPED:
        rows = [*UP[engine], *BODIES[engine][body], *WORK[f"{engine} answers"], *STOPPED[engine]]
        assert look(rows, engine).cause is None


def test_rank_that_failed_is_the_cause_whoever_is_answered_behind_it() -> None:
    """A stream's answer is written at its begin."""
    rank = ["(EngineCore pid=9) " + row for row in ANYBODY["vllm"][1:]]
    found = look([*UP["vllm"], *rank, *WORK["vllm answers"]], "vllm")
    assert found.cause is not None


def test_what_a_start_runs_into_is_no_requests_failure() -> None:
    """The API server's own refusal at its start is a cause, whoever answers a probe."""
    frames = 'vllm/entrypoints/openai/api_server.py", line 1900, in init_app_state'
    rows = [*UP["vllm"][:3], *api(frames, error="ValueError: tool parser foo is not known", where="api_server.py:1900")]
    found = look(rows, "vllm")
    assert found.cause is not None
    assert found.cause.line == len(rows)


def test_request_that_took_its_server_down_is_the_cause() -> None:
    """Known to have died, without any work behind it: nothing else explains the end."""
    rows = [*UP["sglang"], *BODIES["sglang"]["template"]]
    found = look(rows, "sglang", End(code=1))
    assert found.cause is not None
    assert found.cause.line == len(rows)


@pytest.mark.parametrize(
    "relay", ["SIGQUIT received. signum=None, frame=None. It usually means one child failed.", "Killed"]
)
def test_scheduler_that_hangs_after_a_request_failed_is_the_cause(relay: str) -> None:
    barks = "[2026-03-01 10:09:00 TP0] Watchdog timeout (self.watchdog_timeout=300)"
    rows = [*UP["sglang"], *BODIES["sglang"]["disconnect"], barks, f"[2026-03-01 10:09:01] {relay}"]
    found = look(rows, "sglang")
    assert found.cause is not None
    assert (found.cause.kind, found.cause.text) == ("watchdog_timeout", barks)
