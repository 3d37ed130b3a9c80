"""Words must reach the far side as they are, whatever shells lie between."""

import shutil
import subprocess

import pytest

from vigil.errors import UsageError
from vigil.hosts import Reach, reach_of
from vigil.hosts.bundle import LOADER

SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "fish", "tcsh", "csh", "ksh") if shutil.which(shell)]


def test_nothing_is_this_machine() -> None:
    assert reach_of(None, None).local


def test_host_is_the_users_own_ssh_that_never_asks() -> None:
    reach = reach_of("gpu7", None)
    assert reach.command[:2] == ["ssh", "-T"]
    assert "BatchMode=yes" in reach.command
    assert reach.quoted
    assert len(reach.command) == len(reach.prefix) + 1


@pytest.mark.parametrize(
    ("on", "command", "why"),
    [
        ("a", "b", "exclude"),
        ("-oProxyCommand=x", None, "no host name"),
        (" ", None, "no host name"),
        (None, "'", "closing"),
        (None, " ", "is empty"),
    ],
)
def test_reach_that_makes_no_sense_is_a_usage_error(on: str | None, command: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        reach_of(on, command)


@pytest.mark.parametrize(
    ("command", "quoted"),
    [
        ("ssh -p 22 host", True),
        ("/usr/bin/ssh host", True),
        ("sshpass -f file ssh host", True),
        ("sudo -u me ssh host", True),
        ("gcloud compute ssh vm --", True),
        ("docker exec -i ssh", False),
        ("docker exec -i ssh nice", False),
        ("kubectl exec -i ssh --", False),
        ("env -i", False),
        ("ssh-agent", False),
    ],
)
def test_words_are_quoted_where_the_far_side_is_a_shell(command: str, *, quoted: bool) -> None:
    assert reach_of(None, command).quoted is quoted


def test_loader_holds_nothing_that_a_shell_changes_in_single_quotes() -> None:
    assert not set(LOADER) & set("'\n!$`")


@pytest.mark.parametrize("shell", SHELLS)
def test_loader_comes_through_the_quotes_of_a_login_shell(shell: str) -> None:
    reach = Reach(label="x", prefix=(shell, "-c"), quoted=True)
    text = b"print('here')"
    ran = subprocess.run(reach.command, input=b"%08d\n" % len(text) + text, capture_output=True, check=True)
    assert ran.stdout == b"here\n"
