"""`vigil wait`: watch what is running already, by its name, or by its address, log and process."""

from typing import Annotated

import typer

from vigil.cli import options
from vigil.cli.checks import checked
from vigil.cli.options import choice, policy, seconds
from vigil.errors import UsageError

Target = Annotated[str, typer.Argument(metavar="NAME|URL", help="A name that vigil knows, or http://HOST:PORT.")]
Pid = Annotated[int | None, typer.Option("--pid", min=1, help="The process to watch, on its host.")]
Match = Annotated[
    str | None, typer.Option("--match", metavar="TEXT", help="The process whose command line holds this text.")
]


def command(
    target: Target,
    on: options.On = None,
    reach: options.ReachOption = None,
    log: options.Log = None,
    pid: Pid = None,
    match: Match = None,
    timeout: options.Timeout = "15m",
    for_time: options.ForTime = None,
    ready: options.ReadyOfKnown = None,
    health_path: options.HealthPath = None,
    model: options.Model = None,
    engine: options.Engine = None,
    api_key_env: options.KeyEnv = None,
    follow: options.Follow = False,
    on_timeout: options.OnTimeout = "leave",
    expect: options.Expect = None,
    on_verdict: options.OnVerdict = None,
    json: options.Json = False,
    trace: options.Trace = None,
    progress_every: options.ProgressEvery = "1m",
    strict: options.Strict = False,
    time_scale: options.TimeScale = 1.0,
) -> None:
    """Watch a server that is running or starting already, until the verdict."""
    from vigil.cli.watching import Manner, parsed_target, watch_and_exit
    from vigil.plan import Plan
    from vigil.supervise.spec import parse_url

    name, url = parsed_target(target)
    if url is not None and on_timeout == "stop":
        raise UsageError("--on-timeout stop needs a server that vigil started: give its NAME")
    if url is not None:
        parse_url(url)
    plan = Plan(
        name=name,
        url=url,
        on=on,
        reach=reach,
        log=log if log is None else options.absolute(log, on, reach),
        pid=pid,
        match=match,
        engine=options.engine_name(engine),
        health_path=options.health(health_path),
        model=model,
        ready=choice(ready, ("token", "http", "log"), "--ready") if ready else None,  # type: ignore[arg-type]
        api_key_env=api_key_env,
        on_timeout=choice(on_timeout, ("leave", "stop"), "--on-timeout"),  # type: ignore[arg-type]
        expect=options.expectations(expect, on, reach),
        policy=policy(timeout, time_scale),
        time_scale=time_scale,
    )
    manner = Manner(
        json=json,
        follow=follow,
        for_s=seconds(for_time, "--for") if for_time else None,
        trace=trace,
        progress_s=seconds(progress_every, "--progress-every"),
        on_verdict=on_verdict,
        strict=strict,
    )
    watch_and_exit(checked(plan, trace), manner)
