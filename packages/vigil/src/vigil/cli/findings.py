"""A report of `vigil check` in words: each finding under the words that it is about, and the command as it would be right."""

import shlex

from msgspec.structs import replace

from vigil.cli.prose import wrapped
from vigil.errors import UsageError
from vigil.preflight.finding import Finding, Report, kinds
from vigil.screen import hide_in_command, hide_secrets, plain

SHOWN_CHARS = 160
AROUND_CHARS = 60
AROUND_WORDS = 40
SHOWN_WORDS = 12
LONGEST_CHARS = 8000


def text_of(report: Report) -> str:
    """Return a report for people. Nothing in it can move or colour the terminal."""
    lines = [_head(report)]
    for one in report.findings:
        lines += ["", *lines_of(one, report.words)]
    if report.corrected is not None:
        lines += ["", "  as it would be right:", "", "    " + _joined(report.corrected)]
    lines += ["", *(f"  not looked at: {plain(one, 300)}" for one in report.unseen)]
    return "\n".join(lines).rstrip()


def hidden(report: Report) -> Report:
    """Return a report in which the values of secret flags are replaced, in its words and in what is said of them."""
    findings = tuple(
        replace(
            one,
            text=hide_secrets(one.text),
            advice=hide_secrets(one.advice),
            edits=tuple(replace(edit, put=hide_in_command(edit.put)) for edit in one.edits),
        )
        for one in report.findings
    )
    corrected = hide_in_command(report.corrected) if report.corrected is not None else None
    return replace(report, words=hide_in_command(report.words), findings=findings, corrected=corrected)


def _head(report: Report) -> str:
    fatal, others = len(report.fatal), len(report.findings) - len(report.fatal)
    engine = "" if report.engine == "generic" else f"  {report.engine} {report.version or ''}".rstrip()
    if not report.findings:
        return f"nothing found that it would die of{engine}"
    what = [f"{fatal} it would die of" if fatal else "", f"{others} to know" if others else ""]
    return f"{', '.join(filter(None, what))}{engine}"


def explained(code: str) -> str:
    """Return what a code means; raise `UsageError` for one that there is not."""
    kind = kinds().get(code.strip().upper())
    if kind is None:
        raise UsageError(f"there is no finding {plain(code, 40)!r}: one of {', '.join(sorted(kinds()))}")
    return "\n".join([f"{kind.code}  {kind.title}", "", *wrapped(kind.because)])


def lines_of(finding: Finding, words: tuple[str, ...]) -> list[str]:
    """Return one finding: its code, the words underlined, what is wrong, what to do."""
    kind = kinds().get(finding.code)
    lines = [f"  {finding.code}  {finding.severity.value}: {kind.title if kind else finding.code}"]
    lines += _underlined(finding, words)
    lines += wrapped(plain(hide_secrets(finding.text), 600), first="    ", then="    ")
    if finding.advice:
        lines += wrapped(f"what to do: {plain(hide_secrets(finding.advice), 900)}", first="    ", then="      ")
    if finding.seen:
        lines += wrapped(f"known from: {plain(finding.seen, 300)}", first="    ", then="      ")
    return lines


def _underlined(finding: Finding, words: tuple[str, ...]) -> list[str]:
    """Return the piece of the command around a finding's words, and a line of carets below them."""
    if finding.at is None or finding.at >= len(words):
        return []
    first = max(0, finding.at - AROUND_WORDS)
    near = hide_in_command(words[first : finding.at + finding.count + AROUND_WORDS])
    shown, at = [plain(_one_line(shlex.quote(word)), SHOWN_CHARS) for word in near], finding.at - first
    before = " ".join(shown[:at])
    piece = " ".join(shown[at : at + finding.count][:SHOWN_WORDS])
    after = " ".join(shown[at + finding.count :])
    before = ("..." + before[-AROUND_CHARS:] if len(before) > AROUND_CHARS else before) + (" " if before else "")
    after = (" " if after else "") + (after[:AROUND_CHARS] + "..." if len(after) > AROUND_CHARS else after)
    return [f"    {before}{piece}{after}".rstrip(), f"    {' ' * len(before)}{'^' * len(piece)}"]


def _one_line(text: str) -> str:
    return text[: SHOWN_CHARS * 4].replace("\n", "\\n").replace("\t", "\\t")


def _joined(words: tuple[str, ...]) -> str:
    text = shlex.join(hide_in_command(words))
    return plain(text, LONGEST_CHARS) if len(text) <= LONGEST_CHARS else f"({len(text)} characters: --json has them)"
