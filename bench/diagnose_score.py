"""`make diagnose-score`: does `vigil diagnose` point at the right line, with the right kind? Beside three other ways to look.

    python bench/diagnose_score.py [--misses] [--advice] [--cases FILE] [--also FILE] [--held]

Cases: tests/data/corpus/cases.jsonl (public reports reduced to log lines; see TAXONOMY.md there), more.jsonl beside it
(further ones, collected later, each labelled before it was tried) and the real logs in tests/data/logs. A good third of the
corpus is set aside by a hash of the id and was not looked at while rules were written: `--misses` and `--advice` leave it
out, unless `--held` is given; of it only the kinds that fail are counted. `--also FILE`: reports in the same form that are
kept elsewhere, none of which was looked at. Each case is read as `vigil diagnose FILE` reads a file:
nothing but its bytes is known.

A line counts where its wording is not marked as inferred; the kind counts in all cases. For a start that stands still without
an error, line and kind are those of the phase that it stands in. The figures are kept in docs/results/diagnosis.json.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from bench_figures import machine  # noqa: E402
from diagnosis.lives import DEATHS, HEALTHY, LIVES, kept_logs, name_of  # noqa: E402 - needs the path above
from vigil.diagnosis.postmortem import Log, Postmortem  # noqa: E402
from vigil.engines import TABLES  # noqa: E402

CASES = ROOT / "tests" / "data" / "corpus" / "cases.jsonl"
MORE = CASES.with_name("more.jsonl")
RESULTS = ROOT / "docs" / "results" / "diagnosis.json"
INFERLINT = ROOT / ".peers" / "inferlint" / "bin" / "inferlint"
SEED = "vigil-2026 "
_SCARY = re.compile(r"error|exception|fatal", re.IGNORECASE)


class Case(NamedTuple):
    """A log and what is known of it; `line` counts from 1, None: healthy. `kind` is empty where only the line is known."""

    name: str
    log: bytes
    line: int | None
    kind: str
    attempts: int
    held: bool
    inferred: bool
    decoys: frozenset[int] = frozenset()
    fix: str = ""


class Answer(NamedTuple):
    """What a way of looking says. A start that stands still has a line, and is no cause."""

    line: int | None
    kind: str = ""
    is_cause: bool = True
    attempts: int | None = None
    advice: str = ""
    code: str = ""


def is_held(name: str) -> bool:
    """Tell whether a case of the corpus is set aside."""
    return hashlib.sha256((SEED + name).encode()).digest()[0] % 3 == 0


def corpus(path: Path, held: Callable[[str], bool] = is_held) -> list[Case]:
    """Return the cases of a file; `held` tells by its id whether one is set aside."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [_case(row, held=held(row["id"])) for row in rows]


def _case(row: dict[str, Any], *, held: bool) -> Case:
    root = row["root_cause_line_index"]
    return Case(
        name=row["id"],
        log="\n".join(row["log"]).encode() + b"\n",
        line=None if root is None else root + 1,
        kind=row["category"],
        attempts=row.get("attempts") or ATTEMPTS.get(row["id"], 1),
        held=held,
        inferred=row.get("root_text") == "inferred",
        decoys=frozenset(index + 1 for index in row.get("decoy_line_indexes", [])),
        fix=row.get("fix_one_line", ""),
    )


def real_logs() -> list[Case]:
    """Return the real logs whose root line a reader has named, and those that are healthy."""
    found = []
    for path in kept_logs():
        name, data = name_of(path), path.read_bytes()
        lines = data.decode("utf-8", "replace").split("\n")
        death = DEATHS.get(name)
        if death is None and name not in HEALTHY:
            continue
        line = None if death is None else next((n for n, text in enumerate(lines, 1) if death.words in text), 0)
        if line == 0:
            continue  # its end was seen by its parent only: no line of it says why
        found.append(Case(f"logs/{name}", data, line, "", LIVES.get(name, 1), held=False, inferred=False))
    return found


# Lives of the server in a case, by reading; one where nothing is said.
ATTEMPTS: dict[str, int] = json.loads((ROOT / "tests" / "data" / "corpus" / "attempts.json").read_text())


def ask_vigil(case: Case) -> Answer:
    """Ask as `vigil diagnose FILE` does."""
    postmortem = Postmortem(tuple(TABLES.values()), Log(file=case.name))
    postmortem.feed(case.log)
    story = postmortem.close()
    if story.cause is not None:
        cause = story.cause
        return Answer(cause.line, cause.kind, attempts=story.attempts, advice=cause.advice, code=cause.code)
    if story.stuck_in is not None:
        stuck = story.stuck_in
        return Answer(stuck.line, stuck.kind, is_cause=False, attempts=story.attempts, code="stuck")
    return Answer(None, attempts=story.attempts)


def ask_grep(case: Case) -> Answer:
    """`grep -niE 'error|exception|fatal' | tail -1`."""
    lines = [number for number, text in enumerate(_lines(case), 1) if _SCARY.search(text)]
    return Answer(lines[-1] if lines else None)


def ask_last(case: Case) -> Answer:
    """Take the last line that is not empty."""
    lines = [number for number, text in enumerate(_lines(case), 1) if text.strip()]
    return Answer(lines[-1] if lines else None)


