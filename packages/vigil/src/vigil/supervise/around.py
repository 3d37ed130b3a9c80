"""Ask a server's host what it shows beside the log: at once what may decide the cause, afterwards what a cause asks for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from vigil.diagnosis.bearing import about_gpu_memory, bearing, named_port
from vigil.diagnosis.cause import End
from vigil.diagnosis.postmortem import Story
from vigil.diagnosis.seen import Seen
from vigil.errors import UsageError, VigilError
from vigil.hosts import Reach, call
from vigil.supervise.spec import parse_url


async def look_around(name: str, reach: Reach, **asked: Any) -> Seen:
    """Return what the host shows now; nothing where it cannot be asked: the log alone then tells the story."""
    try:
        return msgspec.convert(await call(reach, "around", name=name, **asked), Seen)
    except (VigilError, msgspec.ValidationError):
        return Seen()


async def with_holders(story: Story, name: str, reach: Reach, plans_port: int | None) -> Story:
    """Return the story with who holds the port, or the GPUs' memory, where that is its cause."""
    cause = story.cause
    if cause is None:
        return story
    port, gpus = named_port(cause, plans_port), about_gpu_memory(cause)
    if port is None and not gpus:
        return story
    seen = await look_around(name, reach, beside=False, port=port, gpus=gpus)
    told = bearing(cause, End(seen=seen), plans_port)
    return msgspec.structs.replace(story, host=(*story.host, *(one.text for one in told)))


def port_of(plan: Mapping[str, Any]) -> int | None:
    """Return the port of a plan as it is kept beside a start."""
    url = plan.get("url")
    try:
        return parse_url(url)[2] if isinstance(url, str) else None
    except UsageError:
        return None
