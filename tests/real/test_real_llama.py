"""The real llama-server, through the real `vigil`: its starts, its deaths, and what we say of them."""

import os
import re
import shlex
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from real_runs import CARRIED, Site, alive, assert_phases_sane, free_port, pid_of, until

from sshd import HOST, Sshd, find_sshd

KEY = "sk-real-llama-4711"


@pytest.fixture
def server(site: Site, llama: Path, gguf: Path) -> Callable[..., list[str]]:
    """Make a command line of llama-server on the test's port."""

    def command(*flags: str, model: Path = gguf) -> list[str]:
        fixed = ["-c", "2048", "-t", "2", "--port", str(site.port)]
        return [str(llama / "bin" / "llama-server"), "-m", str(model), *fixed, *flags]

    return command


@pytest.fixture
def half(gguf: Path, tmp_path: Path) -> Path:
    """A model whose file was cut short."""
    path = tmp_path / "half.gguf"
    with gguf.open("rb") as whole:
        path.write_bytes(whole.read(60_000_000))
    return path


def assert_gone(site: Site) -> None:
    assert site.processes() == []
    with socket.create_server(("127.0.0.1", site.port)):
        pass


def test_llama_starts_is_listed_and_stops(site: Site, server: Callable[..., list[str]]) -> None:
    done = site.up("llama-ready", *server("--metrics"))
    listed = site("ps").out
    stopped = site("stop", "s")

    assert (done.rc, done.words) == (0, ["ready"])
    assert (done.verdict["ready_level"], done.verdict["owner"], done.verdict["engine"]) == (
        "token",
        "verified",
        "llamacpp",
    )
    assert_phases_sane(done.verdict)
    assert {"loading_weights", "serving"} <= {one["name"] for one in done.verdict["phases"]}
    assert re.search(rf"^s +ready .* {pid_of(done.verdict)} .* llamacpp +{site.url}$", listed, re.MULTILINE)
    assert (stopped.rc, stopped.out) == (0, "s stopped (exit code 0)\n")
    assert_gone(site)


def test_llama_unknown_flag_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    done = site.up("llama-unknown-flag", *server("--num-speculative-tokens", "16"))

    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FLAG001")
    assert done.verdict["attempts"][-1]["exit"] == 1
    assert "--num-speculative-tokens" in site.log().splitlines()[done.verdict["cause"]["line"] - 1]
    assert_gone(site)


def test_llama_missing_model_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    done = site.up("llama-missing-model", *server(model=Path("/nowhere/model.gguf")), options=("--no-check",))

    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FILE001")
    assert "/nowhere/model.gguf" in done.verdict["cause"]["advice"]
    assert_gone(site)


def test_llama_truncated_model_is_a_crash(site: Site, server: Callable[..., list[str]], half: Path) -> None:
    done = site.up("llama-truncated", *server(model=half), options=("--no-check",))

    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FILE002")
    assert_gone(site)


def test_llama_on_a_taken_port_is_refused(site: Site, server: Callable[..., list[str]]) -> None:
    with socket.create_server(("127.0.0.1", site.port)):
        done = site.up("llama-port-taken", *server())

    assert (done.rc, done.words, done.code) == (3, ["refused"], "PORT001")
    assert "nothing was started" in done.verdict["reason"]
    assert site.processes() == []


def test_llama_killed_after_ready_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    following = site.watch("llama-killed", *server(), options=("--follow",))
    os.kill(pid_of(following.until("ready")), signal.SIGKILL)
    done = following.end()
    site.keep("llama-killed", done)

    assert (done.rc, done.words) == (4, ["ready", "crashed"])
    assert done.verdict["attempts"][-1]["signal"] == 9
    assert done.code == "SIG001"
    assert "after it was ready" in done.verdict["reason"]
    assert_gone(site)