def ask_inferlint(case: Case) -> Answer:
    """`inferlint check-log`: T12 quotes the message of the failure that it found; the first line with it counts."""
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(case.log)
        file.flush()
        done = subprocess.run([INFERLINT, "check-log", file.name], capture_output=True, text=True, check=False)
    found = re.search(r"^\[T12\] TRIPWIRE-FAILED +\S+ during \w+: (?P<said>.*)$", done.stdout, re.MULTILINE)
    if found is None:
        return Answer(None)
    said = re.sub(r" \(in [^()]*\)$", "", found["said"]).strip()
    part = said[:60].rstrip("… .")
    return Answer(next((n for n, text in enumerate(_lines(case), 1) if part and part in text), -1))


def _lines(case: Case) -> list[str]:
    return case.log.decode("utf-8", "replace").split("\n")


def judge(case: Case, answer: Answer) -> str:
    """Return `right`, or how the answer is wrong."""
    if case.line is None:
        return "right" if answer.line is None or not answer.is_cause else "false alarm"
    if answer.line is None:
        return "silent"
    if answer.line == case.line:
        return "right"
    return "decoy" if answer.line in case.decoys else "other line"


def figures(cases: Sequence[Case], ask: Callable[[Case], Answer]) -> dict[str, str | int]:
    """Return the row of one way of looking over some cases."""
    asked = [(case, ask(case)) for case in cases]
    ill = [(case, answer) for case, answer in asked if case.line is not None]
    exact = [judge(case, answer) == "right" for case, answer in ill if not case.inferred]
    kinds = [answer.kind == case.kind for case, answer in ill if case.kind]
    alarms = sum(judge(case, answer) == "false alarm" for case, answer in asked)
    counted = [answer.attempts == case.attempts for case, answer in asked if answer.attempts is not None]
    return {
        "line": _share(exact),
        "kind": _share(kinds) if any(answer.kind for _, answer in asked) else "-",
        "decoys taken": sum(judge(case, answer) == "decoy" for case, answer in ill),
        "false alarms": f"{alarms} of {len(asked) - len(ill)}",
        "attempts": _share(counted) if counted else "-",
    }


def failing_kinds(cases: Sequence[Case]) -> list[dict[str, str]]:
    """Return, of each kind that is not always known, how often it is, and what it was called instead: counts, no case."""
    said: dict[str, Counter[str]] = {}
    for case in cases:
        if case.kind and case.line is not None:
            said.setdefault(case.kind, Counter())[ask_vigil(case).kind or "nothing"] += 1
    rows = []
    for kind, called in sorted(said.items()):
        wrong = [f"{other} ({count})" for other, count in called.most_common() if other != kind]
        if wrong:
            rows.append({"kind": kind, "known": f"{called[kind]} of {called.total()}", "called": ", ".join(wrong)})
    return rows


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / len(right):.0%})" if right else "-"


def sets_of(path: Path, also: Path | None) -> dict[str, list[Case]]:
    """Return the cases by their set; `path` is the corpus."""
    cases = corpus(path)
    return {
        "corpus, looked at": [case for case in cases if not case.held],
        "corpus, set aside": [case for case in cases if case.held],
        "further reports": corpus(MORE, lambda _: False),
        "real logs": real_logs(),
    } | ({"reports kept elsewhere": corpus(also, lambda _: True)} if also else {})


def main() -> int:
    """Print the table, keep it, and what went wrong where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--also", type=Path, metavar="FILE", help="further cases, which are only counted")
    parser.add_argument("--misses", action="store_true", help="print what went wrong, one case a line")
    parser.add_argument("--advice", action="store_true", help="print each advice beside the known fix, to be read")
    parser.add_argument("--held", action="store_true", help="show the cases that are set aside, too")
    options = parser.parse_args()
    sets = sets_of(options.cases, options.also)
    ways = {"vigil diagnose": ask_vigil, "grep | tail -1": ask_grep, "last line": ask_last}
    if INFERLINT.exists():
        ways["inferlint 0.3.1"] = ask_inferlint
    rows = [
        {"cases": name, "way": way, **figures(some, ask)} for name, some in sets.items() for way, ask in ways.items()
    ]
    widths = {column: max(len(column), *(len(str(row[column])) for row in rows)) for column in rows[0]}
    for row in [dict.fromkeys(rows[0]), *rows]:
        print(
            "  ".join(
                str(value if value is not None else column).ljust(widths[column]) for column, value in row.items()
            )
        )
    kinds = failing_kinds([case for some in sets.values() for case in some if case.held])
    print("\nof the cases that are set aside, the kinds that are not always known:")
    for kind in kinds:
        print("  {kind:24}{known:10}called {called}".format(**kind))
    if options.cases == CASES:
        date = time.strftime("%Y-%m-%d %H:%M:%S %z")
        kept = {"date": date, "machine": machine(), "seed": SEED.strip(), "rows": rows, "kinds": kinds}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    shown = [case for some in sets.values() for case in some if options.held or not case.held]
    for case in shown if options.misses or options.advice else ():
        tell(case, ask_vigil(case), options)
    return 0


def tell(case: Case, answer: Answer, options: argparse.Namespace) -> None:
    """Print one case: what is wrong with its answer, or the advice beside the known fix."""
    verdict = judge(case, answer)
    right = verdict == "right" and (not case.kind or case.line is None or answer.kind == case.kind)
    right = right and answer.attempts == case.attempts
    if options.misses and not right:
        wording = "inferred" if case.inferred else ""
        said = f"{answer.code} {answer.kind} line {answer.line}, not {case.line}; {answer.attempts} lives, not {case.attempts}"
        print(f"{verdict:11} {case.name:34} {wording:8} {case.kind:22} {said}")
    if options.advice and case.fix:
        print(f"{case.name} {answer.code} {verdict}\n  fix:    {case.fix}\n  advice: {answer.advice}")


if __name__ == "__main__":
    sys.exit(main())
