"""Takes off what carried a whole log: where (nearly) all of its lines begin alike, that says nothing of any of them.

Forms that are known by themselves (docker compose, journald, a container runtime) are told by `prefix`; this finds those that
nobody can list: a pod's name, a tag of the user's own, the number of a task, a second clock.
"""

import re
from collections import Counter
from collections.abc import Sequence

_LOOKED_AT = 200
_FEWEST_LINES, _FEWEST_ALIKE = 2, 4
_SHARE = 0.95
_MOST_LAYERS = 3
_SHORTEST = 2
_FORMS = tuple(
    map(
        re.compile,
        (
            r"\[\d{1,5},\d{1,5}\]<std(?:out|err)>: ?",  # mpirun --tag-output
            r"\[pod/[^\]\s]{1,200}\] ",  # kubectl logs --prefix
            r"\d{1,4}: ",  # srun --label
            r"\d{1,3}\|[\w.-]{1,60} *\| ",  # pm2
            r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?:\| )?",
            r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?!(?:[\w.-]+ )?[\w.@/-]+\[\d+\]: )",  # ts; not journald
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,16} [\w.-]{1,80} [\w.@/-]{1,80}(?:\[\d+\])?: ",  # journalctl -o short-iso
            r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S{0,16}: ?",
            r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S{0,10} )\w{4,8} '[^']{1,60}' std(?:out|err) output:\s?",  # supervisord
            r"[>│|] ",
        ),
    )
)
_ENDS = re.compile(r".*[\]:|>)] ?|.*\s", re.DOTALL)
_OWN = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T]|[A-Z][a-z]{2} [ \d]\d \d\d:|\(\w+ pid=|(?:INFO|WARNING|ERROR|DEBUG)(?: \d\d-\d\d|:)"
    r"|\d+\.\d\d\.\d{3}\.|\[rank|\[TRT|\[TensorRT|[a-z]+_\w*: |(?:main|srv|slot|load|build)\b"
)
"""How engines' own lines begin."""
_TAG = re.compile(
    r"(?!.*(?:Error|Exception|Traceback|Warning))"
    r"(?:\[[^\[\]]{1,80}\]|[\w.:/@-]{1,80}(?: \u203a)?(?: [\w.:/@-]{1,40})?)(?: *\|)?:? ?"
)
"""What names a writer: one or two words, or words in brackets. A flood of one message begins alike, too."""
_BOUND = re.compile(r"[\]:|>)] ?| ")


def without_carriers(texts: Sequence[str]) -> list[str]:
    """Return the lines without what carried all of them; the same lines where nothing did."""
    found = list(texts)
    for _ in range(_MOST_LAYERS):
        form = _form([text for text in found if text.strip()][:_LOOKED_AT])
        if form is None:
            break
        found = [text[match.end() :] if (match := form.match(text)) else text for text in found]
    return found


def _form(sample: list[str]) -> re.Pattern[str] | None:
    """Return what (nearly) all of the lines begin with."""
    if len(sample) < _FEWEST_LINES:
        return None
    enough = _SHARE * len(sample)
    form = next((form for form in _FORMS if sum(form.match(text) is not None for text in sample) >= enough), None)
    return form or (_same(sample, enough) if len(sample) >= _FEWEST_ALIKE else None)


def _same(sample: list[str], enough: float) -> re.Pattern[str] | None:
    """Return the very words with which the lines begin, up to a space or a mark behind them."""
    most = Counter(text[:_SHORTEST] for text in sample).most_common(1)[0]
    if most[1] < enough:
        return None
    alike = [text for text in sample if text.startswith(most[0])]
    low, high = min(alike), max(alike)
    length = next(
        (i for i, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), min(len(low), len(high))
    )
    ends = _ENDS.match(low[:length])
    words = ends[0] if ends else ""
    own = next((at for at in (0, *(m.end() for m in _BOUND.finditer(words))) if _OWN.match(words, at)), len(words))
    tag = words[:own]
    return re.compile(re.escape(tag)) if len(tag.strip()) >= _SHORTEST and _TAG.fullmatch(tag) else None
