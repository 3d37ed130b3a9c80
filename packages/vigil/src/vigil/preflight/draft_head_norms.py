"""Check norms over each head of a draft's queries and keys, as Qwen3 has them: one class of one engine knows them.

Tried with the loaders of vLLM 0.32 (qwen3_eagle3.py; llama_eagle3.py) and SGLang 0.5.23 (llama_eagle3.py, the only one).
"""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import title

CLASS = "Eagle3Qwen3ForCausalLM"
SHOWN = 4
KNOWN_FROM = f"vLLM has {CLASS} from 0.27.1 on (qwen3_eagle3.py; 0.23.0 has not); SGLang 0.5.23 has none"


def check_class(command: Command, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find a release that has no class for Qwen3's drafts: the load ends."""
    if not draft.is_qwen3 or releases.serves(command.engine, version, CLASS) is not False:
        return
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"{draft.given} is an EAGLE-3 draft of Qwen3's layer, for {CLASS}, which is no class of "
        f"{title(command, version)}: it ends in an error.",
        advice="Serve it with vLLM from 0.27.1 on; SGLang would need a draft that was trained without norms over the heads."
        if command.engine == "sglang"
        else "Take 0.27.1 or a later release.",
        seen=KNOWN_FROM,
    )


def check_head_norms(command: Command, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find such norms in a draft of Llama's class, which has no place for them."""
    names = draft.head_norms
    if not names or draft.is_qwen3:
        return
    silent = command.engine == "sglang"
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    what = "drops them without a word, computes with queries and keys that are not normed, and accepts less"
    yield Finding(
        code="DRAFT002" if silent else "DRAFT001",
        severity=Severity.WARNING if silent else Severity.FATAL,
        text=f"{draft.given} norms each head of its queries and keys ({shown}): {title(command, version)}, by its class for "
        f"Llama's drafts, {what if silent else 'ends at the first of them'}.",
        advice=f'vLLM from 0.27.1 on: "architectures": ["{CLASS}"] and "model_type": "qwen3" in its config.json. '
        "SGLang would need a draft that was trained without them.",
        seen=KNOWN_FROM,
    )
