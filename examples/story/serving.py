"""The second half: what is refused, what is seen, what speculation costs and gives, and a crash loop with its cause."""

import shlex
import shutil
import sys
from pathlib import Path

from place import Place, vigil
from telling import Step

sys.path.append(str(Path(__file__).parents[2] / "tests" / "real"))
from overlay import overlay

REFUSED, CRASH_LOOPING, DEGRADED, UNPROVEN = 3, 5, 9, 13
LOADED, DEAD = "v1/core/sched/scheduler.py", "v1/worker/xpu_model_runner.py"


def wrong_flag(place: Place) -> Step:
    """Give the flag of the first story, which the engine does not have."""
    step = Step("wrong-flag", "The wrong flag, before the start")
    done = vigil(place, step, "up --name wrong --json --", more=place.serve("--num-speculative-tokens", "16"))
    step.promise("verdict", "refused (3)", f"{done.told.get('verdict')} ({done.rc})", kept=done.rc == REFUSED)
    cause = done.told.get("cause") or {}
    step.figure("what to do", f"{cause.get('code')}: {cause.get('text')}; {cause.get('advice')}")
    return step


def patched(place: Place) -> Step:
    """Edit two files of the engine, one of which is loaded by nobody."""
    step = Step("patched", "A patched file that nothing loads")
    copy = _patched_vllm(place)
    python = next(parent for parent in copy.parents if (parent / "bin" / "python").exists()) / "bin" / "python"
    command = [str(python), "-m", "vllm.entrypoints.cli.main", *place.serve(*place.speculating())[1:]]
    line = "up --name patched --expect {} --expect {} --json --"
    done = vigil(place, step, line, f"file={copy / LOADED}", f"file={copy / DEAD}", more=command)
    vigil(place, step, "stop patched --grace 10s")
    step.promise("verdict", "degraded (9)", f"{done.told.get('verdict')} ({done.rc})", kept=done.rc == DEGRADED)
    found = {one["expectation"].partition("=")[2]: one for one in done.told.get("expectations", ())}
    for name, wanted in ((LOADED, True), (DEAD, False)):
        one = found.get(str(copy / name), {})
        promised = "loaded" if wanted else "seen that nothing loads it"
        step.promise(name, promised, str(one.get("found")), kept=one.get("met") is wanted)
    return step


def load(place: Place) -> Step:
    """Measure the server without and with speculation at each load; prove the schedule to switch it by, where there is one."""
    step = Step("load", "Under load: without speculation, with it, and switched")
    line = (
        "tune --concurrency 1,4,8 --k 3 --prompts {} --chat --natural-ends --output 96 --seconds 5s --most 30s --repeats 3 "
        "--out {} --json --"
    )
    prompts, out = place.kept / "made" / "heldout.jsonl", place.work / "tune"
    done = vigil(place, step, line, prompts, out, more=place.serve(*place.speculating()))
    answer = done.told
    measured = f"{answer.get('kind')} (exit code {done.rc})"
    step.promise("each load was measured with and without", "an answer", measured, kept=done.rc in {0, UNPROVEN})
    step.figure("the answer", str(answer.get("text")))
    if "proof_text" in answer:
        proven = not answer["proof"]["against"]
        step.promise("the schedule", "proven on each load and a ramp", str(answer["proof_text"]), kept=proven)
    vigil(place, step, "report {} --pictures {}", out / "arms", place.work / "pictures")
    for picture in sorted((place.work / "pictures").glob("*.svg"))[:1]:
        shutil.copyfile(picture, place.work / "load.svg")
    return step


def crash_loop(place: Place) -> Step:
    """Start a server that dies again and again behind a loop whose own pid never changes."""
    step = Step("crash-loop", "A crash loop, named with its cause")
    loop = f"while :; do {shlex.join(place.serve('--max-model-len', '1000000'))}; sleep 1; done"
    url = f"http://127.0.0.1:{place.port}"
    done = vigil(place, step, "up --name loop --no-check --json --url {} -- sh -c {}", url, loop)
    vigil(place, step, "stop loop --grace 5s")
    cause = done.told.get("cause") or {}
    verdict = f"{done.told.get('verdict')} ({done.rc}) after {len(done.told.get('attempts', ()))} attempts"
    step.promise("verdict", "crash_looping (5)", verdict, kept=done.rc == CRASH_LOOPING)
    found = f"{cause.get('code')}, line {cause.get('line')}: {cause.get('text')}; {cause.get('advice')}"
    step.promise("cause", "a code, a line, what to do", found, kept=bool(cause.get("code") and cause.get("line")))
    return step


def _patched_vllm(place: Place) -> Path:
    """Return a copy of vLLM with two edited files, in an environment of its own."""
    home = place.work / "patched-vllm"
    if not home.exists():
        copy = overlay(place.vllm, "vllm", home)
        for name in (LOADED, DEAD):
            (copy / name).write_text((copy / name).read_text() + "\n# patched\n")
    return next(home.glob("lib/python3*/site-packages/vllm"))
