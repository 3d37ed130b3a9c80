"""What a server's host shows beside the log: as whoever watched kept it when it ended, and as it is now."""

from collections.abc import Mapping
from typing import Any

import msgspec

from vigil.diagnosis.bearing import about_gpu_memory, bearing, named_port
from vigil.diagnosis.cause import End
from vigil.diagnosis.postmortem import Story
from vigil.diagnosis.seen import Seen, Told
from vigil.errors import UsageError, VigilError
from vigil.hosts import Reach, call
from vigil.supervise.spec import parse_url

NOTED_S = 2.0  # a verdict may be noted a moment before all of the tree has ended


class Views(msgspec.Struct, frozen=True, kw_only=True):
    """The host at the end of the last attempt, where somebody watched, and now."""

    end: Seen = Seen()
    now: Seen = Seen()

    @property
    def whole(self) -> Seen:
        """What a cause may be decided by: the kernel's lines of both; else what was seen at the end, where that was."""
        texts = {line.text for line in self.end.kernel}
        kernel = (*self.end.kernel, *(line for line in self.now.kernel if line.text not in texts))
        rooms = self.end.rooms or self.now.rooms
        return Seen(kernel=kernel, rooms=rooms, ports=self.end.ports, gpus=self.end.gpus)


async def look_around(known: Mapping[str, Any], reach: Reach) -> Views:
    """Return what is known of a server's host, given what is known of the server there (`show`)."""
    return Views(end=_kept(known), now=await _look(known["name"], reach))


def _kept(known: Mapping[str, Any]) -> Seen:
    """Return what whoever watched kept of the end; nothing where it is about an earlier end than that of the start."""
    verdict_age_s, ended_s = known["verdict_age_s"], known["exit"].get("at_wall_s")
    if isinstance(ended_s, int | float) and known["now"] - ended_s + NOTED_S < (verdict_age_s or 0.0):
        return Seen()
    try:
        return msgspec.convert(known["verdict"].get("seen") or {}, Seen)
    except msgspec.ValidationError:  # written by another version
        return Seen()


async def with_host(story: Story, views: Views, known: Mapping[str, Any], reach: Reach) -> Story:
    """Return the story with what the host shows now that bears on its cause: who holds the port, or the GPUs' memory."""
    cause, now = story.cause, views.now
    plans_port = _port_of(known["plan"])
    lives = known["alive"]
    told = [_as_of_now(one) if lives or (one.topic == "rooms" and not views.end.rooms) else one for one in story.host]
    if cause is not None:
        port, gpus = named_port(cause, plans_port), about_gpu_memory(cause)
        asked = {"beside": False, "port": port, "gpus": gpus}
        held = await _look(known["name"], reach, **asked) if port is not None or gpus else Seen()
        now = msgspec.structs.replace(held, rooms=now.rooms)
    present = bearing(cause, End(seen=msgspec.structs.replace(now, kernel=())), plans_port)
    told += map(_as_of_now, present)
    return msgspec.structs.replace(story, host=tuple(dict.fromkeys(told)))


def _as_of_now(told: Told) -> Told:
    return msgspec.structs.replace(told, when="now")


async def _look(name: str, reach: Reach, **asked: Any) -> Seen:
    """Return what the host shows now; nothing where it cannot be asked: the log alone then tells the story."""
    try:
        return msgspec.convert(await call(reach, "around", name=name, **asked), Seen)
    except (VigilError, msgspec.ValidationError):
        return Seen()


def _port_of(plan: Mapping[str, Any]) -> int | None:
    """Return the port of a plan as it is kept beside a start."""
    url = plan.get("url")
    try:
        return parse_url(url)[2] if isinstance(url, str) else None
    except UsageError:
        return None
