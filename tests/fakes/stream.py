"""A fake server that streams tokens at a known pace, in an engine's shape, or misbehaves. Standard library only.

All requests that run share steps, as in a real engine: a step takes `--step` seconds and `--step-each` more for each request in
it, and gives each request `--tokens-a-step` tokens in one event. So the throughput at each concurrency is known beforehand:
`n * tokens / (step + n * step_each)`.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

SHAPES = ("vllm", "sglang", "llamacpp")
FAULTS = (
    "none", "hang", "hang-midway", "empty", "drop", "flood", "flood-line", "garbage", "not-json", "error-event", "uncounted",
    "unstreamed", "throttle", "unavailable", "fail", "refuse", "late-usage", "flood-models", "flood-plain",
)  # fmt: skip
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN_HEAD = HEAD.replace(b"text/event-stream", b"application/json")
WORD = " Paris"


class Request:
    """One request that runs."""

    def __init__(self, asked: dict[str, object], writer: asyncio.StreamWriter, prompt_tokens: int) -> None:
        self.writer, self.prompt_tokens = writer, prompt_tokens
        self.chat = "messages" in asked
        options = asked.get("stream_options")
        self.counted = isinstance(options, dict) and bool(options.get("include_usage"))
        self.left = self.wanted = max(1, int(asked.get("max_tokens") or 16))  # type: ignore[call-overload]
        self.steps = 0
        self.over = asyncio.get_running_loop().create_future()
        self.arrived_s = time.perf_counter()
        self.fault = "none"
        self.first_s = self.last_s = 0.0


class Switch:
    """Does what vigil-engine does in an engine: switches by its schedule, without patience, and tells of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.held = json.loads(os.environ["VIGIL_ENGINE_SCHEDULE"])
        self.tier = self.steps = self.switches = 0
        self.spells: list[dict[str, object]] = []
        self.spell = {"drafts": 0, "length": 1.0}
        self.told_s = 0.0

    def pace(self, busy: int) -> tuple[int, float]:
        """Return tokens and seconds a request of this step."""
        tiers, before = self.held["tiers"], self.tier
        stuck = self.options.stuck
        while not stuck and self.tier + 1 < len(tiers) and busy > tiers[self.tier + 1]["above"]:
            self.tier += 1
        while not stuck and self.tier and busy < tiers[self.tier]["below"]:
            self.tier -= 1
        if before != self.tier:
            self.switches += 1
            self.spells.append({"k": tiers[before]["k"], **self.spell})
            self.spell = {"drafts": 0, "length": 1.0}
        k = tiers[self.tier]["k"]
        self.steps += 100 if stuck else 1  # its patience is counted in steps, and a test has none
        self.spell = {"drafts": self.spell["drafts"] + (busy if k else 0), "length": 1.0 + k}
        if before != self.tier or time.monotonic() - self.told_s > 0.2:
            self.tell(k)
        return 1 + k, self.options.bare_each + k * self.options.draft_each

    def tell(self, k: int) -> None:
        """Write the account."""
        self.told_s = time.monotonic()
        account = {
            "schema": 1, "engine": "vllm", "version": "0", "deciding": True, "refused": [], "errors": [], "mode": "auto", "k": k,
            "steps": self.steps, "switches": self.switches, "spells": self.spells[-16:], "acceptance": {"spell": self.spell},
        }  # fmt: skip
        path = Path(os.environ["VIGIL_ENGINE_DIR"]) / f"engine-{os.getpid()}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(account))
        new.replace(path)


