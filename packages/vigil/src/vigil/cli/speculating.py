"""`--speculate` of `vigil up`: the plan that it makes of a plan."""

from pathlib import Path

import msgspec

from vigil.errors import UsageError
from vigil.plan import Plan
from vigil.preflight.finding import edited
from vigil.screen import plain
from vigil.speculation.wish import FLAG, Wish, read_wish, taken_out

MOST_BYTES = 1 << 20


def speculating(plan: Plan, text: str | None) -> Plan:
    """Return the plan with what `--speculate`, or the flag in its command, asks for; as it is where neither is there.

    Raises:
        UsageError: It cannot be done; the reason.

    """
    if text is None and not any(FLAG in word.replace("_", "-") for word in plan.command):
        return plan
    # 65 ms that a command without such a wish does without: a whole check takes twice that.
    from vigil.engines.rewritten import rewritten
    from vigil.speculation.arrange import arrange
    from vigil.speculation.schedules import schedules
    from vigil.supervise.ahead import command_of

    command = command_of(plan)
    edits, found = taken_out(command)
    if text is not None and found is not None:
        raise UsageError(f"--speculate and {FLAG} are both given: leave one out")
    wish = read_wish(text) if text is not None else found
    if wish is None:
        return plan
    bare = msgspec.structs.replace(command, words=edited(command.words, edits), end=None)
    arranged = arrange(bare, wish, schedules(), _schedule_text(wish, plan))
    return msgspec.structs.replace(
        plan,
        command=rewritten(plan.command, command.words, arranged.words),
        schedule=arranged.schedule,
        placed=arranged.placed,
        expect=(*plan.expect, f"speculate={arranged.digest}"),
    )


def _schedule_text(wish: Wish, plan: Plan) -> str | None:
    """Return the text of the schedule that a wish names; None where it names none."""
    if wish.kind == "off-above":
        return None
    from vigil.speculation.place import place_of

    path = Path(wish.path) if wish.kind == "file" else place_of(plan)
    try:
        data = path.read_bytes()
    except OSError as error:
        if wish.kind == "auto":
            why = (
                "no schedule was measured for this command yet (vigil tune does that); give off-above:N, or a schedule"
            )
            raise UsageError(f"--speculate auto: {why}") from error
        raise UsageError(f"--speculate {plain(wish.path, 200)}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise UsageError(f"--speculate {plain(wish.path, 200)}: it is too large for a schedule")
    return data.decode("utf-8", "replace")
