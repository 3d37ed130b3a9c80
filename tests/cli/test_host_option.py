"""The option that leads a further command to the same host: pasted into a shell, it does."""

import shlex

import pytest

from vigil.cli.options import leading_to
from vigil.plan import Plan

REACHES = ("docker exec -i C", "./there", "/usr/bin/inbox", "sh -c 'exec \"$@\"' sh")


def test_this_host_needs_no_option() -> None:
    assert leading_to(Plan(name="s").host) == ""


@pytest.mark.parametrize("reach", REACHES)
def test_reach_is_told_so_that_a_shell_gives_it_back(reach: str) -> None:
    assert shlex.split(leading_to(Plan(name="s", reach=reach).host)) == ["--reach", reach]


def test_host_of_ssh_is_told_by_its_name() -> None:
    assert leading_to(Plan(name="s", on="root@gpu7.lan").host) == " --on root@gpu7.lan"


def test_reach_of_one_word_is_no_host_of_ssh_where_the_plan_is_at_hand() -> None:
    assert leading_to("inbox", by_ssh=False) == " --reach inbox"
