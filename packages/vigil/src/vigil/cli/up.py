"""`vigil up`: start a server, watch it until the verdict, leave a ready one running."""

from typing import Annotated

import typer

from vigil.cli import options
from vigil.cli.checks import checked
from vigil.cli.options import choice, environment, policy, seconds

Attached = Annotated[bool, typer.Option("--attached", help="Tie the server's life to ours: it ends when we do.")]
Speculate = Annotated[
    str | None,
    typer.Option(
        "--speculate", metavar="WISH", help="Switch speculation with the load: off-above:N, auto, or a schedule."
    ),
]
CommandLine = Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The server's command line.")]


def command(
    words: CommandLine,
    name: options.Name = None,
    on: options.On = None,
    reach: options.ReachOption = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    cwd: options.Cwd = None,
    log: options.Log = None,
    url: options.Url = None,
    timeout: options.Timeout = "15m",
    for_time: options.ForTime = None,
    ready: options.Ready = "token",
    health_path: options.HealthPath = None,
    model: options.Model = None,
    engine: options.Engine = None,
    api_key_env: options.KeyEnv = None,
    follow: options.Follow = False,
    attached: Attached = False,
    on_timeout: options.OnTimeout = "leave",
    no_check: options.NoCheck = False,
    no_attest: options.NoAttest = False,
    expect: options.Expect = None,
    speculate: Speculate = None,
    on_verdict: options.OnVerdict = None,
    json: options.Json = False,
    trace: options.Trace = None,
    progress_every: options.ProgressEvery = "1m",
    strict: options.Strict = False,
    time_scale: options.TimeScale = 1.0,
) -> None:
    """Start a server, watch it until the verdict, print it, and leave a ready server running."""
    from vigil.cli.speculating import speculating
    from vigil.cli.watching import Manner, watch_and_exit
    from vigil.plan import Plan

    plan = Plan(
        name=name,
        command=tuple(words),
        env=environment(env, env_file),
        cwd=cwd or options.here(on, reach),
        on=on,
        reach=reach,
        engine=options.engine_name(engine),
        log=log,
        url=options.address(url),
        health_path=options.health(health_path),
        model=model,
        ready=choice(ready, ("token", "http", "log"), "--ready"),  # type: ignore[arg-type]
        api_key_env=api_key_env,
        on_timeout=choice(on_timeout, ("leave", "stop"), "--on-timeout"),  # type: ignore[arg-type]
        attached=attached,
        check=not no_check,
        attest=not no_attest,
        expect=options.expectations(expect, on, reach),
        policy=policy(timeout, time_scale),
        time_scale=time_scale,
    )
    manner = Manner(
        json=json,
        follow=follow or attached,  # a life that ends with ours must be watched to its end
        attached=attached,
        for_s=seconds(for_time, "--for") if for_time else None,
        trace=trace,
        progress_s=seconds(progress_every, "--progress-every"),
        on_verdict=on_verdict,
        strict=strict,
    )
    watch_and_exit(checked(speculating(plan, speculate), trace), manner)
