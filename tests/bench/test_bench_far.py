"""`vigil compare --on HOST` and `--reach`: arms that are started elsewhere, over a real sshd, and measured from here."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_stream import FAKE

from sshd import HOST, Sshd, sshd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vigil_cli import Vigil

__all__ = ["sshd"]
pytestmark = pytest.mark.slow
QUICK = (
    "--concurrency",
    "1,2",
    "--seconds",
    "1",
    "--repeats",
    "1",
    "--input",
    "32",
    "--output",
    "16",
    "--requests",
    "6",
)


@pytest.fixture
def vigil(tmp_path: Path, sshd: Sshd) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    ours.env["PATH"] = f"{sshd.path}:{os.environ['PATH']}"
    sshd.config.write_text(f"SendEnv XDG_STATE_HOME\n{sshd.config.read_text()}")
    yield ours
    ours.close()


def arms(vigil: Vigil, *flags: str) -> tuple[str, ...]:
    one = [sys.executable, str(FAKE), "--port", str(vigil.port), "--step", "0.004"]
    return ("--arm", f"off={shlex.join(one)}", "--arm", f"on={shlex.join([*one, *flags])}")


def meta(vigil: Vigil) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((vigil.folder / "r" / "meta.json").read_text())
    return found


def test_compare_starts_arms_on_a_host_and_measures_them_through_ssh(vigil: Vigil) -> None:
    done = vigil("compare", "--on", HOST, *arms(vigil, "--tokens-a-step", "2"), *QUICK, "--out", "r", "--json")

    assert done.rc == 0, done.err
    found = json.loads(done.out)
    assert [(row["failures"], row["ended"]) for row in found["rows"]] == [({}, 6)] * 4
    assert meta(vigil)["host"] == HOST
    server = found["servers"]["off"]
    assert not server["target"]["url"].endswith(f":{vigil.port}")  # the near end of the tunnel
    assert server["ran_on"]["machine"]["cpus"] == os.cpu_count()
    assert vigil.processes() == []


def test_compare_measures_arms_on_a_host_where_it_is_told(vigil: Vigil) -> None:
    done = vigil(
        "compare", "--on", HOST, "--at", f"http://127.0.0.1:{vigil.port}", *arms(vigil), *QUICK, "--out", "r", "--json"
    )

    assert done.rc == 0, done.err
    assert json.loads(done.out)["servers"]["on"]["target"]["url"] == f"http://127.0.0.1:{vigil.port}"


def test_compare_keeps_the_cause_of_an_arm_that_dies_on_its_host(vigil: Vigil) -> None:
    done = vigil("compare", "--on", HOST, *arms(vigil, "--die-at", "2"), *QUICK, "--out", "r")

    assert done.rc == 4, done.err
    assert "on, 2 at once: crashed MEM001: torch.OutOfMemoryError: CUDA out of memory" in done.out
    assert vigil.processes() == []


def test_compare_by_a_reach_says_that_a_port_is_not_to_be_reached_from_here(vigil: Vigil) -> None:
    done = vigil("compare", "--reach", "env HERE=1", "--at", "http://127.0.0.1:9", *arms(vigil), *QUICK, "--out", "r")

    assert done.rc == 2
    assert done.err.splitlines()[-1].startswith(
        "vigil: compare-off serves on env HERE=1, but http://127.0.0.1:9 takes no connection from here"
    )
    assert vigil.processes() == []


def test_compare_refuses_an_address_of_arms_that_are_here(vigil: Vigil) -> None:
    done = vigil("compare", "--at", "http://127.0.0.1:9", *arms(vigil))

    assert (done.rc, "--at is for arms on another host" in done.err) == (2, True)
