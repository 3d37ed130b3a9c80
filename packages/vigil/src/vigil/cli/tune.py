"""`vigil tune -- COMMAND`: at which loads speculation pays, as a schedule to switch it by, measured and proven."""

from typing import Annotated

import typer

from vigil.cli import benching, options
from vigil.cli.compare import At

CommandLine = Annotated[
    list[str], typer.Argument(metavar="-- COMMAND...", help="The server's command, as it speculates.")
]
Ks = Annotated[
    str | None,
    typer.Option("--k", metavar="K,K,...", help="Draft tokens a step to try beside the command's own; else 1."),
]
Loads = Annotated[
    str | None,
    typer.Option(
        "--concurrency", metavar="N,N,...", help="Requests open at once; else 1,2,4,8,... up to what may run."
    ),
]


def command(
    words: CommandLine,
    k: Ks = None,
    on: options.On = None,
    reach: options.ReachOption = None,
    at: At = None,
    concurrency: Loads = None,
    prompts: benching.Prompts = None,
    input_tokens: benching.Input = 512,
    output_tokens: benching.Output = 128,
    range_ratio: benching.RangeRatio = 0.0,
    natural_ends: benching.Natural = False,
    seconds: benching.Seconds = "15s",
    most: benching.Most = None,
    repeats: benching.Repeats = 3,
    seed: benching.Seed = 1,
    temperature: benching.Temperature = 0.0,
    chat: benching.Chat = False,
    patience: benching.Patience = "2m",
    processes: benching.Processes = 1,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    timeout: options.Timeout = "15m",
    url: options.Url = None,
    ready: options.Ready = "token",
    engine: options.Engine = None,
    model: options.Model = None,
    api_key_env: options.KeyEnv = None,
    no_check: options.NoCheck = False,
    out: benching.Out = None,
    json: options.Json = False,
    time_scale: options.TimeScale = 1.0,
) -> None:
    """Measure a server with and without its speculation at each load, and write and prove the schedule to switch it by."""
    from vigil.cli.tuning import tune
    from vigil.errors import UsageError
    from vigil.plan import Plan
    from vigil.speculation.arms import read_k

    if at is not None and not (on or reach):
        raise UsageError("--at is for a server on another host: give --on HOST or --reach COMMAND with it")
    settings = benching.settings_of(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        range_ratio=range_ratio,
        seconds=seconds,
        most=most,
        requests=None,
        repeats=repeats,
        seed=seed,
        natural_ends=natural_ends,
        temperature=temperature,
        chat=chat,
        patience=patience,
        processes=processes,
    )
    plan = Plan(
        command=tuple(words),
        on=on,
        reach=reach,
        env=options.environment(env, env_file),
        cwd=options.here(on, reach),
        url=options.address(url),
        ready=options.choice(ready, ("token", "http", "log"), "--ready"),  # type: ignore[arg-type]
        engine=options.engine_name(engine),
        model=model,
        api_key_env=api_key_env,
        check=not no_check,
        policy=options.policy(timeout, time_scale),
        time_scale=time_scale,
    )
    points = benching.points_of(concurrency, None) if concurrency is not None else ()
    asked = benching.Asked(points=points, settings=settings, prompts=benching.prompts_of(prompts))
    tune(plan, asked, read_k(k), out, at=options.address(at), json=json)
