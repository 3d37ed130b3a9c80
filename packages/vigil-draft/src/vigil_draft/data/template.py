"""The target's chat template and tokenizer: conversations become the token ids that a server of the target would see.

What people wrote is data. Where it holds a word of the template's structure (`<|im_end|>`), that word is tokenised as the letters
that it is, so that no prompt closes its own turn or opens another's.
"""

import datetime as dt
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vigil.errors import UsageError
from vigil.screen import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

Message = dict[str, str]
CONFIG_BYTES = 64 << 20
SENTINEL = "\ue0f0{}\ue0f1"  # of a private area: no tokenizer's word begins or ends with it
NEEDS = "`vigil draft prepare` needs {} here: pip install 'vigil-draft[prepare]'"


class TemplateError(Exception):
    """The template refuses a conversation."""


class Target:
    """A target's folder, as far as text goes. Invariant: `ends` holds one token id or more.

    `sample`: a short conversation as text, for comparing tokenizers by the words of the structure, too.
    """

    def __init__(self, folder: Path, today: str | None = None) -> None:
        self.folder = folder
        self._settings = _json(folder, "tokenizer_config.json", needed=False)
        self._text = _read(folder, "tokenizer.json")
        self.tokenizer, self._bare = _tokenizers(self._text, folder)
        self.template = _template(folder, self._settings)
        self.vocabulary = self.tokenizer.get_vocab_size(with_added_tokens=True)
        self.ends = self._end_ids()
        self._structure = self._structure_words()
        self._render = _renderer(self.template, today or dt.datetime.now(dt.UTC).date().isoformat())
        self._named = {
            name: self._word(name) for name in ("bos_token", "eos_token", "unk_token", "pad_token") if self._word(name)
        }
        try:
            self.sample = self._rendered([{"role": "user", "content": "Is 17 prime?"}], answering=True)
        except TemplateError as error:
            raise UsageError(f"the chat template of {folder} does not take a plain question: {error}") from error

    def prompt(self, messages: "Sequence[Message]", *, answering: bool = True) -> list[int]:
        """Return a conversation's token ids; with `answering` up to where the target's answer begins.

        Raises:
            TemplateError: The template does not take such a conversation.

        """
        taken: list[str] = []
        masked = [{**one, "content": self._masked(one["content"], taken)} for one in messages]
        text = self._rendered(masked, answering=answering)
        ids: list[int] = []
        for number, word in enumerate(taken):
            before, sentinel, text = text.partition(SENTINEL.format(number))
            ids += self.encoded(before)
            ids += self.data(word) if sentinel else []
        return ids + self.encoded(text)

    def data(self, text: str) -> list[int]:
        """Return the ids of text that is data: no word of the structure is one in it."""
        return self._bare.encode(text, add_special_tokens=False).ids

    def text(self, ids: "Sequence[int]") -> str:
        """Return the text of ids, without what is structure."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def holds_structure(self, messages: "Sequence[Message]") -> bool:
        """Say whether somebody wrote a word of the structure."""
        return any(word in one["content"] for one in messages for word in self._structure)

    def encoded(self, text: str) -> list[int]:
        """Return the ids of text in which words of the structure are structure."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def _masked(self, content: str, taken: list[str]) -> str:
        """Return content with a sentinel for each word of the structure; the words are put into `taken`, in their order."""
        content = content.replace("\ue0f0", "\ufffd")
        while True:
            found = [(at, -len(word), word) for word in self._structure if (at := content.find(word)) >= 0]
            if not found:
                return content
            at, _, word = min(found)
            content = content[:at] + SENTINEL.format(len(taken)) + content[at + len(word) :]
            taken.append(word)

    def _rendered(self, messages: "Sequence[Message]", *, answering: bool) -> str:
        try:
            text: str = self._render(messages=messages, add_generation_prompt=answering, **self._named)
        except Exception as error:  # what a template raises is not known beforehand
            raise TemplateError(plain(f"{type(error).__name__}: {error}", 200)) from error
        return text

    def _structure_words(self) -> tuple[str, ...]:
        """Return the tokens that are structure: those called special, and what else of added ones the template names."""
        added = json.loads(self._text).get("added_tokens") or []
        words = [one["content"] for one in added if one.get("special") or one["content"] in self.template]
        return tuple(one for one in words if one.strip())

    def _end_ids(self) -> tuple[int, ...]:
        """Return the ids that end an answer: the tokenizer's own end first, then what generation's config adds."""
        found: list[int] = []
        own = self.tokenizer.token_to_id(self._word("eos_token")) if self._word("eos_token") else None
        for one in (
            own,
            *(
                _json(self.folder, name, needed=False).get("eos_token_id")
                for name in ("generation_config.json", "config.json")
            ),
        ):
            found += [one] if isinstance(one, int) else [each for each in one or [] if isinstance(each, int)]
        if not found:
            raise UsageError(
                f"{self.folder}: no end token is named in tokenizer_config.json, generation_config.json or config.json"
            )
        return tuple(dict.fromkeys(found))

    def _word(self, name: str) -> str:
        held = self._settings.get(name)
        return str(held.get("content") or "") if isinstance(held, dict) else str(held or "")

    def origin(self) -> dict[str, Any]:
        """Return what says later which target it was: hashes of what is text, names and sizes of its weights."""
        files = {"config.json": "config", "tokenizer.json": "tokenizer"}
        hashes = {
            f"{name}_sha256": hashlib.sha256((self.folder / file).read_bytes()).hexdigest()
            for file, name in files.items()
            if (self.folder / file).exists()
        }
        weights = {one.name: one.stat().st_size for one in sorted(self.folder.glob("*.safetensors"))}
        return {
            "folder": str(self.folder),
            **hashes,
            "template_sha256": hashlib.sha256(self.template.encode()).hexdigest(),
            "weights_bytes": weights,
        }