class Engine:
    """Runs all requests in common steps."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.running: list[Request] = []
        self.open: set[asyncio.StreamWriter] = set()
        self.queue: list[Request] = []
        self.seen = self.tokens = self.drafts = self.accepted = 0
        self.most_running = 0
        self.arrivals: list[float] = []
        self.prompts: list[str] = []
        self.answers: list[tuple[float, float, float, int]] = []
        self.wanted = asyncio.Event()
        self.random = random.Random(options.seed)
        self.switch = Switch(options) if options.speculative_config and "VIGIL_ENGINE_SCHEDULE" in os.environ else None
        self.events = {
            (chat, number): chunk(self.event(number, chat=chat)) for chat in (False, True) for number in range(1, 65)
        }

    async def run(self) -> None:
        """Step for ever; where nothing is asked, wait for a request, which begins a step as in an engine."""
        options = self.options
        due_s = time.perf_counter()
        while True:
            if not self.running and not self.queue:
                self.wanted.clear()
                await self.wanted.wait()
                due_s = time.perf_counter()
            while self.queue and len(self.running) < options.slots:
                self.running.append(self.queue.pop(0))
            busy = len(self.running)
            self.most_running = max(self.most_running, busy)
            if self.switch is not None:
                options.tokens_a_step, options.step_each = self.switch.pace(busy)
            noise = 1.0 + options.noise * self.random.uniform(-1, 1)
            due_s = max(due_s + (options.step + busy * options.step_each) * noise, time.perf_counter() - 0.05)
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            for request in self.running:
                self.step(request)
            self.running = [one for one in self.running if not one.over.done()]

    def step(self, request: Request) -> None:
        """Give a request the tokens of one step."""
        number = min(self.options.tokens_a_step * self.options.events_a_step, request.left)
        request.steps += 1
        self.drafts += 1
        self.accepted += number - 1
        if request.writer.is_closing():
            request.over.set_result(None)
            return
        request.left -= number
        request.last_s = time.perf_counter()
        request.first_s = request.first_s or request.last_s
        self.tokens += number
        if request.fault == "drop" and request.left < request.wanted / 2:
            request.writer.transport.abort()
            request.over.set_result(None)
        elif request.fault == "hang-midway" and request.left < request.wanted / 2:
            request.left += number
        elif request.fault == "error-event" and request.left < request.wanted / 2:
            request.writer.write(chunk(event({"error": {"message": "the engine died", "code": 500}})) + b"0\r\n\r\n")
            request.over.set_result(None)
        elif request.left > 0:
            request.writer.write(self.text(request, number))
        else:
            request.writer.write(self.text(request, number) + self.last(request))
            request.over.set_result(None)
            self.answers.append((request.arrived_s, request.first_s, request.last_s, request.wanted))

    def text(self, request: Request, number: int) -> bytes:
        """Return some tokens, as many of them in each event as there may be."""
        whole, rest = divmod(number, self.options.tokens_a_step)
        found = self.events[request.chat, self.options.tokens_a_step] * whole
        return found + self.events[request.chat, rest] if rest else found

    def event(self, number: int, finish: str | None = None, *, chat: bool) -> bytes:
        """Return an event with the text of some tokens."""
        text = WORD * number
        choice: dict[str, object] = {"index": 0, "finish_reason": finish}
        choice |= {"delta": {"content": text}} if chat else {"text": text, "logprobs": None}
        return event(
            {
                "id": "cmpl-1",
                "object": "text_completion",
                "created": 1,
                "model": self.options.model,
                "choices": [choice],
            }
        )

    def last(self, request: Request) -> bytes:
        """Return the end of an answer: finish, counts, the end mark; llama-server gives the counts with the finish."""
        usage = {"prompt_tokens": request.prompt_tokens, "completion_tokens": request.wanted, "total_tokens": 0}
        choice: dict[str, object] = {"index": 0, "finish_reason": "length"}
        choice |= {"delta": {}} if request.chat else {"text": ""}
        finish: dict[str, object] = {"id": "cmpl-1", "object": "text_completion", "choices": [choice]}
        if self.options.fault == "uncounted" or (not request.counted and self.options.shape != "llamacpp"):
            return chunk(event(finish)) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        if self.options.shape == "llamacpp":
            return (
                chunk(event({**finish, "usage": usage, "timings": {"predicted_n": request.wanted}}))
                + chunk(b"data: [DONE]\n\n")
                + b"0\r\n\r\n"
            )
        counts = event({"id": "cmpl-1", "object": "text_completion", "choices": [], "usage": usage})
        return chunk(event(finish)) + chunk(counts) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def event(value: object) -> bytes:
    """Return an event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    """Return data as a chunk."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def plain(status: str, value: object, *headers: str) -> bytes:
    """Return a whole answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """The HTTP side."""

    def __init__(self, options: argparse.Namespace, engine: Engine) -> None:
        self.options, self.engine = options, engine

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, path, _ = head.split(" ", 2)
                found = re.search(r"(?i)content-length: (\d+)", head)
                body = await reader.readexactly(int(found[1])) if found else b""
                await self.answer(method, path.partition("?")[0], body, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def answer(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        options, engine = self.options, self.engine
        if method == "POST":
            engine.open.add(writer)
            try:
                await self.complete(json.loads(body), writer)
            finally:
                engine.open.discard(writer)
        elif path == "/v1/models" and options.fault == "flood-models":
            await self.flood(writer, PLAIN_HEAD)
        elif path == "/v1/models":
            one = {"id": options.model, "object": "model", "owned_by": options.shape, "max_model_len": options.context}
            writer.write(plain("200 OK", {"object": "list", "data": [one]}))
        elif path == "/metrics":
            writer.write(plain("200 OK", self.metrics().encode()))
        elif path == "/fake/seen":
            kept = {
                "seen": engine.seen,
                "most_running": engine.most_running,
                "tokens": engine.tokens,
                "at": engine.arrivals,
                "prompts": engine.prompts,
                "answers": engine.answers,
            }
            writer.write(plain("200 OK", kept))
        elif path == "/health":
            writer.write(plain("200 OK", b""))
        elif path == "/version":
            writer.write(plain("200 OK", {"version": "0.0-fake"}))
        else:
            writer.write(plain("404 Not Found", {"detail": "Not Found"}))

    def metrics(self) -> str:
        """Return the counters under vLLM's names."""
        engine = self.engine
        rows = {
            "vllm:num_requests_running": len(engine.running), "vllm:num_requests_waiting": len(engine.queue),
            "vllm:generation_tokens_total": engine.tokens,
        }  # fmt: skip
        if self.options.tokens_a_step > 1:
            rows["vllm:spec_decode_num_drafts_total"] = engine.drafts
            rows["vllm:spec_decode_num_accepted_tokens_total"] = engine.accepted
        return "".join(f'{name}{{model_name="m"}} {float(value)}\n' for name, value in rows.items())

    async def complete(self, asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
        """Answer a request for tokens, or misbehave."""
        options, engine = self.options, self.engine
        engine.seen += 1
        engine.arrivals.append(time.time())
        text = str(asked.get("prompt") or asked.get("messages"))
        if options.log_prompts:
            engine.prompts.append(text)
        tokens = round(len(text.split()) * options.tokens_a_word) + 1
        if tokens + int(asked.get("max_tokens") or 16) > options.context:  # type: ignore[call-overload]
            message = f"This model's maximum context length is {options.context} tokens. However, you requested more."
            writer.write(plain("400 Bad Request", {"error": {"message": message, "code": 400}}))
            return
        if options.die_after and engine.seen > options.die_after:
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", flush=True)
            sys.stdout.flush()
            signal.raise_signal(signal.SIGKILL)
        if options.die_at and len(engine.open) >= options.die_at:
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", flush=True)
            signal.raise_signal(signal.SIGKILL)
        if engine.seen > options.fault_after and await self.misbehave(writer):
            return
        request = Request(asked, writer, tokens)
        request.fault = options.fault if engine.seen > options.fault_after else "none"
        if asked.get("stream") is not True or options.fault == "unstreamed":
            await asyncio.sleep(options.first)
            usage = {"prompt_tokens": tokens, "completion_tokens": request.wanted}
            choice = {"index": 0, "text": WORD * request.wanted, "finish_reason": "length"}
            writer.write(plain("200 OK", {"id": "1", "model": options.model, "choices": [choice], "usage": usage}))
            return
        await asyncio.sleep(options.first)
        writer.write(HEAD)
        engine.queue.append(request)
        engine.wanted.set()
        await request.over

    async def misbehave(self, writer: asyncio.StreamWriter) -> bool:
        """Play the fault of one request; say whether the request is done with."""
        match self.options.fault:
            case "hang":
                await asyncio.sleep(3600)
            case "empty":
                writer.write(HEAD + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
            case "garbage":
                writer.write(b"\x00\xff nonsense\r\n\r\n")
            case "not-json":
                writer.write(HEAD + chunk(b"data: {never closed\n\n") + b"0\r\n\r\n")
            case "flood" | "flood-line" | "flood-plain":
                await self.flood(writer, PLAIN_HEAD if self.options.fault == "flood-plain" else HEAD)
            case "throttle" if self.engine.seen % 2 or self.options.fault_always:
                writer.write(plain("429 Too Many Requests", {"error": "slow down"}, "Retry-After: 0.05"))
            case "unavailable":
                writer.write(plain("503 Service Unavailable", {"error": {"message": "no slot available"}}))
            case "fail":
                writer.write(
                    plain("500 Internal Server Error", {"error": {"message": "EngineCore encountered an issue."}})
                )
            case "refuse":
                writer.write(plain("400 Bad Request", {"object": "error", "message": "ignore_eos is not known"}))
            case _:
                return False
        return True

    async def flood(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        """Send a gigabyte that nobody asked for: as events, or as one that never ends."""
        writer.write(head)
        part = chunk(
            event({"choices": [{"index": 0, "text": "x" * 65000}]}) if self.options.fault == "flood" else b"x" * 65000
        )
        for _ in range((1 << 30) // 65000):
            writer.write(part)
            await writer.drain()


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the flags."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--port", type=int, required=True)
    add("--model", default="m")
    add("--shape", choices=SHAPES, default="vllm")
    add("--context", type=int, default=1 << 20)
    add("--slots", type=int, default=1 << 20, help="requests that run at once; the others wait")
    add("--step", type=float, default=0.005, help="seconds")
    add("--step-each", type=float, default=0.0, help="seconds more for each request")
    add("--tokens-a-step", type=int, default=1)
    add(
        "--events-a-step",
        type=int,
        default=1,
        help="events of so many tokens, sent together: less work for the fake alone",
    )
    add("--tokens-a-word", type=float, default=1.3)
    add("--first", type=float, default=0.0, help="seconds before an answer begins")
    add("--noise", type=float, default=0.0, help="share by which a step's time varies")
    add("--seed", type=int, default=1)
    add("--fault", choices=FAULTS, default="none")
    add("--fault-after", type=int, default=0, help="requests that are answered well")
    add("--fault-always", action="store_true")
    add("--die-after", type=int, default=0, help="die, out of memory, with the request after so many")
    add("--die-at", type=int, default=0, help="die, out of memory, when so many requests are open at once")
    add("--log-prompts", action="store_true", help="tell all prompts at /fake/seen")
    add("--max-running-requests", type=int, help="accepted and ignored")
    add("--speculative-algorithm", help="accepted and ignored")
    add("--speculative-config", type=json.loads, help="as vLLM's: draft tokens a step, all of them accepted")
    add("--draft-each", type=float, default=0.0, help="seconds more for each draft token of each request")
    add("--max-num-seqs", type=int, help="accepted and ignored")
    add("--die-at-k", type=int, help="die of memory early where so many are drafted a step")
    add("--stuck", action="store_true", help="never switch, whatever the schedule says")
    options = parser.parse_args(argv)
    options.bare_each = options.step_each
    if options.speculative_config is not None:
        k = options.speculative_config["num_speculative_tokens"]
        options.tokens_a_step = 1 + k
        options.die_after = 12 if k == options.die_at_k else options.die_after
        options.step_each += k * options.draft_each
    return options


async def main(options: argparse.Namespace) -> None:
    """Serve until killed."""
    engine = Engine(options)
    server = Server(options, engine)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", options.port, backlog=4096)
    print(f"listening on {options.port}", flush=True)
    async with listening:
        await engine.run()


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:])))
