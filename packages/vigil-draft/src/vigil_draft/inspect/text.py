"""An inspection in words: the conventions, the tensors, a line for each release, and beneath it what is to be known and done."""

from vigil.cli.prose import wrapped
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import TITLES
from vigil.screen import plain, size
from vigil_draft.inspect.inspection import Inspection, Reading, TensorTold

MOST_TENSORS = 60
# What a finding means for what is loaded, by its code; the worst of a release stands in its line.
DOES = {
    "DRAFT002": "drops tensors",
    "DRAFT003": "invents tensors",
    "DRAFT004": "feeds it from other layers",
    "DRAFT005": "misreads settings",
    "DRAFT006": "misreads the vocabulary",
    "DRAFT007": "misreads the vocabulary",
    "FLAG003": "serves it past its positions",
}


def text_of(found: Inspection) -> str:
    """Return an inspection for people. Nothing in it can move or colour the terminal."""
    lines = [f"{plain(found.path, 300)}: {found.conventions['format']}, {size(found.weights_bytes)}", ""]
    lines += [one for name, told in found.conventions.items() if name != "format" for one in _line(name, told)]
    lines += [one for doubt in found.doubts for one in _line("in doubt", doubt)]
    lines += ["", *_tensors(found.tensors), "", *_readings(found.readings)]
    groups = _groups(found.readings)
    for (code, severity, text, advice, seen), releases in groups.items():
        lines += ["", f"  {code}  {severity}: {', '.join(releases)}", *wrapped(text, first="    ", then="    ")]
        lines += wrapped(f"what to do: {advice}", first="    ", then="      ") if advice else []
        lines += wrapped(f"known from: {seen}", first="    ", then="      ") if seen else []
    return "\n".join(lines)


def _line(name: str, told: str) -> list[str]:
    return wrapped(plain(told, 600), first=f"  {name:<12}", then=" " * 14)


def _tensors(tensors: tuple[TensorTold, ...]) -> list[str]:
    wide = max((len(one.name) for one in tensors), default=0)
    shown = [
        f"  {plain(one.name, 120):<{min(wide, 120)}}  {one.dtype:<5} {_by(one.shape)}{_wrong(one)}"
        for one in tensors[:MOST_TENSORS]
    ]
    return shown + ([f"  ... and {len(tensors) - MOST_TENSORS} more"] if len(tensors) > MOST_TENSORS else [])


def _wrong(one: TensorTold) -> str:
    if one.by_config is None:
        return ""
    return "" if one.by_config == one.shape else f"  but its config says {_by(one.by_config)}"


def _by(shape: tuple[int | None, ...]) -> str:
    return " x ".join(map(str, shape))


def _readings(readings: tuple[Reading, ...]) -> list[str]:
    return [f"  {_release(one):<28}{does(one)}" for one in readings]


def _release(one: Reading) -> str:
    other = f" (by {one.release})" if one.release != one.asked else ""
    return f"{TITLES[one.engine]} {one.asked}{other}"


def does(one: Reading) -> str:
    """Return in a few words what a release makes of the draft."""
    if not one.loads:
        codes = [finding.code for finding in one.findings if finding.severity is Severity.FATAL]
        return f"ends in an error ({', '.join(dict.fromkeys(codes))})"
    found = [finding for finding in one.findings if finding.severity is not Severity.NOTE]
    told = dict.fromkeys(DOES.get(finding.code, finding.code) for finding in found)
    codes = list(dict.fromkeys(finding.code for finding in found))
    return f"loads it, and {', '.join(told)} ({', '.join(codes)})" if found else "loads it as it was trained"


def _groups(readings: tuple[Reading, ...]) -> dict[tuple[str, str, str, str, str], list[str]]:
    """Return the findings, one that several releases share once, with those releases."""
    found: dict[tuple[str, str, str, str, str], list[str]] = {}
    for one in readings:
        for finding in one.findings:
            found.setdefault(_key(finding, one), []).append(f"{TITLES[one.engine]} {one.asked}")
    return found


def _key(finding: Finding, one: Reading) -> tuple[str, str, str, str, str]:
    engine = TITLES[one.engine]
    text = finding.text.replace(f"{engine} {one.release}", engine)
    return finding.code, finding.severity.value, plain(text, 600), plain(finding.advice, 600), plain(finding.seen, 300)
