"""How each engine is asked for an answer as token ids, and how its reply is read. Pure.

vLLM 0.32: `/v1/completions` takes ids as prompt, `return_token_ids` gives the answer's, its end token included. SGLang 0.5.17:
`/generate` with `input_ids` gives `output_ids`. llama-server of 2026: `/completion` with `return_tokens` gives `tokens`. Others
speak OpenAI's chat alone: their text is tokenised again here, which need not give the tokens that were generated.
"""

from collections.abc import Callable
from typing import Any

import msgspec

Message = dict[str, str]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One question: as token ids, and as messages for who takes no ids."""

    model: str
    ids: list[int]
    messages: list[Message]
    max_tokens: int
    temperature: float
    seed: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `ids` None: only text; `finished`: the model ended it, and not our limit.

    `steps`: in how many steps of the target, where a server that speculates says so.
    """

    text: str
    finished: bool
    ids: list[int] | None = None
    steps: int | None = None


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One way to ask. `exact`: it gives the ids that were generated; `words`: what the manifest says of it."""

    name: str
    path: str
    exact: bool
    words: str
    body: Callable[[Ask], dict[str, Any]]
    answer: Callable[[dict[str, Any]], Answer | None]
    tokenize: Callable[[str, str], dict[str, Any]] | None = None


def _completion(ask: Ask) -> dict[str, Any]:
    return {
        "model": ask.model, "prompt": ask.ids, "max_tokens": ask.max_tokens, "temperature": ask.temperature, "seed": ask.seed,
        "return_token_ids": True,
    }  # fmt: skip


def _generate(ask: Ask) -> dict[str, Any]:
    sampling = {"max_new_tokens": ask.max_tokens, "temperature": ask.temperature}
    if ask.temperature > 0:
        sampling["sampling_seed"] = ask.seed
    return {"input_ids": ask.ids, "sampling_params": sampling}


def _llama(ask: Ask) -> dict[str, Any]:
    # Its defaults cut the distribution (top_k 40, top_p 0.95); greedily one candidate is enough, and spares it sorting all.
    cut = {"top_k": 0, "top_p": 1.0, "min_p": 0.0} if ask.temperature > 0 else {"top_k": 1}
    return {
        "prompt": ask.ids, "n_predict": ask.max_tokens, "temperature": ask.temperature, "seed": ask.seed, "return_tokens": True,
        **cut,
    }  # fmt: skip


def _chat(ask: Ask) -> dict[str, Any]:
    return {
        "model": ask.model, "messages": ask.messages, "max_tokens": ask.max_tokens, "temperature": ask.temperature,
        "seed": ask.seed,
    }  # fmt: skip


def _of_completion(body: dict[str, Any]) -> Answer | None:
    choice = _first(body)
    if choice is None or not isinstance(choice.get("text"), str):
        return None
    finished = choice.get("finish_reason") == "stop"
    return Answer(text=choice["text"], finished=finished, ids=_ids(choice.get("token_ids")))


def _of_generate(body: dict[str, Any]) -> Answer | None:
    told = body.get("meta_info")
    reason = told.get("finish_reason") if isinstance(told, dict) else None
    if (
        not isinstance(body.get("text"), str)
        or not isinstance(reason, dict)
        or reason.get("type") not in {"stop", "length"}
    ):
        return None
    steps = told.get("spec_verify_ct") if isinstance(told, dict) else None
    return Answer(
        text=body["text"],
        finished=reason["type"] == "stop",
        ids=_ids(body.get("output_ids")),
        steps=steps if type(steps) is int and steps > 0 else None,
    )


def _of_llama(body: dict[str, Any]) -> Answer | None:
    if not isinstance(body.get("content"), str):
        return None
    finished = body.get("stop_type") in {"eos", "word"}
    return Answer(text=body["content"], finished=finished, ids=_ids(body.get("tokens")))


def _of_chat(body: dict[str, Any]) -> Answer | None:
    choice = _first(body)
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, dict):
        return None
    text = message.get("content") or ""
    return Answer(text=text, finished=choice.get("finish_reason") == "stop") if isinstance(text, str) else None


def _first(body: dict[str, Any]) -> dict[str, Any] | None:
    choices = body.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _ids(held: Any) -> list[int] | None:
    good = isinstance(held, list) and all(type(one) is int and one >= 0 for one in held)
    return held if good else None


def _tokenize_prompt(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "prompt": text, "add_special_tokens": False}


def _tokenize_content(_: str, text: str) -> dict[str, Any]:
    return {"content": text, "add_special": False, "parse_special": True}


CHAT = Dialect(
    name="chat", path="/v1/chat/completions", exact=False, body=_chat, answer=_of_chat,
    words="text of /v1/chat/completions, tokenised again by the target's tokenizer: it may differ from the tokens generated",
)  # fmt: skip
DIALECTS: dict[str, Dialect] = {
    "vllm": Dialect(
        name="vllm", path="/v1/completions", exact=True, body=_completion, answer=_of_completion, tokenize=_tokenize_prompt,
        words="token ids as generated (/v1/completions with return_token_ids)",
    ),
    "sglang": Dialect(
        name="sglang", path="/generate", exact=True, body=_generate, answer=_of_generate, tokenize=_tokenize_prompt,
        words="token ids as generated (/generate, output_ids)",
    ),
    "llamacpp": Dialect(
        name="llamacpp", path="/completion", exact=True, body=_llama, answer=_of_llama, tokenize=_tokenize_content,
        words="token ids as generated (/completion with return_tokens)",
    ),
}  # fmt: skip
