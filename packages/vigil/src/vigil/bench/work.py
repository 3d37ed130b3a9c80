"""The requests of a measurement, one after another, as bytes ready to be sent."""

import random

import msgspec

from vigil.bench.prompts import Prompt, made
from vigil.bench.settings import Settings

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


class Work:
    """Makes the request number `index`. The same number is the same request in every arm and process."""

    def __init__(self, settings: Settings, model: str, words: int, prompts: tuple[Prompt, ...] | None = None) -> None:
        self.settings, self.model, self.words, self.prompts = settings, model, words, prompts
        chat = settings.chat or (prompts is not None and prompts[0].messages is not None)
        self.path = CHAT if chat else COMPLETIONS

    def body(self, index: int, share: float = 1.0) -> bytes:
        """Return a request's body. `share`: make its answer that much shorter, which puts requests out of step."""
        settings = self.settings
        prompt = self.prompts[index % len(self.prompts)] if self.prompts else None
        longer, wordier = self._drawn(index)
        wanted = (prompt.output_tokens if prompt else None) or settings.output_tokens * longer
        asked: dict[str, object] = {
            "model": self.model,
            "max_tokens": max(1, round(wanted * share)),
            "temperature": settings.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if settings.ignore_eos:
            asked["ignore_eos"] = True
        text = (prompt.text if prompt else made(settings.seed, index, round(self.words * wordier))) or ""
        if self.path == COMPLETIONS:
            asked["prompt"] = text
        else:
            asked["messages"] = (prompt and prompt.messages) or [{"role": "user", "content": text}]
        return msgspec.json.encode(asked)

    def _drawn(self, index: int) -> tuple[float, float]:
        """Return by how much the answer and the prompt of a request are longer than what was asked for on the average."""
        ratio = self.settings.range_ratio
        rng = random.Random(f"{self.settings.seed}/{index}/lengths")  # noqa: S311 - no secret
        return rng.uniform(1 - ratio, 1 + ratio), rng.uniform(1 - ratio, 1 + ratio)
