"""Whether a repository that is not on this host, or not whole, can be fetched: the cache, the token, and what forbids the hub.

Held against huggingface_hub 2.4 as vLLM 0.32 installs it. No request is made: that a repository is gated only its name tells, or
its card in the cache.
"""

from collections.abc import Iterator

from vigil.preflight.check_files import reads_files
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.gated import gated
from vigil.preflight.placing import renamed
from vigil.preflight.seen_models import HubSeen, ModelSeen
from vigil.screen import plain, size

# The model, or a token for it, comes by another way than the hub's own settings.
OTHER_PLACES = ("--download-dir", "--cache-dir")
OTHER_TOKENS = ("--hf-token", "-hft", "--hf-token-path")
OTHER_USERS = ("sudo", "su", "doas", "runuser", "gosu", "setpriv")
SCHEMES = ("http://", "https://")
SHOWN = 3


def check_fetch(command: Command, model: ModelSeen) -> Iterator[Finding]:
    """Find what keeps a repository from being fetched that the cache does not have."""
    hub = model.hub or HubSeen(offline=model.offline, token=True)
    if hub.modelscope and command.engine != "llamacpp":
        return
    if _is_forbidden(command, hub):
        yield _forbidden(command, model, hub)
        return
    found = [*_out_of_reach(command, model, hub), *_gated(command, model, hub, "is not in the cache")]
    yield from found
    if model.repository and not any(one.severity is Severity.FATAL for one in found):
        text = f"{model.given} is not in the cache of this host: it is fetched first{_from(hub)}{_begun(hub)}."
        yield Finding(code="FILE004", severity=Severity.NOTE, text=text)


def _is_forbidden(command: Command, hub: HubSeen) -> bool:
    """Tell whether nothing may be fetched; llama.cpp (b9093 to b11434) does not read the hub's own variables."""
    if command.engine == "llamacpp":
        return command.last("--offline") is not None
    return hub.offline is not None


def check_rest(command: Command, model: ModelSeen) -> Iterator[Finding]:
    """Find a repository of which the cache holds a part: the rest is fetched, where that is possible."""
    hub, index = model.hub, model.index
    if hub is None or not model.cached or hub.modelscope or hub.offline is not None or model.kind != "folder":
        return
    missing = index.missing_count if index is not None and not model.more else 0
    nothing = not (model.files or model.pickles or model.others or model.more or index is not None)
    if (
        command.engine == "llamacpp"
        or not (missing or nothing)
        or not reads_files(command, served=model.what == "model")
    ):
        return
    what = f"{missing} files of weights are not in the cache" if missing else "its weights are not in the cache"
    refused = list(_gated(command, model, hub, what))
    yield from refused
    if not any(one.severity is Severity.FATAL for one in refused):
        text = f"{model.given} is not whole: {what}, and fetched first{_from(hub)}{_begun(hub)}."
        yield Finding(code="FILE004", severity=Severity.NOTE, text=text)


def _forbidden(command: Command, model: ModelSeen, hub: HubSeen) -> Finding:
    """Say that what is not there may not be fetched, and what of it is there. An older llama.cpp has a cache of its own."""
    ours = command.engine != "llamacpp"
    forbids = f"{hub.offline if ours else '--offline'} forbids to fetch it"
    edits: tuple[Edit, ...] = ()
    if hub.begun:
        named = (
            f"its revision is {plain(hub.commit, 40)}, which is not there" if hub.commit else "it has no such revision"
        )
        others = f"; there is {', '.join(hub.snapshots[:SHOWN])}" if hub.snapshots else ""
        text = f"The cache has a folder of {model.given}, and {named}{others}; {forbids}{_begun(hub)}."
        if ours and len(hub.snapshots) == 1 and command.last("--revision") is None:
            edits = (Edit(at=_end(command), put=("--revision", hub.snapshots[0])),)
    else:
        like = f" It has {', '.join(model.near_cached)}." if model.near_cached else ""
        text = f"{model.given} is neither a path nor in the cache, and {forbids}.{like}"
        edits = renamed(command, model, model.near_cached[0]) if len(model.near_cached) == 1 else ()
    return Finding(
        code="FILE001",
        severity=Severity.FATAL if ours and command.last(*OTHER_PLACES) is None else Severity.WARNING,
        text=text,
        advice=f"Fetch it before (hf download), or take the {'variable' if ours else 'flag'} away.",
        edits=edits,
    )


def _end(command: Command) -> int:
    return command.end if command.end is not None else len(command.words)


def _out_of_reach(command: Command, model: ModelSeen, hub: HubSeen) -> Iterator[Finding]:
    """Find an address of the hub that is none, and a cache that cannot be written to."""
    another_user = any(word.rpartition("/")[2] in OTHER_USERS for word in command.words[: command.own])
    if model.hub is None or command.engine == "llamacpp":
        return
    if hub.endpoint is not None and not hub.endpoint.startswith(SCHEMES):
        yield Finding(
            code="FILE001",
            severity=Severity.FATAL,
            text=f"{model.given} is not in the cache, and HF_ENDPOINT={plain(hub.endpoint, 100)} is no address to fetch it from: "
            "it has no https:// before it.",
            advice=f"HF_ENDPOINT=https://{plain(hub.endpoint, 100)}",
            seen="huggingface_hub 2.4: UnsupportedProtocol",
        )
    elif hub.writable is False and command.last(*OTHER_PLACES) is None and not another_user:
        yield Finding(
            code="FILE001",
            severity=Severity.FATAL,
            text=f"{model.given} is not in the cache, and {plain(hub.folder, 200)} cannot be written to: it cannot be fetched.",
            advice="Make the folder, give it to the user that the server runs as, or name another: HF_HOME, HF_HUB_CACHE.",
        )


def _gated(command: Command, model: ModelSeen, hub: HubSeen, why: str) -> Iterator[Finding]:
    """Find a gated repository without a token, or with one that is kept back. A mirror may want none."""
    name = model.given.partition(":")[0]
    told = True if hub.gated else gated(name)
    given = command.last(*OTHER_TOKENS) is not None or any("HF_TOKEN" in word for word in command.words)
    if told is None or given or hub.endpoint or (hub.token and hub.implicit) or command.last(*OTHER_PLACES) is not None:
        return
    lacks = (
        "HF_HUB_DISABLE_IMPLICIT_TOKEN keeps the token of this host back"
        if hub.token
        else "there is no token on this host"
    )
    yield Finding(
        code="AUTH001",
        severity=Severity.FATAL if told and not hub.token and command.engine != "llamacpp" else Severity.WARNING,
        text=f"{name} {'is' if told else 'may be'} gated, {why}, and {lacks}.",
        advice="Accept its licence on huggingface.co, then `hf auth login` there, or set HF_TOKEN."
        if not hub.token
        else "Take the variable away, or give the token to the engine itself (--hf-token).",
        seen="the model card in the cache" if hub.gated else "the name of the repository",
    )


def _from(hub: HubSeen) -> str:
    return f" from {plain(hub.endpoint, 100)}" if hub.endpoint else ""


def _begun(hub: HubSeen) -> str:
    """Return what is there of downloads that did not end: they go on where they stopped."""
    if not hub.incomplete:
        return ""
    files = "1 file was" if hub.incomplete == 1 else f"{hub.incomplete} files were"
    return f" ({files} begun before, {size(hub.incomplete_bytes)} are there)"
