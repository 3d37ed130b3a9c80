"""Secrets reach neither the screen, nor a trace, nor the state folder; what a server writes into its own log is its affair."""

import sys
from pathlib import Path

import pytest
from vigil_cli import Result, Vigil

LEAKY = str(Path(__file__).with_name("leaky.py"))
KEY = "planted-Key.0815/xyz"
TOKEN = "hf_plantedTokenABCDEFGHIJ"
OTHER = "planted-url-password"


def found_secrets(*texts: str) -> list[str]:
    return [line for text in texts for line in text.splitlines() if any(one in line for one in (KEY, TOKEN, OTHER))]


def kept(vigil: Vigil, *but: str) -> dict[str, list[str]]:
    """Return what is found under the state folder, by file; the server's own log is left out."""
    found = {}
    for path in vigil.files():
        if path.name in but:
            continue
        lines = found_secrets(path.read_bytes().decode("utf-8", "replace"))
        if lines:
            found[path.name] = lines
    return found


def leak(vigil: Vigil, *more: str, joined: bool = False) -> Result:
    key = (f"--api-key={KEY}",) if joined else ("--api-key", KEY)
    return vigil(
        "up", "--json", "--name", "s", "--time-scale", "0.05", "--env", f"HF_TOKEN={TOKEN}", "--progress-every", "0.05s", "--",
        sys.executable, LEAKY, "--port", str(vigil.port), *key, *more,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["apart", "joined"])
def test_key_of_a_server_that_dies_is_not_told(vigil: Vigil, way: str) -> None:
    done = leak(vigil, "--die", joined=way == "joined")

    assert done.word == "crashed"
    assert "RuntimeError" in done.verdict["cause"]["text"]
    assert found_secrets(done.out, done.err) == []
    assert kept(vigil, "server.log") == {}
    assert KEY in Path(done.verdict["log"]).read_text()


def test_key_that_a_server_echoes_is_not_told(vigil: Vigil) -> None:
    done = leak(vigil, "--title")
    told = [
        vigil(*words) for words in (("ps",), ("ps", "--json"), ("show", "s"), ("show", "s", "--json"), ("logs", "s"))
    ]
    traces = list((vigil.state / "vigil" / "traces").iterdir())
    replayed = vigil("replay", str(traces[0]), "--all", "--json")

    assert done.word == "unhealthy"
    assert "cannot serve" in done.verdict["reason"]  # the body is told, the key in it is not
    assert found_secrets(done.out, done.err, replayed.out, replayed.err) == []
    assert found_secrets(*(one.out + one.err for one in told)) == []
    assert kept(vigil, "server.log") == {}


def test_logs_show_the_lines_without_the_keys(vigil: Vigil) -> None:
    leak(vigil, "--die")
    shown = vigil("logs", "s")

    assert found_secrets(shown.out) == []
    assert "server_args=ServerArgs(model_path='m', api_key='***'" in shown.out
    assert "RuntimeError" in shown.out


def test_logs_that_are_followed_show_no_keys(vigil: Vigil) -> None:
    late = f"sleep 1; echo api_key={KEY}; echo bare {KEY}; echo {TOKEN}; sleep 0.3"
    vigil("up", "--for", "0.2s", "--name", "s", "--", "sh", "-c", late, "x", "--api-key", KEY)
    shown = vigil("logs", "-f", "s")

    assert found_secrets(shown.out, shown.err) == []
    assert "bare ***" in shown.out


def test_key_that_is_handed_over_is_used_and_not_told(vigil: Vigil) -> None:
    fake = vigil.fake("--load", "0.1s", "--warmup", "0s")
    server = vigil(
        "up",
        "--json",
        "--name",
        "s",
        "--api-key-env",
        "OURS",
        "--env",
        f"FAKE_API_KEY={KEY}",
        "--",
        *fake,
        env={"OURS": KEY},
    )

    assert server.word == "ready"
    assert found_secrets(server.out, server.err) == []
    assert kept(vigil) == {}


def test_servers_own_key_is_read_from_its_process(vigil: Vigil) -> None:
    done = vigil.up(fake=("--load", "0.1s", "--warmup", "0s", "--api-key", KEY))

    assert done.word == "ready"
    assert found_secrets(done.out, done.err) == []
    assert kept(vigil) == {}


def test_variables_of_the_server_are_kept_nowhere(vigil: Vigil) -> None:
    (vigil.folder / "env").write_text(f"SOME_NAME={KEY}\n")
    done = vigil.up("--env-file", "env", "--env", f"WANDB_API_KEY={KEY}")

    assert done.word == "ready"
    assert kept(vigil) == {}


def test_state_folder_is_for_its_owner_only(vigil: Vigil) -> None:
    vigil.up()

    assert (vigil.state / "vigil").stat().st_mode & 0o077 == 0
    for path in vigil.files():
        private = path.stat().st_mode & 0o077 == 0 or any(one.stat().st_mode & 0o077 == 0 for one in path.parents)
        assert private, path
