"""A fake inference server that plays any fault on a script of flags. Standard library only.

    python tests/fakes/server.py --style sglang --port 30000 --load 2s --die oom --after 5s

`tests/fakes/bin/` holds the same program under the engines' own names (`sglang serve`, `vllm serve`, `llama-server`), so that a
command line looks real. More flags may stand in $FAKE.
"""

import errno
import os
import pathlib
import signal
import sys
import threading
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from endpoints import Conduct, Server
from options import parse
from styles import NOISE, STYLES, Step, steps_of
from talk import Bar, Talk
from workers import Workers

from faults import Deaths, Fuse, Marks, Pace, choose_death


class Fake:
    """One life of a fake server."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.style = STYLES[options.style]
        self.workers = Workers(self.style.worker_titles, 0 if options.rehearse else options.workers)
        self.talk = Talk(self.style, options)
        self.pace = Pace()
        self.marks = Marks(options.mark)
        self.deaths = Deaths(options, self.talk, self.workers, self.marks)
        self.conduct = Conduct(options, self.talk)
        self.fuse = Fuse(options.at, options.after, self._make_strike())
        self.server: Server | None = None

    def _make_strike(self) -> Any:
        """Return what happens when the fuse burns down, or None for a healthy server."""
        options = self.options
        death = choose_death(options.die, options.attempts)
        if death != "none":
            return lambda: self._die(death)
        if options.stick is not None:
            return self._stick
        if options.lie is not None:
            return self._lie
        return None

    def _die(self, death: str) -> None:
        self.deaths.die(death)
        # Only the death of a worker comes back: the parent lives, its health stays green, and requests wait for ever.
        self.conduct.lie = "hang"

    def _stick(self) -> None:
        self.marks.note("FAULT", f"stick {self.options.stick}")
        self.talk.muted = True
        self.pace.stick(spin=self.options.stick == "spin")

    def _lie(self) -> None:
        self.marks.note("FAULT", f"lie {self.options.lie}")
        self.conduct.lie = self.options.lie
        if self.options.recover:
            threading.Timer(self.options.recover, self._tell_truth).start()

    def _tell_truth(self) -> None:
        self.marks.note("RECOVERED")
        self.conduct.lie = None

    def live(self) -> None:
        """Start, serve, and go on until something ends it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self.marks.note("BORN", str(os.getpid()))
        self.fuse.come("launch")
        server = self._bind() if self.style.listens_first else None
        self._crawl()
        self._load()
        if server is None:
            server = self._bind()
        self._warm_up()
        threading.Event().wait()

    def _bind(self) -> Server:
        try:
            server = Server((self.options.host, self.options.port), self.conduct)
        except OSError as err:
            if err.errno != errno.EADDRINUSE:
                raise
            self.deaths.die("port")
            raise
        self.server = server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        for text in self.style.bound:
            self.talk.line(text)
        self.fuse.come("bound")
        return server

    def _crawl(self) -> None:
        """Download slowly and without a line of log."""
        if not self.options.crawl:
            return
        pause_s = 0.1
        with open(self.options.crawl, "ab", buffering=0) as file:  # noqa: PTH123 - as in proctitle
            for _ in range(int(self.options.crawl_for / pause_s)):
                file.write(os.urandom(self.options.crawl_bytes))
                self.pace.sleep(pause_s)

    def _load(self) -> None:
        steps = list(steps_of(self.style, with_draft=bool(self.options.draft)))
        whole = sum(step.share for step in steps)
        for step in steps:
            self._play(step, self.options.load * step.share / whole)

    def _play(self, step: Step, duration_s: float) -> None:
        """Print one step of the start in its time."""
        for text in step.lines:
            self.talk.line(text)
        if self.options.noise and step.phase in {"importing", "loading_weights"}:
            for text in NOISE:
                self.talk.line(text.replace("{", "{{").replace("}", "}}"))
        if step.phase == self.options.silence_in:
            self.pace.sleep(self.options.silence)
        drawn = Bar(self.talk, step) if step.bar else None
        for done in range(1, (step.shards or 1) + 1):
            self.pace.sleep(duration_s / (step.shards or 1))
            if drawn is not None:
                drawn.draw(done)
        for text in step.after:
            self.talk.line(text)

    def _warm_up(self) -> None:
        """Open for business: the token path works first, then the engine says so."""
        self.conduct.stage = "warming"
        self.pace.sleep(0 if self.style.listens_first else self.options.warmup)
        if self.options.when_asked:
            self.conduct.when_asked = lambda: self.fuse.come("ready")
        self.conduct.stage = "ready"
        self.marks.note("TOKENS")
        for text in self.style.ready:
            self.talk.line(text)
        self.talk.muted = self.options.quiet
        if self.options.background_load:
            threading.Thread(target=self.conduct.flow, daemon=True).start()
        if not self.options.when_asked:
            self.fuse.come("ready")

    def _stop(self, number: int, _frame: Any) -> None:
        """Leave on SIGTERM as the engines do, or ignore it."""
        self.marks.note("ASKED", str(number))
        if self.options.ignore_term:
            return
        self.talk.line(self.style.stopping)
        if not self.options.orphans:
            self.workers.kill_all()
        if self.options.leave_after and self.server is not None:
            self.server.socket.close()
        time.sleep(self.options.leave_after)
        os._exit(0)

    def rehearse(self) -> None:
        """Print the whole log of a start, at once."""
        for step in steps_of(self.style, with_draft=bool(self.options.draft)):
            self._play(step, 0.0)
        for text in (*self.style.bound, *self.style.ready):
            self.talk.line(text)


def main(argv: list[str], style: str = "generic") -> None:
    """Play the server that the flags describe; an unknown flag is the engine's own death by usage."""
    options = parse(argv, style)
    if isinstance(options, str):
        mark = argv[argv.index("--mark") + 1] if "--mark" in argv[:-1] else ""
        known = parse(["--style", style, "--mark", mark], style)
        Fake(known).deaths.die("usage", flag=options)
        return
    fake = Fake(options)
    if options.rehearse:
        fake.rehearse()
    else:
        fake.live()


if __name__ == "__main__":
    main(sys.argv[1:])
