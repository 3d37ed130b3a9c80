"""Folders of models, as the scout sees them: what is there, what is missing, and what was put there to hurt."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from preflight.lists import write_safetensors
from scout.folders_of import asked, drafted, served
from vigil.scout import desk, headers

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    write_safetensors(folder / "model.safetensors", {"a": "BF16 4x4"})
    return folder


def test_a_whole_model_has_its_config_its_tokenizer_and_its_files(model: Path) -> None:
    seen = served(model)
    assert (seen["kind"], seen["config"], seen["tokenizer"]) == ("folder", CONFIG, ["tokenizer.json"])
    assert [(one["name"], one["tensors"], one["trouble"]) for one in seen["files"]] == [("model.safetensors", 1, None)]
    assert seen["weights_bytes"] == (model / "model.safetensors").stat().st_size


def test_a_draft_is_seen_with_its_tensors_and_a_model_without(model: Path) -> None:
    assert drafted(model)["tensors"] == {"a": {"dtype": "BF16", "shape": [4, 4]}}
    assert "tensors" not in served(model)


def test_a_second_look_reads_no_head_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = served(model)

    def never(path: str, size: int) -> Any:
        pytest.fail(f"{path} was read again, {size} bytes")

    monkeypatch.setattr(headers, "read", never)
    assert served(model) == first


def test_a_file_that_changed_is_read_again(model: Path) -> None:
    served(model)
    write_safetensors(model / "model.safetensors", {"a": "BF16 4x4", "b": "BF16 4x4"})
    assert served(model)["files"][0]["tensors"] == 2


def test_what_is_remembered_is_for_this_user_alone_and_broken_notes_are_no_harm(model: Path) -> None:
    first = served(model)
    notes = list((model.parent / ".state" / "vigil" / "scout").iterdir())
    assert [oct(one.stat().st_mode & 0o777) for one in notes] == ["0o600"]
    for text in ("", "[]", '{"form": 1, "files": {"config.json": 3}}', "[" * 100_000):
        notes[0].write_text(text)
        assert served(model) == first


def test_shards_that_the_index_names_and_that_are_missing_are_counted(model: Path) -> None:
    places = {f"t{one}": f"model-{one:05}-of-00040.safetensors" for one in range(1, 41)}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    index = served(model)["index"]
    assert (index["shards"], index["missing_count"], len(index["missing"])) == (40, 40, 20)


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": 3}', "[" * 100_000, ""])
def test_an_index_that_cannot_be_read_is_one_line(model: Path, text: str) -> None:
    (model / "model.safetensors.index.json").write_text(text)
    trouble = served(model)["index"]["trouble"]
    assert trouble
    assert len(trouble) < 200


def test_a_pickle_is_named_and_never_opened(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "head.pt", "old.ckpt", "more.pkl"):
        (model / name).write_bytes(pickle.dumps(CONFIG))
    opened: list[str] = []
    really = os.open

    def watched(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(str(path))
        return really(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", watched)
    seen = served(model)
    assert seen["pickles"] == ["head.pt", "more.pkl", "old.ckpt", "pytorch_model.bin"]
    assert seen["files"] == []
    assert str(model / "config.json") in opened
    assert not [path for path in opened if path.endswith((".bin", ".pt", ".ckpt", ".pkl"))]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": ' * 100_000, "\x00", '{"a": ' + "9" * 10_000 + "}", "[1]"])
def test_a_config_that_cannot_be_read_is_one_line(model: Path, text: str) -> None:
    (model / "config.json").write_text(text)
    seen = served(model)
    assert seen["config"] is None
    assert seen["config_broken"]
    assert len(seen["config_trouble"]) < 200


def test_a_config_that_is_too_deep_for_us_is_not_called_broken(model: Path) -> None:
    (model / "config.json").write_text('{"a": ' * 50 + "1" + "}" * 50)
    seen = served(model)
    assert (seen["config"], seen["config_broken"]) == (None, False)
    assert "nested more than" in seen["config_trouble"]


def test_a_huge_config_is_not_read(model: Path) -> None:
    with (model / "config.json").open("ab") as file:
        file.truncate(1 << 40)
    seen = served(model)
    assert (seen["config"], seen["config_broken"]) == (None, False)


def test_texts_and_lists_without_end_are_cut(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({"a": "x" * 100_000, "b": list(range(100_000)), "c": "\ud800"}))
    config = served(model)["config"]
    assert (len(config["a"]), len(config["b"]), config["c"]) == (1000, 4096, "?")


def test_pipes_and_loops_in_a_folder_hold_nothing_up(model: Path) -> None:
    os.mkfifo(model / "model-00001-of-00002.safetensors")
    (model / "loop.safetensors").symlink_to("loop.safetensors")
    (model / "gone.safetensors").symlink_to("/nowhere/at/all")
    (model / "config.json").unlink()
    os.mkfifo(model / "config.json")
    troubles = {one["name"]: one["trouble"] for one in served(model)["files"]}
    assert troubles["model-00001-of-00002.safetensors"] == "it is no file"
    assert troubles["gone.safetensors"] == troubles["loop.safetensors"] == "its link leads nowhere"
    assert troubles["model.safetensors"] is None


def test_a_folder_of_very_many_files_is_bounded_and_says_so(model: Path) -> None:
    for one in range(20_100):
        (model / f"f{one}.safetensors").touch()
    seen = served(model)
    assert seen["more"]
    assert len(seen["files"]) == 1000


def test_a_model_that_is_not_there_is_told_with_what_lies_beside(model: Path) -> None:
    seen = served(model.parent / "n")
    assert (seen["path"], seen["parent"], seen["sure"]) == (None, str(model.parent), True)
    (model.parent / "llama-3-8b").mkdir()
    assert served(model.parent / "lama-3-8b")["near"] == ["llama-3-8b"]


def test_a_variable_or_a_shell_that_goes_elsewhere_makes_a_path_unsure(tmp_path: Path) -> None:
    assert not asked({"what": "model", "given": "$WHERE/m"}, cwd=tmp_path)[0]["sure"]
    assert not asked({"what": "model", "given": "m"}, cwd=tmp_path, words=["cd", "/srv", "vllm"])[0]["sure"]


def test_a_command_in_a_container_has_no_models_here(tmp_path: Path) -> None:
    words = ["docker", "run", "image", "vllm", "serve", "/models/m"]
    request = {
        "engine": "vllm",
        "words": words,
        "models": [{"what": "model", "given": "/models/m"}],
        "cwd": str(tmp_path),
    }
    assert desk.answer(desk.question_of(request), ["models"])["models"] is None


def test_a_repository_knows_of_tokens_and_of_being_offline_without_telling_a_secret(tmp_path: Path) -> None:
    given = {"what": "model", "given": "meta-llama/Llama-3.1-8B"}
    seen = asked(given, cwd=tmp_path, env={"HF_TOKEN": "hf_secretsecretsecret", "HF_HUB_OFFLINE": "1"})[0]
    assert (seen["repository"], seen["hub"]["token"], seen["offline"]) == (True, True, "HF_HUB_OFFLINE=1")
    assert "hf_secret" not in json.dumps(seen)
    assert not asked(given, cwd=tmp_path)[0]["hub"]["token"]


def test_a_map_of_a_draft_is_told_by_its_range_and_by_what_it_leads_to(model: Path) -> None:
    write_safetensors(model / "model.safetensors", {"d2t": "I64 4"})
    with (model / "model.safetensors").open("r+b") as file:
        file.seek(-32, os.SEEK_END)
        for number in (10, 20, 30, 40):
            file.write(number.to_bytes(8, "little"))
    told = drafted(model)["files"][0]["maps"]["d2t"]
    assert (told["lowest"], told["highest"], told["lowest_moved"], told["highest_moved"]) == (10, 40, 10, 43)


def test_parts_of_a_split_gguf_file_that_are_missing_are_named(tmp_path: Path) -> None:
    (tmp_path / "m-00002-of-00003.gguf").write_bytes(b"GGUF")
    seen = served(tmp_path / "m-00002-of-00003.gguf")
    assert seen["parts_missing"] == ["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"]
