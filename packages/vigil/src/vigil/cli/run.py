"""`vigil run`: a long job (training, extraction), watched like a server; it ends in `finished`, `crashed` or `stalled`."""

from vigil.cli import options
from vigil.cli.checks import checked
from vigil.cli.options import choice, environment, policy, seconds
from vigil.cli.up import Attached, CommandLine


def command(
    words: CommandLine,
    name: options.Name = None,
    on: options.On = None,
    reach: options.ReachOption = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    cwd: options.Cwd = None,
    log: options.Log = None,
    timeout: options.Timeout = "0",
    for_time: options.ForTime = None,
    attached: Attached = False,
    on_timeout: options.OnTimeout = "leave",
    on_verdict: options.OnVerdict = None,
    json: options.Json = False,
    trace: options.Trace = None,
    progress_every: options.ProgressEvery = "1m",
    time_scale: options.TimeScale = 1.0,
) -> None:
    """Start a long job and watch it until it has finished, crashed or stalled."""
    from vigil.cli.watching import Manner, watch_and_exit
    from vigil.plan import Plan

    plan = Plan(
        name=name,
        command=tuple(words),
        env=environment(env, env_file),
        cwd=cwd or options.here(on, reach),
        on=on,
        reach=reach,
        engine="generic",
        job=True,
        log=log,
        on_timeout=choice(on_timeout, ("leave", "stop"), "--on-timeout"),  # type: ignore[arg-type]
        attached=attached,
        check=False,
        policy=policy(timeout, time_scale),
        time_scale=time_scale,
    )
    manner = Manner(
        json=json,
        attached=attached,
        for_s=seconds(for_time, "--for") if for_time else None,
        trace=trace,
        progress_s=seconds(progress_every, "--progress-every"),
        on_verdict=on_verdict,
    )
    watch_and_exit(checked(plan, trace), manner)
