"""When two starts are the same plan, and what a plan keeps to itself."""

import msgspec
from msgspec.structs import replace

from vigil.plan import Plan
from vigil.policy import Policy

PLAN = Plan(command=("sglang", "serve", "--model-path", "m", "--api-key", "first-key-123"), env={"A": "1"}, name="s1")


def test_plan_is_the_same_under_another_name_or_limit() -> None:
    others = [
        replace(PLAN, name="s2"),
        replace(PLAN, policy=Policy(timeout_s=1.0)),
        replace(PLAN, env={}),
        replace(PLAN, log="/x"),
    ]

    assert {one.id for one in others} == {PLAN.id}


def test_plan_is_the_same_with_another_key() -> None:
    assert replace(PLAN, command=(*PLAN.command[:-1], "second-key-456")).id == PLAN.id


def test_plan_is_another_with_another_flag_host_or_address() -> None:
    others = [
        PLAN, replace(PLAN, command=(*PLAN.command, "--tp", "8")), replace(PLAN, on="gpu7"), replace(PLAN, url="http://h:1"),
        replace(PLAN, match="text"), replace(PLAN, command=("sglang", "serve", "--model-path m", "--api-key", "first-key-123")),
    ]  # fmt: skip

    assert len({one.id for one in others}) == len(others)


def test_plan_names_its_host() -> None:
    assert PLAN.host == "here"
    assert replace(PLAN, on="gpu7").host == "gpu7"
    assert replace(PLAN, reach="docker exec -i C").host == "docker exec -i C"


def test_plan_comes_back_from_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(PLAN), type=Plan) == PLAN


def test_policy_scales_times_and_nothing_else() -> None:
    policy = Policy().scaled(0.1)

    assert policy.timeout_s == 90.0
    assert policy.loop_same == Policy().loop_same
    assert policy.io_moved_bytes == Policy().io_moved_bytes
