"""How long to wait after a refusal, so that many workers that were refused at once do not come back at once."""

import random

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Patience after refusals, in seconds: it doubles from `first_s` to `most_s`, and each wait is drawn at random."""

    first_s: float = 0.25
    most_s: float = 30.0


def wait_s(failures: int, backoff: Backoff, rng: random.Random, retry_after_s: float | None = None) -> float:
    """Return how long a worker waits after its `failures`th refusal in a row (from 1).

    Drawn from the upper half of a range that doubles ("equal jitter"), so that workers spread and none hammers. What the
    server asks for (`Retry-After`) is kept to, as far as the limit allows, and spread on top.
    """
    ceiling_s = min(backoff.most_s, backoff.first_s * 2.0 ** min(failures - 1, 30))
    asked_s = min(retry_after_s or 0.0, backoff.most_s)
    return asked_s + ceiling_s * rng.uniform(0.5, 1.0)
