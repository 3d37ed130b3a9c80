"""Things to ask about, and sentences, out of WordNet's data files (wndb(5)): nouns by kind, the better known ones first."""

import re
from collections import defaultdict
from pathlib import Path

# Lexicographer files, lexnames(5), by number: the names that templates.toml uses.
KINDS = {
    4: "act", 5: "animal", 6: "artifact", 7: "attribute", 8: "body", 9: "cognition", 11: "event", 12: "feeling",
    13: "food", 14: "group", 15: "location", 17: "object", 18: "person", 19: "phenomenon", 20: "plant", 22: "process",
    26: "state", 27: "substance",
}  # fmt: skip
INSTANCE = "@i"
NAMES = {"person": "somebody", "location": "place"}
_EXAMPLE = re.compile(r'"([^"]{25,160})"')
RUDE = re.compile(
    r"\b(?:slang|vulgar|obscene|offensive|derogatory|disparaging|ethnic slur|sexual|sex|genital|prostitut|rape|murder"
    r"|suicide|kill)",
    re.IGNORECASE,
)


class Thing:
    """A thing with a name and what it is."""

    def __init__(self, name: str, gloss: str) -> None:
        self.name, self.gloss = name, gloss


def things(folder: Path) -> dict[str, list[Thing]]:
    """Return things by kind, those that texts name most often first; proper names of people and places are kinds of their own."""
    ranks = _ranks(folder / "cntlist.rev")
    found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for line in (folder / "data.noun").read_text("latin-1").splitlines():
        if line.startswith(" "):
            continue
        head, _, gloss = line.partition("|")
        fields = head.split()
        kind, words, word = KINDS.get(int(fields[1])), int(fields[3], 16), fields[4]
        if kind is None or RUDE.search(gloss) or not 3 <= len(word) <= 30:
            continue
        named = INSTANCE in fields[4 + 2 * words :]
        if named:
            kind = NAMES.get(kind, "")
        elif word[0].isupper() and kind in {"person", "location"}:
            continue
        name = _full(fields, words) if named else word
        if kind:
            meaning = gloss.split(";")[0].split('"')[0].strip()
            found[kind].append((-ranks.get(word.lower(), 0) - words, name.replace("_", " "), meaning))
    return {kind: [Thing(name, gloss) for _, name, gloss in sorted(set(some))] for kind, some in found.items()}


def _full(fields: list[str], words: int) -> str:
    """Return the fullest of a person's or place's names: WordNet lists the surname first."""
    names = [fields[4 + 2 * at] for at in range(words)]
    return max((one for one in names if "," not in one), key=lambda one: (one.count("_") in {1, 2}, len(one)))


def _ranks(path: Path) -> dict[str, int]:
    """Return how often texts use a noun."""
    found: dict[str, int] = defaultdict(int)
    for line in path.read_text("latin-1").splitlines():
        sense, _, count = line.split()
        lemma, _, rest = sense.partition("%")
        if rest.startswith("1:"):
            found[lemma] += int(count)
    return found


def sentences(folder: Path) -> list[str]:
    """Return the examples of all glosses that are whole enough to be sentences."""
    found: dict[str, None] = {}
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            gloss = line.partition("|")[2]
            if RUDE.search(gloss):
                continue
            for text in _EXAMPLE.findall(gloss):
                if text.count(" ") >= 4 and " - " not in text:
                    found[text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")] = None
    return list(found)
