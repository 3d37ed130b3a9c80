"""Looks above a cause for an earlier line that made it: an import that failed in silence."""

import re

import msgspec

from vigil.diagnosis.candidates import Candidate
from vigil.diagnosis.rules import known_rules
from vigil.diagnosis.text import LogText

IGNORED = "Ignore import error when loading"
_MODULE = re.compile(r"Ignore import error when loading \S*?\.?models\.(?P<module>\w+): (?P<why>.*)")
_PROBED = ("Failed to import from vllm._",)
"""vLLM goes on without its own extensions, and cannot inspect any model then."""
_UNDEFINED = re.compile(r"NameError: name '\w+' is not defined$")
"""Of a module that imports from such an extension in a `try`: what it could not import it does not have."""
_SHORTEST = 4


def look_upward(log: LogText, chosen: Candidate) -> Candidate:
    """Return the failed import of the very file that holds the architecture which is "not supported", else `chosen`.

    SGLang imports every model file that it has and goes on without those that fail (0.4 to 0.5). The class
    `Qwen3NextForCausalLM` stands in `qwen3_next.py`. vLLM (0.6) says that a class is not supported, and names it among
    those that are, where the class's file could not be imported; a name that such a module did not get is not defined.
    """
    probed = log.last_before(_PROBED, chosen.index)
    if probed is not None and chosen.rule.generic and _UNDEFINED.match(log.read(chosen.index).body):
        return _import(chosen, probed)
    if chosen.rule.code != "ARCH001":
        return chosen
    asked = re.sub(r"\W", "", dict(chosen.groups).get("arch", "")).lower()
    if probed is not None and _listed(log.texts[chosen.index], asked):
        return _import(chosen, probed)
    for index in log.find(IGNORED):
        match = _MODULE.search(log.texts[index])
        name = match["module"].replace("_", "").lower() if match else ""
        if index < chosen.index and len(name) >= _SHORTEST and asked.startswith(name):
            return _import(chosen, index)
    return chosen


def _listed(text: str, asked: str) -> bool:
    """Whether the line names the class that it refuses among those that are supported."""
    known = text.partition("Supported architectures:")[2]
    return bool(asked) and f"'{asked}'" in known.lower()


def _import(chosen: Candidate, index: int) -> Candidate:
    return msgspec.structs.replace(
        chosen, index=index, shown=None, head=None, rule=known_rules()["IMP001"], when=None, kind=""
    )
