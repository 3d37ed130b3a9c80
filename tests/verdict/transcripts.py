"""A transcript: facts in, words out. Time is written beside each fact; nothing here waits."""

from typing import Any

from msgspec.structs import replace

from vigil import fact_parts, facts
from vigil.engine_table import EngineTable
from vigil.engines import TABLES
from vigil.policy import Policy
from vigil.verdict import Asked, AskToken, Effect, State, Verdict, report, step

SGLANG, VLLM, LLAMA, OTHER = (TABLES[name] for name in ("sglang", "vllm", "llamacpp", "generic"))
SGLANG_BANNER = "[2026-11-30 10:00:00] server_args=ServerArgs(model_path='m', port=30000)"
SGLANG_LOADS = "[2026-11-30 10:00:09 TP0] Load weight begin. avail mem=78.00 GB"
SGLANG_FIRED = "[2026-11-30 10:00:59] The server is fired up and ready to roll!"
USAGE = (
    "usage: sglang serve [-h] --model-path MODEL_PATH",
    "sglang serve: error: unrecognized arguments: --num-speculative-tokens 16",
)
NO_MODULE = "ModuleNotFoundError: No module named 'deep_gemm'"
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system error"


class Transcript:
    """Plays facts into `step` and remembers the words in their order. Starts with an observer that was reached."""

    def __init__(
        self, table: EngineTable = SGLANG, *, reached: bool = True, policy: Policy | None = None, **asked: Any
    ) -> None:
        self.table = table
        self.state = State(asked=Asked(**({"policy": policy} if policy else {}), **asked))
        self.words: list[str] = []
        self.effects: list[Effect] = []
        self._bytes = 0
        self._line = 0
        if reached:
            self.reached(0.0)

    def take(self, fact: facts.AnyFact) -> "Transcript":
        self.state, judged, effects = step(self.state, fact, self.table)
        self.effects.extend(effects)
        if not self.words or self.words[-1] != judged.word.value:
            self.words.append(judged.word.value)
        return self

    @property
    def verdict(self) -> Verdict:
        return report(self.state, self.table)

    @property
    def word(self) -> str:
        return self.state.judged.word.value

    @property
    def asked(self) -> list[AskToken]:
        """The token requests that were made so far; asking forgets them."""
        asked = [effect for effect in self.effects if isinstance(effect, AskToken)]
        self.effects = []
        return asked

    # --- facts, each at a time

    def reached(self, at_s: float, boot: str = "b1") -> "Transcript":
        return self.take(facts.Reached(at_s=at_s, boot_id=boot, host="h", python="3.11", wall_s=0.0))

    def lost(self, at_s: float, *, final: bool = False) -> "Transcript":
        return self.take(facts.Lost(at_s=at_s, why="no heartbeat for 5 s", final=final))

    def tick(self, at_s: float) -> "Transcript":
        return self.take(facts.Ticked(at_s=at_s))

    def ticks(self, until_s: float, every_s: float = 1.0) -> "Transcript":
        """Let time pass in steps, as it does; stop at the first verdict that is not the present word."""
        now_s, word = self.state.now_s, self.word
        while now_s < until_s and self.word == word:
            now_s = min(until_s, now_s + every_s)
            self.tick(now_s)
        return self

    def main(self, at_s: float, pid: int = 100, argv: str = "sglang serve", **more: Any) -> "Transcript":
        more = {"sure": True, "start_ticks": pid * 10, **more}
        return self.take(facts.MainStarted(at_s=at_s, pid=pid, argv=tuple(argv.split()), **more))

    def exited(self, at_s: float, pid: int = 100, code: int | None = None, **more: Any) -> "Transcript":
        return self.take(facts.MainExited(at_s=at_s, pid=pid, code=code, **more))

    def root(self, at_s: float, code: int | None = None, **more: Any) -> "Transcript":
        return self.take(facts.RootExited(at_s=at_s, code=code, **more))

    def log(self, at_s: float, *lines: str, **more: Any) -> "Transcript":
        self._bytes += sum(len(line) + 1 for line in lines)
        numbered = []
        for line in lines:
            self._line += 1
            numbered.append(facts.Line(self._line, line))
        return self.take(facts.LogGrew(at_s=at_s, size=self._bytes, lines=tuple(numbered), **more))

    def port(self, at_s: float, owner: str = "ours", pid: int | None = 100, name: str = "python") -> "Transcript":
        return self.take(facts.PortOpened(at_s=at_s, port=30000, owner=owner, pid=pid, name=name))  # type: ignore[arg-type]

    def closed(self, at_s: float) -> "Transcript":
        return self.take(facts.PortClosed(at_s=at_s, port=30000))

    def models(self, at_s: float, *ids: str, status: int | None = 200, **more: Any) -> "Transcript":
        return self.take(facts.ProbeAnswered(at_s=at_s, probe="models", status=status, models=ids, **more))

    def health(self, at_s: float, status: int | None = 200, **more: Any) -> "Transcript":
        return self.take(facts.ProbeAnswered(at_s=at_s, probe="health", status=status, **more))

    def token(self, at_s: float, **more: Any) -> "Transcript":
        return self.take(facts.TokenAnswered(at_s=at_s, **{"status": 200, "tokens": 1, "model": "m", **more}))

    def hang(self, at_s: float) -> "Transcript":
        return self.take(facts.TokenAnswered(at_s=at_s, error="timeout", latency_s=20.0, model="m"))

    def fail(self, at_s: float, status: int = 500, body: str = "") -> "Transcript":
        return self.take(facts.TokenAnswered(at_s=at_s, status=status, model="m", body=body))

    def metrics(self, at_s: float, tokens: float, running: float = 8.0, waiting: float = 3.0) -> "Transcript":
        return self.take(facts.MetricsSeen(at_s=at_s, tokens_total=tokens, running=running, waiting=waiting))

    def sample(
        self, at_s: float, *, cpu: float = 0.0, io: int = 0, rss: int = 1 << 30, gpu: int | None = None
    ) -> "Transcript":
        fact = facts.Sampled(at_s=at_s, cpu_s=cpu, io_bytes=io, rss_bytes=rss, processes=3, gpu_bytes=gpu)
        return self.take(fact)

    def stacks(self, at_s: float, *stacks: fact_parts.ProcessStack, error: str = "") -> "Transcript":
        return self.take(facts.StacksSeen(at_s=at_s, stacks=stacks, error=error))

    def child_died(self, at_s: float, *, worker: bool, pid: int = 200, **more: Any) -> "Transcript":
        name = "sglang::scheduler_TP0" if worker else "python"
        return self.take(facts.ChildExited(at_s=at_s, pid=pid, name=name, worker=worker, **{"lived_s": 60.0, **more}))

    def stop(self, at_s: float, by: str = "eve@laptop") -> "Transcript":
        return self.take(facts.StopAsked(at_s=at_s, by=by))

    def reset(self, at_s: float, why: str = "truncated") -> "Transcript":
        self._bytes = self._line = 0
        return self.take(facts.LogReset(at_s=at_s, why=why))  # type: ignore[arg-type]

    def unreadable(self, at_s: float, error: str = "Permission denied", **more: Any) -> "Transcript":
        return self.take(facts.LogUnreadable(at_s=at_s, error=error, **more))

    # --- short stories

    def launched(self, at_s: float = 0.1) -> "Transcript":
        fact = facts.Launched(at_s=at_s, launcher_pid=90, pid=100, start_ticks=1000, log="/l/s.log", log_offset=0)
        return self.take(fact)

    def answers(self, at_s: float, *ids: str) -> "Transcript":
        """The port opens and the model list answers: a token is asked for."""
        return self.port(at_s).models(at_s, *(ids or ("m",)))

    def ready(self, at_s: float = 10.0) -> "Transcript":
        return self.launched(0.1).main(0.2).log(0.3, SGLANG_BANNER).answers(at_s).token(at_s)

    def dies(self, from_s: float, pid: int, *lines: str, lived_s: float = 2.0, **more: Any) -> "Transcript":
        """One attempt that says `lines` and ends."""
        self.main(from_s, pid, **more)
        if lines:
            self.log(from_s + lived_s, *lines)
        return self.exited(from_s + lived_s, pid)


def patient(**numbers: float) -> Policy:
    """The policy with some numbers changed."""
    return replace(Policy(), **numbers)
