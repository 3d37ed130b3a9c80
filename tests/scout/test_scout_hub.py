"""What lies in the hub's cache, and what forbids the hub: by the rules of its own client."""

import os
from pathlib import Path
from typing import Any

import pytest

from scout.folders_of import asked
from vigil.scout import hub
from vigil.survey.interpreter import Place

COMMIT, OTHER = "a" * 40, "b" * 40


def seen(tmp_path: Path, env: dict[str, str] | None = None, **model: str) -> Any:
    told = asked({"what": "model", "given": "org/m", **model}, cwd=tmp_path, env=env)[0]
    return told["hub"]


def repository(tmp_path: Path, *, commit: str = COMMIT, snapshot: str = OTHER) -> Path:
    """Make a folder of the cache whose main is one commit, with a snapshot of another."""
    folder = tmp_path / "hf" / "hub" / "models--org--m"
    for name in ("refs", "blobs", f"snapshots/{snapshot}"):
        (folder / name).mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    (folder / "snapshots" / snapshot / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("env", "offline"),
    [
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE=1"),
        ({"HF_HUB_OFFLINE": "yes"}, "HF_HUB_OFFLINE=yes"),
        ({"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "1"}, "TRANSFORMERS_OFFLINE=1"),
        ({"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, None),
        ({"HF_HUB_OFFLINE": "2"}, None),
        ({"HF_HUB_OFFLINE": "y"}, None),
        ({}, None),
    ],
)
def test_offline_is_what_the_client_takes_for_it(env: dict[str, str], offline: str | None) -> None:
    # huggingface_hub 2.4, constants.py: _is_true(HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE), with 1, ON, YES, TRUE
    assert hub.offline(env) == offline


def test_a_token_is_found_where_the_client_finds_it(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert not hub.has_token(home)
    assert hub.has_token({**home, "HUGGING_FACE_HUB_TOKEN": "hf_x"})
    assert not hub.has_token({**home, "HF_TOKEN": " "})
    for folder, env in (
        ("hf", {"HF_HOME": str(tmp_path / "hf")}),
        ("x/huggingface", {"XDG_CACHE_HOME": str(tmp_path / "x")}),
    ):
        assert not hub.has_token({**home, **env})
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "token").write_text("hf_x")
        assert hub.has_token({**home, **env})
    assert hub.has_token({**home, "HF_TOKEN_PATH": str(tmp_path / "hf" / "token")})


def test_a_ref_to_a_snapshot_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    repository(tmp_path)
    found = seen(tmp_path)
    assert (found["begun"], found["commit"], found["snapshots"]) == (True, COMMIT, [OTHER])
    assert seen(tmp_path, revision="v2")["commit"] is None
    assert seen(tmp_path, revision="../../x")["commit"] is None


def test_downloads_that_did_not_end_are_counted(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "blobs" / "1234.incomplete").write_bytes(bytes(100))
    (folder / "blobs" / "5678.abc.incomplete").write_bytes(bytes(20))
    (folder / "blobs" / "9abc").write_bytes(bytes(7))
    found = seen(tmp_path)
    assert (found["incomplete"], found["incomplete_bytes"]) == (2, 120)


def test_a_card_that_asks_for_consent_is_read(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    card = folder / "snapshots" / OTHER / "README.md"
    assert not seen(tmp_path)["gated"]
    card.write_text("---\nlicense: other\nextra_gated_prompt: >-\n  please\n---\n# M\n")
    assert seen(tmp_path)["gated"]
    card.write_text("---\nlicense: mit\n---\nextra_gated_prompt: no more than words\n")
    assert not seen(tmp_path)["gated"]


def test_a_cache_is_writable_where_it_could_be_made(tmp_path: Path) -> None:
    assert seen(tmp_path)["writable"]
    (tmp_path / "file").write_text("")
    assert seen(tmp_path, {"HF_HOME": str(tmp_path / "file" / "hf")})["writable"] is False
    assert hub.see(Place({"HF_HOME": "/proc/self/nowhere"}, "/"), "a/b", None)["writable"] in {True, False}
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        assert seen(tmp_path, {"HF_HOME": str(tmp_path / "closed")})["writable"] is False


def test_a_mirror_is_told_without_its_password(tmp_path: Path) -> None:
    found = seen(tmp_path, {"HF_ENDPOINT": "https://user:hunter2hunter2@mirror.example.com"})
    assert "mirror.example.com" in found["endpoint"]
    assert "hunter2" not in found["endpoint"]


def test_a_path_is_no_repository(tmp_path: Path) -> None:
    assert asked({"what": "model", "given": "./org/m"}, cwd=tmp_path)[0]["hub"] is None


@pytest.mark.parametrize("name", ["VLLM_MODEL_REDIRECT_PATH", "TRANSFORMERS_CACHE"])
def test_what_may_be_looked_for_elsewhere_is_not_sure(tmp_path: Path, name: str) -> None:
    model = {"what": "model", "given": "org/m"}
    assert asked(model, cwd=tmp_path)[0]["sure"]
    assert not asked(model, cwd=tmp_path, env={name: str(tmp_path / "other")})[0]["sure"]
