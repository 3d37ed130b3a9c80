"""`vigil draft verify`: serve a draft, measure its acceptance length, and hold it to its promise."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vigil.cli import options
from vigil.cli.saying import mention, say
from vigil.errors import UsageError

if TYPE_CHECKING:
    from vigil_draft.verify.judging import Length
    from vigil_draft.verify.verification import Verified

MOST_STEPS = 16


def command(
    draft: Annotated[Path, typer.Argument(metavar="DRAFT", help="The draft's folder.")],
    target: Annotated[str, typer.Option("--target", metavar="MODEL", help="The target's folder.")],
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help="vllm or sglang.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[-- FLAGS]", help="More flags of the server.")] = None,
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="WORDS", help="What starts the engine, else `vllm serve` or python3."),
    ] = None,
    prompts: Annotated[
        list[Path] | None, typer.Option("--prompts", metavar="FILE", help="Held-out prompts, else forty of ours.")
    ] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", help="Ask no more of them than so many.")] = 200,
    promised: Annotated[
        str | None, typer.Option("--promised", metavar="X|FILE", help="A length, or the JSON of `vigil draft eval`.")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="K", help="Tokens drafted a step.")] = 3,
    max_tokens: Annotated[int, typer.Option("--max-tokens", metavar="N", help="Length of an answer at most.")] = 256,
    temperature: Annotated[float, typer.Option("--temperature", metavar="T", help="Of sampling; 0 is greedy.")] = 0.0,
    env: options.Env = None,
    timeout: options.Timeout = "15m",
    no_check: options.NoCheck = False,
    json: options.Json = False,
) -> None:
    """Serve a draft and say whether it keeps its promise: exit 0 ok or nothing promised, 9 worse than promised, 13 broken."""
    from vigil.cli.benching import run
    from vigil.screen import json_of
    from vigil_draft.data.template import resolve
    from vigil_draft.verify.judging import EXIT_CODES
    from vigil_draft.verify.measuring import Asking
    from vigil_draft.verify.verification import PROMPTS, Wanted, verify

    _check(draft, steps=steps, most=most, max_tokens=max_tokens, temperature=temperature)
    folder = resolve(target)
    wanted = Wanted(
        draft=draft.absolute(),
        target=folder,
        engine=engine,
        steps=steps,
        prompts=tuple(prompts or (PROMPTS,)),
        most_prompts=most,
        promised=_promise(promised, steps),
        asking=Asking(most_tokens=max_tokens, temperature=temperature),
    )
    plan = _plan(wanted, program, tuple(more or ()), options.environment(env, None), timeout, check=not no_check)
    try:
        found = run(lambda: verify(wanted, lambda: _lift(plan)))
    except KeyboardInterrupt:
        mention("interrupted; the server was stopped")
        raise typer.Exit(130) from None
    if json:
        say(json_of(found))
    else:
        _tell(found)
    raise typer.Exit(EXIT_CODES[found.word])


def _check(draft: Path, *, steps: int, most: int, max_tokens: int, temperature: float) -> None:
    if not draft.is_dir():
        raise UsageError(f"{draft}: no such folder")
    if not 1 <= steps <= MOST_STEPS:
        raise UsageError(f"--steps {steps}: give 1 to {MOST_STEPS}")
    for name, value in (("--most", most), ("--max-tokens", max_tokens)):
        if value < 1:
            raise UsageError(f"{name} {value}: give 1 or more")
    if not 0 <= temperature <= 2:  # noqa: PLR2004 - what the servers take
        raise UsageError(f"--temperature {temperature:g}: give 0 to 2")


def _promise(text: str | None, steps: int) -> "Length | None":
    """Return what was promised: a number, or what an estimate's file says for so many steps."""
    from vigil_draft.errors import DraftError, NotADraftError
    from vigil_draft.formats.folders import read_json
    from vigil_draft.verify.judging import Length, promised_in

    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        try:
            held = read_json(Path(text), 16 << 20)
        except (DraftError, NotADraftError) as error:
            raise UsageError(f"--promised {text}: {error}") from error
        found = promised_in(held, steps)
        if found is None:
            raise UsageError(
                f"--promised {text}: it promises nothing for {steps} steps (vigil draft eval --json)"
            ) from None
        return found
    if not 1 <= value <= steps + 1:
        raise UsageError(f"--promised {text}: with {steps} steps a length lies between 1 and {steps + 1}")
    return Length(value=value)


def _plan(
    wanted: Any, program: str | None, more: tuple[str, ...], env: dict[str, str], timeout: str, *, check: bool
) -> Any:
    from vigil.cli.checks import check_command
    from vigil.hosts.forward import free_port
    from vigil.plan import Plan
    from vigil_draft.verify.serving import Serving

    serving = Serving(
        engine=wanted.engine,
        target=str(wanted.target),
        draft=str(wanted.draft),
        steps=wanted.steps,
        program=program,
        more=more,
    )
    plan = Plan(
        name="draft-verify",
        command=serving.command(free_port()),
        env=env,
        cwd=options.here(None, None),
        engine=options.engine_name(wanted.engine),
        check=check,
        policy=options.policy(timeout, 1.0),
    )
    check_command(plan)
    return plan


def _lift(plan: Any) -> AbstractAsyncContextManager[Any]:
    from vigil.cli.lifting import lifted

    told: list[str] = []

    def tell(phase: str) -> None:
        if phase and phase not in told[-1:]:
            told.append(phase)
            mention(f"the server: {phase}")

    return lifted(plan, tell)


def _tell(found: "Verified") -> None:
    say(f"{found.word}: {found.text}")
    for one in found.reasons:
        say(f"  {one}")
    version = f" {found.version}" if found.version else ""
    mention(
        f"{found.engine}{version}, {found.steps} steps; {found.tokens:,} tokens of {found.answers} answers, by {found.source}"
    )
    for one in found.notes:
        mention(one)
