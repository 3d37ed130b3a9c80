"""What one event of a streamed answer says: text, a finish, the token counts, an error. Pure.

Shapes: OpenAI completions and chat as SGLang 0.5, vLLM 0.32 and llama-server of 2026 write them. vLLM and SGLang send the
counts in an event of their own without choices, llama-server with the last choice.
"""

from typing import Any

import msgspec


class PromptDetails(msgspec.Struct, frozen=True):
    """Part of the counts: tokens of the prompt that were in a cache."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """The server's own counts."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None


class Delta(msgspec.Struct, frozen=True):
    """What a chat event adds. Reasoning is generated like any text, under one of two names."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One alternative; there is only one here. `message`: of an answer that was not streamed."""

    text: str | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class Event(msgspec.Struct, frozen=True):
    """One event, or a whole answer that was not streamed. SGLang reports an error with `object: error` in its place."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None


decode = msgspec.json.Decoder(Event).decode
_anything = msgspec.json.Decoder().decode


def brings_text(choice: Choice) -> bool:
    """Say whether a choice stands for at least one token.

    A token's text may be empty (half a character), so only what is a mere frame does not count: a role, or a bare finish.
    """
    delta = choice.delta or choice.message
    if delta is None:
        return bool(choice.text) or (choice.text is not None and choice.finish_reason is None)
    if delta.content or delta.reasoning_content or delta.reasoning:
        return True
    return delta.role is None and delta.content is not None and choice.finish_reason is None


def error_in(event: Event) -> str | None:
    """Return the error that an event reports, or None."""
    if event.error is not None:
        return error_text(event.error)
    return error_text(event.message) if event.object == "error" else None


def error_text(error: Any) -> str:
    """Return the words of an error, whatever its shape."""
    if isinstance(error, dict):
        inner = error.get("message") or error.get("error") or error.get("detail")
        return error_text(inner) if inner else str(error)
    return str(error)


def body_error(body: bytes) -> str:
    """Return the words of a refusal's body: JSON of one of several shapes, or its first line."""
    try:
        found = _anything(body)
    except (msgspec.DecodeError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        return text.splitlines()[0] if text else ""
    return error_text(found)
