"""A page for each rule of the diagnosis, and their list."""

import re

from generators.markdown import block, code, facts, page, prose, table
from vigil.diagnosis.rules import AdviceFor, Rule, Sample, When, known_rules


def pages() -> dict[str, str]:
    """Return the pages by path."""
    found = {f"rules/{rule.code}.md": rule_page(rule) for rule in known_rules().values()}
    found["rules/index.md"] = index_page()
    return found


def rule_page(rule: Rule) -> str:
    """Return the page of one rule."""
    told = facts(
        [
            ("kind", code(rule.kind)),
            ("engines", ", ".join(rule.engines) or "any"),
            ("can a retry mend it", "yes" if rule.retry else "no; two attempts that end so are a loop"),
            *([("weight", "general; a rule that knows more goes before it")] if rule.generic else []),
            *([("also without a line", "the way in which the process ended is enough")] if rule.from_end else []),
            *(
                [("weight", "the aftermath of another process's death: anything else goes before it")]
                if rule.aftermath
                else []
            ),
            *([("in", "a server that runs, where nothing died")] if rule.seen else []),
        ]
    )
    head = ["text in the line", "and this pattern", "engines", "and"]
    signs = table(head, [sign_row(one, rule) for one in rule.when]) if rule.when else prose(SEEN)
    other = [f"{where(one)}: {advice_of(one.advice)}" for one in rule.advice_for]
    other += [f"{code(one.text)}: {advice_of(one.advice)}" for one in rule.when if one.advice]
    other += [f"{code(one.text)}, {where(own)}: {advice_of(own.advice)}" for one in rule.when for own in one.advice_for]
    return page(
        f"{rule.code}: {rule.title}", f"vigil/diagnosis/rules/{rule.code}.toml", told,
        "## Why", prose(rule.because), "## What to do", advice_of(rule.advice), "\n".join(f"- {one}" for one in other),
        "## How it shows", signs, "## Lines that it knows", *(sample_of(one) for one in rule.match),
        "## Lines that it leaves alone", *(sample_of(one) for one in rule.near_miss),
    )  # fmt: skip


def advice_of(text: str) -> str:
    """Return advice with the words that are filled in from the log (`{flag}`) shown as such."""
    return re.sub(r"\{(\w+)\}", r"`{\1}`", prose(text))


SEEN = "No single text shows it: the lines of the attempt are read together, as the samples below show."


def where(advice: AdviceFor) -> str:
    """Return the engine and versions that an advice is for."""
    since = f" from {advice.since} on" if advice.since else ""
    before = f" before {advice.before}" if advice.before else ""
    return f"{advice.engine}{since}{before}"


def sign_row(when: When, rule: Rule) -> list[str]:
    """Return one way to see a failure, as a row."""
    engines = ", ".join(when.engines or rule.engines) or "any"
    return [code(when.text), code(when.pattern or ""), engines, "; ".join(conditions(when))]


def conditions(when: When) -> list[str]:
    """Return what else must hold, and how the line counts."""
    texts = [
        ("while " + " or ".join(stage or "nothing is loaded" for stage in when.stage), when.stage),
        ("after a line with " + " or ".join(map(code, when.after)), when.after),
        ("no line soon after with " + " or ".join(map(code, when.unless)), when.unless),
        ("a frame of the traceback matches " + code(when.frame or ""), when.frame),
        ("another line near it may say why", when.weak),
        ("a warning counts, too", when.quiet),
        ("a relay's words count, too", when.relayed),
        ("a server that came up has it, too", when.lasting),
        ("points at the last line above with " + " or ".join(map(code, when.back)), when.back),
    ]
    return [text for text, holds in texts if holds]


def sample_of(sample: Sample) -> str:
    """Return a piece of a log with where it comes from."""
    return f"{block(sample.text, 'text')}\n\n{prose(sample.source)}"


def index_page() -> str:
    """Return the list of rules."""
    rows = (
        [f"[{rule.code}]({rule.code}.md)", prose(rule.title), code(rule.kind), "yes" if rule.retry else "no"]
        for rule in known_rules().values()
    )
    intro = (
        "A cause is the first failure in a log that explains the others. Each has a stable code, which is never used for "
        "anything else. "
        "Codes that end in 000 say that something failed without knowing what.\n\n"
        "Three codes need no line of a log: `CMD001` (the command cannot be run), `HOST001` (the host was rebooted), and "
        "`PORT001`, which is also given when another program holds the port."
    )
    head = ["code", "meaning", "kind", "can a retry mend it?"]
    return page("Causes", "vigil/diagnosis/rules/*.toml", intro, table(head, rows))
