"""Keeps a line to an observer for as long as a server is watched: facts come in over it, orders go back."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import msgspec

from vigil.errors import HostError, NoPythonError, VigilError
from vigil.facts import AnyFact, Lost, Reached, Troubled
from vigil.hosts import Link, Reach, open_link, why_ended
from vigil.plan import Plan
from vigil.supervise.session import Session
from vigil.supervise.spec import command_of, watch_command
from vigil.verdict import Effect

RECONNECT_FIRST_S = 0.5
RECONNECT_MOST_S = 5.0


class Line:
    """A line that is made again wherever it breaks.

    `take` takes a fact in and returns what follows from it; `elapsed_s` and `heard_s` (when something was last heard) are seconds
    since `began_s` of our monotonic clock. `folder`: where the start lies on its host, where we started it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a line hangs on
        self,
        plan: Plan,
        session: Session,
        reach: Reach,
        folder: str | None,
        began_s: float,
        take: Callable[[AnyFact], tuple[Effect, ...]],
    ) -> None:
        self.plan, self.session, self.reach = plan, session, reach
        self.heard_s = 0.0
        self.reached = False  # by the present line: an observer has answered
        self.over = False
        self._folder = folder
        self._began_s = began_s
        self._take = take
        self._offset_s = 0.0
        self._scope: anyio.CancelScope | None = None
        self._link: Link | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the watching began."""
        return time.monotonic() - self._began_s

    @property
    def stands(self) -> bool:
        """Whether there is a line, or one is being made."""
        return self._scope is not None

    def cut(self) -> None:
        """Give the present line up: nothing is heard over it any more. Another one is made."""
        if self._scope is not None:
            self._scope.cancel()

    async def keep(self) -> None:
        """Keep a line; where it breaks, try again for as long as the watching lasts."""
        pause_s = RECONNECT_FIRST_S
        while not self.over:
            began_s = self.elapsed_s
            error = await self._one()
            if self.over:
                return
            self._take(Lost(at_s=self.elapsed_s, why=str(error), final=isinstance(error, NoPythonError)))
            lasted = self.elapsed_s - began_s > RECONNECT_MOST_S
            pause_s = RECONNECT_FIRST_S if lasted else min(pause_s * 2, RECONNECT_MOST_S)
            await anyio.sleep(pause_s * min(1.0, self.plan.time_scale))

    async def order(self, effects: tuple[Effect, ...]) -> None:
        """Have the observer do what follows from a fact. Without a line nothing is lost: `Reached` begins all orders anew."""
        for effect in effects:
            command = command_of(effect, self.session.table)
            if command is not None and self._link is not None:
                await self._link.send(command)

    async def _one(self) -> VigilError:
        """Use one line until it breaks; return why it did."""
        try:
            with anyio.CancelScope() as scope:
                self.reached, self.heard_s, self._scope = False, self.elapsed_s, scope
                async with open_link(self.reach) as link:
                    await link.send(watch_command(self.plan, self.session.state, self.session.table, self._folder))
                    await self._listen(link)
                    return await why_ended(link, self.reach)
            return HostError("no heartbeat" if self.reached else "no observer answers through the reach")
        except VigilError as error:
            return error
        except BaseExceptionGroup as group:
            ours, others = group.split(VigilError)
            if others is not None or ours is None:
                raise
            return next(_leaves(ours))
        finally:
            self._scope = self._link = None

    async def _listen(self, link: Link) -> None:
        async for message in link.messages:
            fact = self._fact_of(message)
            self.heard_s = self.elapsed_s
            self.reached = self.reached or isinstance(fact, Reached)
            if isinstance(fact, Reached):
                self._link = link
            await self.order(self._take(fact))
            if self.over:
                return

    def _fact_of(self, message: dict[str, Any]) -> AnyFact:
        """Turn the observer's message into a fact on our time line."""
        at_s = message.get("at_s")
        if message.get("kind") == "Reached" and isinstance(at_s, int | float):
            self._offset_s = 0.0 if self.reach.local else time.monotonic() - at_s
        if isinstance(at_s, int | float):
            message["at_s"] = round(max(0.0, at_s + self._offset_s - self._began_s), 6)
        try:
            fact: AnyFact = msgspec.convert(message, AnyFact)
        except msgspec.ValidationError as error:
            return Troubled(at_s=self.elapsed_s, what=f"the observer sent what is no fact: {error}")
        return fact


def _leaves(group: BaseExceptionGroup[VigilError]) -> Iterator[VigilError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
