"""Whether the model can be fetched, where only its name and the host's settings are known: a gated repository needs a token."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.gated import gated
from vigil.preflight.seen_host import HostSeen, SizeSeen
from vigil.preflight.visible import variable
from vigil.screen import plain


def check_hub(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find a gated repository that is not on this host, where there is no token to fetch it with."""
    if host.settings is None or host.settings.token or host.outside or _fetched_otherwise(command, host):
        return
    for one in host.sizes:
        often = gated(one.given.partition(":")[0])
        if one.path is None and often is not None:
            yield _gated(command, one, sure=often)


def _fetched_otherwise(command: Command, host: HostSeen) -> bool:
    """Say whether the model comes from elsewhere, or with a token that is given in another way."""
    given = command.last("--hf-token", "-hft", "--hf-token-path", "--download-dir", "--cache-dir") is not None
    if given or any("HF_TOKEN" in word for word in command.words):
        return True
    if any(command.env.get(name) for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")):
        return True
    names = ("VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE", "HF_ENDPOINT")
    return any(variable(command, host, name) for name in names)


def _gated(command: Command, one: SizeSeen, *, sure: bool) -> Finding:
    at = next(
        (at for at, word in enumerate(command.words) if word == one.given or word.endswith("=" + one.given)), None
    )
    name = plain(one.given, 100)
    return Finding(
        code="AUTH001",
        severity=Severity.FATAL if sure else Severity.WARNING,
        text=f"{name} is not on this host, and {'is' if sure else 'may be'} a gated repository; there is no token for it",
        advice=f"accept its terms at https://huggingface.co/{name}, then `hf auth login` on that host, or --env HF_TOKEN=...",
        at=at,
        seen="HF_TOKEN and the hub's token file are not there",
    )