def test_llama_stopped_by_a_signal_is_unhealthy_and_goes_on(site: Site, server: Callable[..., list[str]]) -> None:
    following = site.watch("llama-frozen", *server(), options=("--follow", "--time-scale", "0.2"))
    pid = pid_of(following.until("ready"))
    os.kill(pid, signal.SIGSTOP)
    done = following.end()
    site.keep("llama-frozen", done)
    os.kill(pid, signal.SIGCONT)
    again = site("wait", "s", "--json")

    assert (done.rc, done.words) == (8, ["ready", "unhealthy"])
    assert "though the process lives" in done.verdict["reason"]
    assert (again.rc, again.words) == (0, ["ready"])
    assert pid_of(again.verdict) == pid


def test_llama_shell_loop_over_a_truncated_model_is_a_loop(
    site: Site, server: Callable[..., list[str]], half: Path
) -> None:
    loop = f"while :; do {shlex.join(server(model=half))}; sleep 0.5; done"
    done = site.up("llama-loop", "sh", "-c", loop, options=("--no-check",))
    stopped = site("stop", "s", "--grace", "2s")

    assert (done.rc, done.words, done.code) == (5, ["crash_looping"], "FILE002")
    assert [one["cause"] for one in done.verdict["attempts"][:2]] == ["FILE002", "FILE002"]
    assert len({one["pid"] for one in done.verdict["attempts"]}) == len(done.verdict["attempts"])
    assert stopped.rc == 0
    assert_gone(site)


@pytest.mark.parametrize("given", ["flag", "variable"])
def test_llama_key_is_read_from_the_process_and_never_kept(
    site: Site, server: Callable[..., list[str]], given: str
) -> None:
    flags = ["--api-key", KEY] if given == "flag" else []
    env = {"LLAMA_API_KEY": KEY} if given == "variable" else {}
    done = site.up(f"llama-key-{given}", *server(*flags), env=env)
    site("wait", "s", "--json")

    assert (done.rc, done.words, done.verdict["ready_level"]) == (0, ["ready"], "token")
    written = [path for path in site.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert written == []
    assert KEY not in done.out + done.err + site("ps", "--json").out + site("show", "s").out


@pytest.fixture
def host(site: Site, tmp_path: Path) -> Iterator[str]:
    """The name of a host that the user's own ssh reaches. Its home is empty: no login script of whoever runs this takes part."""
    if find_sshd() is None:
        pytest.skip("no sshd here: tests/install-system.sh installs it")
    home = tmp_path / "home"
    home.mkdir()
    logins = {"HOME": str(home), "XDG_STATE_HOME": str(site.state), CARRIED: site.env[CARRIED]}
    with Sshd(env=logins) as sshd:
        site.env["PATH"] = f"{sshd.path}:{site.env['PATH']}"
        yield HOST


def test_llama_on_another_host_is_ready_and_its_death_seen(
    site: Site, server: Callable[..., list[str]], host: str
) -> None:
    following = site.watch("llama-ssh-killed", *server(), options=("--on", host, "--follow"))
    ready = following.until("ready")
    # A verdict is told first and written down on the host then.
    until(lambda: re.search(r"^s +ready", site("ps", "--on", host).out, re.MULTILINE), "ready in the list", 30.0)
    os.kill(pid_of(ready), signal.SIGKILL)
    done = following.end()
    site.keep("llama-ssh-killed", done)

    assert (ready["ready_level"], ready["owner"], ready["host"]) == ("token", "verified", host)
    assert (done.rc, done.words, done.code) == (4, ["ready", "crashed"], "SIG001")
    assert_gone(site)


def test_llama_told_to_end_by_somebody_else_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    """Exit code 0, as with a clean stop; but nobody asked us for one (law 8)."""
    following = site.watch("llama-terminated", *server(), options=("--follow",))
    pid = pid_of(following.until("ready"))
    os.kill(pid, signal.SIGTERM)
    done = following.end()
    site.keep("llama-terminated", done)

    assert (done.rc, done.words) == (4, ["ready", "crashed"])
    assert done.verdict["attempts"][-1]["exit"] == 0
    until(lambda: not alive(pid), "its end", 10.0)
    assert free_port()
