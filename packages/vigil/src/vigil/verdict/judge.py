"""What a state means: the first rule that speaks decides. Rules look at one view of a state and nothing else."""

from collections.abc import Callable

from vigil.verdict.endings import abandoned, gave_up, looping, over, refused, stopping, unreachable
from vigil.verdict.pretending import failing, hanging, locked, mute, owned_by_another, redirecting
from vigil.verdict.served import served_before
from vigil.verdict.state import Judgement
from vigil.verdict.view import View
from vigil.verdict.waiting import stalled, starting, timed_out

Rule = Callable[[View], Judgement | None]

RULES: tuple[Rule, ...] = (
    refused,
    unreachable,
    over,
    stopping,
    looping,
    abandoned,
    gave_up,
    owned_by_another,
    served_before,
    locked,
    redirecting,
    failing,
    hanging,
    mute,
    stalled,
    timed_out,
    starting,
)


def judge(view: View) -> Judgement:
    """Return the meaning of a state; the same object as before where nothing changed."""
    before = view.state.judged
    for rule in RULES:
        judged = rule(view)
        if judged is not None:
            return before if judged == before else judged
    return before
