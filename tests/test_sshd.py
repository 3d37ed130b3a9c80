# ruff: noqa: F811, F401 - pytest finds fixtures by the names of arguments
"""The tests' own sshd and its cuttable wire: they must be real before what is tested with them can be believed."""

import os
import subprocess

from sshd import HOST, Sshd, sshd


def test_sshd_runs_a_program_with_its_input_and_output(sshd: Sshd) -> None:
    command = [*sshd.ssh, "python3", "-c", "'print(input()[::-1])'"]
    ran = subprocess.run(command, input=b"abc\n", capture_output=True, check=True, timeout=20)
    assert ran.stdout == b"cba\n"


def test_plain_ssh_reaches_it_when_its_folder_is_first_on_the_path(sshd: Sshd) -> None:
    env = {**os.environ, "PATH": f"{sshd.path}:{os.environ['PATH']}"}
    assert (
        subprocess.run(["ssh", HOST, "echo", "here"], env=env, capture_output=True, check=True, timeout=20).stdout
        == b"here\n"
    )


def test_cut_wire_ends_the_client_at_once_and_refuses_the_next(sshd: Sshd) -> None:
    command = [*sshd.ssh, "echo up; cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"up\n"
        sshd.proxy.cut()
        assert held.wait(timeout=10) == 255
    assert subprocess.run([*sshd.ssh, "true"], capture_output=True, check=False, timeout=20).returncode == 255
    sshd.proxy.mend()
    assert subprocess.run([*sshd.ssh, "true"], capture_output=True, check=False, timeout=20).returncode == 0


def test_frozen_wire_says_nothing_and_goes_on_where_it_stopped(sshd: Sshd) -> None:
    held = subprocess.Popen(
        [*sshd.ssh, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )
    assert held.stdin is not None
    assert held.stdout is not None
    held.stdin.write(b"one\n")
    assert held.stdout.readline() == b"one\n"
    sshd.proxy.freeze()
    held.stdin.write(b"two\n")
    assert held.poll() is None
    sshd.proxy.mend()
    assert held.stdout.readline() == b"two\n"
    held.stdin.close()
    assert held.wait(timeout=10) == 0
    held.stdout.close()


def test_environment_of_logins_is_the_one_given() -> None:
    with Sshd(env={"XDG_STATE_HOME": "/tmp/some where"}) as sshd:
        ran = subprocess.run([*sshd.ssh, "printenv XDG_STATE_HOME"], capture_output=True, check=True, timeout=20)
    assert ran.stdout == b"/tmp/some where\n"
