"""The data that describes one engine: its phases, signs, probes and metrics. The engines' modules fill these tables."""

import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Phase(StrEnum):
    """Where a start-up is; the same words for every engine."""

    LAUNCHING = "launching"
    IMPORTING = "importing"
    LOADING_WEIGHTS = "loading_weights"
    LOADING_DRAFT = "loading_draft"
    ALLOCATING_KV = "allocating_kv"
    COMPILING = "compiling"
    CAPTURING_GRAPHS = "capturing_graphs"
    BINDING = "binding"
    WARMING_UP = "warming_up"
    SERVING = "serving"
    WORKING = "working"  # a job, where it does what it is for


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text in a log line that says where the start-up is.

    `text` is searched as it stands (cheap); `pattern`, where given, is a regular expression that must match as well,
    and may name groups `done` and `total` (progress; `done_unit` and `total_unit` where they carry one: k, M, G, T).
    `starts`: the phase begins with this text, so that it counts for `repeats_as`. `since`: engine versions or an issue,
    for the docs only.
    """

    phase: Phase
    text: str
    pattern: str | None = None
    starts: bool = False
    since: str = ""


class MetricNames(msgspec.Struct, frozen=True, kw_only=True):
    """Prometheus names; the first that is present counts, and samples of one name are summed over their labels.

    `drafts`: how often something was drafted; `proposed`, `accepted`: tokens of that; `accept_length`: a gauge of tokens a step
    instead. `needs_flag`: the flag without which the server has no such page, or None.
    """

    path: str | None = None
    needs_flag: str | None = None
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    tokens_total: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    accept_length: tuple[str, ...] = ()


class EngineTable(msgspec.Struct, frozen=True, kw_only=True):
    """All that the watcher knows about one engine.

    `commands`, `images`: words by which `engines.detect` knows a command line (`vllm serve`) or a container image;
    `main_signs`: text that stands in the joined command line of the main process. `banners`: text printed exactly once
    a life, near its start, by the main process; `banner_pattern` must match as well. `ready_lines`: the engine's own
    word that it serves (law 4: evidence, never proof). `alive_lines`: lines printed because tokens flow, unless
    `idle_pattern` matches. `harmless`: text of scary lines that healthy starts print. `relays`: parents' last words,
    never a cause. `fatal_lines`: the engine's own statement that it gives up (most relays, and more).
    `echo_pattern`: start of a line that quotes users or another program: nothing in it is a sign. `rank_pattern`: start
    of a line by one of several ranks that do the same; the group `other` is there where it is not the first, whose
    phases alone count. `hallmarks`: text that only this engine prints. `version_patterns`: one group, the version.
    `workers`: prefixes of process titles whose death ends the service. `silent_s`: how long a phase may be quiet before
    it is called stalled, in seconds; not there: the policy's default. `repeats_as`: what a phase means when it begins a
    second time in one life (SGLang's draft). `imports`: a Python program, which imports for long before its first line.
    `key_flags`/`key_variables`: where the server's own API key stands; so for host, port, TLS, model and the name that
    it is served by (a flag stands before a variable, a variable before the default). `model_position`: the word after
    the command may be the model. `draft_flags` name further models, `draft_configs` a JSON object with one as its `model`,
    `revision_flags` the revision of the model; `packages`: what is looked into for edited files (see `survey.edited`).
    `imports_as`: the engine's own packages as Python imports them, the first of which makes a process one of its own.
    `argument_classes`: the classes of its resolved arguments, `argument_roots`: where its modules keep one, as
    `module:name.name`; `info_paths`: where it tells them over HTTP. `environment`: beginnings of variables that it reads.
    `measured_by`: where an answer tells of speculation, or moves the counters of it; "": not known.
    """

    name: str
    title: str
    commands: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    main_signs: tuple[str, ...] = ()
    banners: tuple[str, ...] = ()
    banner_pattern: str | None = None
    signs: tuple[Sign, ...] = ()
    ready_lines: tuple[str, ...] = ()
    alive_lines: tuple[str, ...] = ()
    idle_pattern: str | None = None
    harmless: tuple[str, ...] = ()
    relays: tuple[str, ...] = ()
    fatal_lines: tuple[str, ...] = ()
    echo_pattern: str | None = None
    rank_pattern: str | None = None
    hallmarks: tuple[str, ...] = ()
    version_patterns: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    silent_s: dict[Phase, float] = msgspec.field(default_factory=dict)
    health_path: str = "/health"
    health_costs_token: bool = False
    models_path: str = "/v1/models"
    completion_paths: tuple[str, ...] = ("/v1/completions", "/v1/chat/completions")
    metrics: MetricNames = MetricNames()
    key_flags: tuple[str, ...] = ("--api-key",)
    key_variables: tuple[str, ...] = ()
    host_flags: tuple[str, ...] = ("--host",)
    host_variables: tuple[str, ...] = ()
    port_flags: tuple[str, ...] = ("--port",)
    port_variables: tuple[str, ...] = ()
    tls_flags: tuple[str, ...] = ()
    tls_variables: tuple[str, ...] = ()
    model_flags: tuple[str, ...] = ("--model",)
    model_variables: tuple[str, ...] = ()
    model_position: bool = False
    draft_flags: tuple[str, ...] = ()
    draft_configs: tuple[str, ...] = ()
    revision_flags: tuple[str, ...] = ("--revision",)
    packages: tuple[str, ...] = ()
    imports_as: tuple[str, ...] = ()
    argument_classes: tuple[str, ...] = ()
    argument_roots: tuple[str, ...] = ()
    info_paths: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    measured_by: str = ""
    name_flags: tuple[str, ...] = ("--served-model-name",)
    name_variables: tuple[str, ...] = ()
    default_host: str = "127.0.0.1"
    default_port: int = 8000
    speculation_flags: tuple[str, ...] = ()
    serves: bool = True
    repeats_as: dict[Phase, Phase] = msgspec.field(default_factory=dict)
    imports: bool = False


def printed_by(text: str, tables: Iterable[EngineTable]) -> EngineTable | None:
    """Return the first of `tables` whose engine alone prints such a text, or None."""
    return next((one for one in tables if any(mark in text for mark in one.hallmarks)), None)


def version_in(text: str, table: EngineTable) -> str | None:
    """Return the engine's version where `text` states it, else None."""
    matches = (re.search(pattern, text) for pattern in table.version_patterns)
    return next((match[1] for match in matches if match), None)
