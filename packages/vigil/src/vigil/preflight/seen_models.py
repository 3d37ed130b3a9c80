"""What lies in the folders that the command names as models, as the scout saw it."""

from typing import Any

import msgspec


class MapSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A vocabulary map of a draft. `lowest_moved`, `highest_moved`: of its numbers taken as offsets from their places."""

    dtype: str
    shape: tuple[int, ...] = ()
    lowest: int | None = None
    highest: int | None = None
    total: int | None = None
    lowest_moved: int | None = None
    highest_moved: int | None = None
    different: int | None = None


class GgufSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a GGUF file says of itself: its single values, and how long its lists are."""

    version: int
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    lengths: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def architecture(self) -> str:
        """The architecture, "" where it says none."""
        return str(self.metadata.get("general.architecture") or "")

    @property
    def other(self) -> str:
        """What it is instead of a model: "adapter", "mmproj", or "" where it is one (or does not say)."""
        kind = str(self.metadata.get("general.type") or "")
        return "mmproj" if self.architecture == "clip" else kind if kind in {"adapter", "mmproj"} else ""

    def number(self, name: str) -> int | None:
        """Return a number that stands below the architecture's name, or None."""
        value = self.metadata.get(f"{self.architecture}.{name}")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def vocabulary(self) -> int | None:
        """How many tokens it knows."""
        return self.lengths.get("tokenizer.ggml.tokens") or self.number("vocab_size")


class FileSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One file of weights. `trouble`: why it cannot be loaded; `read`: its head was looked at."""

    name: str
    size_bytes: int
    read: bool = True
    tensors: int = 0
    wanted_bytes: int | None = None
    trouble: str | None = None
    maps: dict[str, MapSeen] = msgspec.field(default_factory=dict)
    gguf: GgufSeen | None = None


class IndexSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The index of a model in several files. `missing`: the first of the files that it names and that are not there."""

    name: str
    tensors: int = 0
    shards: int = 0
    missing: tuple[str, ...] = ()
    missing_count: int = 0
    trouble: str | None = None


class TensorSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a draft."""

    dtype: str
    shape: tuple[int, ...]


class BuildSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What the installed engine says of a model by its files. `known`: which of its architectures it serves.

    `aux`: whether that hands out hidden states to an EAGLE-3 draft; `by_transformers`: whether transformers has it;
    `draft_reads`: what its loader of EAGLE-3 drafts reads. None: could not be told.
    """

    version: str | None = None
    known: tuple[str, ...] = ()
    aux: bool | None = None
    by_transformers: bool | None = None
    type_known: bool | None = None
    draft_reads: tuple[str, ...] = ()


class TokensSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a draft beside its target's. `same_file`: one file in two places, which was not read.

    `compared`: ids that both have; `different`: those of them that stand for other tokens, `first` the first such id with what it
    is in each. `trouble`: why they were not compared.
    """

    what: str
    same_file: bool = False
    target: int = 0
    draft: int = 0
    compared: int = 0
    different: int = 0
    first: int | None = None
    first_target: str = ""
    first_draft: str = ""
    trouble: str | None = None


class HubSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What stands between the command and the hub, and what its cache holds of a repository.

    `offline`: the variable that forbids the hub; `token`: one is there, `implicit`: it is sent without being asked for. `begun`:
    the cache has a folder of it; `commit`: what the revision names there; `snapshots`: those that have a config.json;
    `incomplete`: downloads that did not end, with the bytes that they have. `gated`: a model card there asks for consent.
    """

    modelscope: bool = False
    endpoint: str | None = None
    offline: str | None = None
    token: bool = False
    implicit: bool = True
    folder: str = ""
    writable: bool | None = None
    begun: bool = False
    commit: str | None = None
    snapshots: tuple[str, ...] = ()
    incomplete: int = 0
    incomplete_bytes: int = 0
    gated: bool = False


class ModelSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the command: `what` is "model" or the flag that names it; `path` None: it is not there.

    Of one that is not there: `sure`: what was given stands for itself (no variable, no `cd` before it); `parent`: the deepest
    folder of its path that is there; `near`: names in it that are like; `near_cached`: repositories in the cache that are like.
    `tokens`: of a draft, beside those of the served model, where both are there.
    """

    what: str
    given: str
    path: str | None = None
    sure: bool = True
    repository: bool = False
    parent: str = ""
    near: tuple[str, ...] = ()
    near_cached: tuple[str, ...] = ()
    hub: HubSeen | None = None
    offline: str | None = None
    cached: bool = False
    kind: str | None = None
    more: bool = False
    config: dict[str, Any] | None = None
    config_trouble: str | None = None
    config_broken: bool = False
    config_beside: bool = False
    quantised_by: tuple[str, ...] = ()
    tokenizer: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    files: tuple[FileSeen, ...] = ()
    parts_missing: tuple[str, ...] = ()
    pickles: tuple[str, ...] = ()
    index: IndexSeen | None = None
    weights_bytes: int = 0
    unread: int = 0
    tensors: dict[str, TensorSeen] | None = None
    build: BuildSeen | None = None
    tokens: TokensSeen | None = None

    @property
    def gguf(self) -> GgufSeen | None:
        """What the first of its GGUF files says of itself, None where it has none."""
        return next((one.gguf for one in self.files if one.gguf is not None), None)