def resolve(model: str) -> Path:
    """Return the folder of a model: a path, or a name whose snapshot lies in Hugging Face's cache.

    Raises:
        UsageError: It is neither.

    """
    if Path(model).is_dir():
        return Path(model).absolute()
    home = (
        os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface") / "hub"
    )
    found = sorted((Path(home) / f"models--{model.replace('/', '--')}" / "snapshots").glob("*/tokenizer.json"))
    if not found:
        raise UsageError(f"--target {model}: no such folder, and no snapshot of that name in {home}")
    return max(found, key=lambda one: one.stat().st_mtime).parent


def _read(folder: Path, name: str) -> str:
    try:
        if (folder / name).stat().st_size > CONFIG_BYTES:
            raise UsageError(f"{folder / name}: longer than {CONFIG_BYTES >> 20} MiB: no file of a tokenizer")
        return (folder / name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{folder / name} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        ) from error


def _json(folder: Path, name: str, *, needed: bool) -> dict[str, Any]:
    if not needed and not (folder / name).exists():
        return {}
    try:
        held = json.loads(_read(folder, name))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{folder / name}: {error}") from error
    return held if isinstance(held, dict) else {}


def _tokenizers(text: str, folder: Path) -> "tuple[Tokenizer, Tokenizer]":
    """Return the tokenizer, and the same without added tokens: for it nothing is structure."""
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra; 30 ms
    except ImportError as error:
        raise UsageError(NEEDS.format("the tokenizers library")) from error
    try:
        bare = {**json.loads(text), "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
        whole = Tokenizer.from_str(text)
        whole.no_truncation()
        whole.no_padding()
        return whole, Tokenizer.from_str(json.dumps(bare))
    except Exception as error:  # the library raises bare Exception
        raise UsageError(f"{folder / 'tokenizer.json'}: {plain(str(error), 200)}") from error


def _template(folder: Path, settings: dict[str, Any]) -> str:
    """Return the chat template: of its own file, else of the tokenizer's settings."""
    if (folder / "chat_template.jinja").exists():
        return _read(folder, "chat_template.jinja")
    held = settings.get("chat_template")
    if isinstance(held, list):
        named = {one.get("name"): one.get("template") for one in held if isinstance(one, dict)}
        held = named.get("default")
    if not isinstance(held, str):
        raise UsageError(f"{folder}: it has no chat template (chat_template.jinja, or in tokenizer_config.json)")
    return held


def _renderer(template: str, today: str) -> Any:
    """Return what renders a template as transformers does: sandboxed, with the same few functions; the date is given."""
    try:
        from jinja2 import TemplateError as JinjaError  # noqa: PLC0415 - an extra
        from jinja2.ext import loopcontrols  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(NEEDS.format("jinja2")) from error

    def refuse(message: str) -> None:
        raise JinjaError(message)

    def as_json(value: Any, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=False, **options)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: dt.date.fromisoformat(today).strftime(form)
    try:
        return environment.from_string(
            template.replace("{% generation %}", "").replace("{% endgeneration %}", "")
        ).render
    except JinjaError as error:
        raise UsageError(f"the target's chat template does not parse: {plain(str(error), 200)}") from error
