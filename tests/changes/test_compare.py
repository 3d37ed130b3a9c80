"""Two snapshots held against each other: what differs, and what comes first."""

import tomllib
from importlib import resources
from typing import Any

import pytest

from vigil.changes import Change, compare, read_snapshot
from vigil.changes.explains import EXPLAINS, USUALLY
from vigil.diagnosis.cause import Cause

GIB = 1 << 30
MODEL = {
    "what": "model",
    "given": "/m",
    "path": "/m",
    "settings": {"config.json": "aaaa", "tokenizer.json": "t1"},
    "declared": {"num_experts": "8"},
    "weights": {"a.safetensors": {"size": GIB, "mtime": 1000, "ends": "e1"}},
    "count": 1,
    "all": "x",
}
BASE: dict[str, Any] = {
    "schema": 1,
    "whole": True,
    "key_id": "k",
    "command": {"words": ["vllm", "serve", "/m", "--tp", "4", "--api-key", "***"], "hidden": {"--api-key": "d1"}, "cwd": "/"},
    "env": {"NCCL_ALGO": "Ring", "HF_TOKEN": {"shown": "***", "digest": "d1"}, "PATH": "/bin"},
    "program": {"path": "/v/bin/python", "python": True, "version": "3.12.1"},
    "packages": {"vllm": "0.32.0", "torch": "2.9.0", "numpy": "2.0"},
    "edited": {"files": {}, "unchecked": 0},
    "sources": {},
    "files": {"/start.sh": "f1"},
    "models": [MODEL],
    "machine": {
        "boot_id": "b1", "host": "gpu7", "kernel": "6.1", "glibc": "glibc 2.36", "cpus": 64, "driver": "550.1",
        "memory_total_bytes": 512 * GIB, "memory_free_bytes": 500 * GIB, "memory_limit_bytes": None, "limits": {"nofile": 1024},
    },
    "gpus": [{"name": "H200", "uuid": "GPU-1", "total_bytes": 140 * GIB, "free_bytes": 139 * GIB}],
    "disks": {"/dev/shm": {"free_bytes": 60 * GIB, "total_bytes": 64 * GIB, "free_files": 10}},
}  # fmt: skip


def changes(cause: Cause | None = None, **after: Any) -> list[Change]:
    before, later = read_snapshot(BASE), read_snapshot({**BASE, **after})
    assert before is not None
    assert later is not None
    return list(compare(before, later, cause))


def told(cause: Cause | None = None, **after: Any) -> list[tuple[str, str | None, str | None]]:
    return [(one.what, one.before, one.after) for one in changes(cause, **after)]


def command(*words: str) -> dict[str, Any]:
    return {**BASE["command"], "words": [*BASE["command"]["words"], *words]}


def why(kind: str, text: str = "", **fields: Any) -> Cause:
    return Cause(code="X001", kind=kind, text=text, advice="", fingerprint="", **fields)


def test_same_start_differs_in_nothing() -> None:
    assert told() == []


def test_flag_that_was_added_removed_and_given_another_value() -> None:
    words = ["vllm", "serve", "/m", "--tp=8", "--api-key", "***", "--enforce-eager"]
    assert told(command={**BASE["command"], "words": words}) == [
        ("flag --enforce-eager", None, "given"),
        ("flag --tp", "4", "8"),
    ]
    assert told(command={**BASE["command"], "words": ["vllm", "serve", "/m", "--api-key", "***"]}) == [
        ("flag --tp", "4", None)
    ]


def test_secret_that_changed_is_told_and_never_shown() -> None:
    other = {"shown": "***", "digest": "d2"}
    assert told(env={**BASE["env"], "HF_TOKEN": other}) == [("variable HF_TOKEN", "***", "changed")]
    assert told(command={**BASE["command"], "hidden": {"--api-key": "d2"}}) == [("flag --api-key", "***", "changed")]
    assert told(env={**BASE["env"], "SGLANG_KEY": other}) == [("variable SGLANG_KEY", None, "***")]


def test_secrets_under_another_key_are_not_compared() -> None:
    other = {"shown": "***", "digest": "d2"}
    hidden = {**BASE["command"], "hidden": {"--api-key": "d2"}}
    assert told(key_id="other", env={**BASE["env"], "HF_TOKEN": other}, command=hidden, files={"/start.sh": "f2"}) == []
    assert told(key_id=None, env={**BASE["env"], "HF_TOKEN": {"shown": "***", "digest": None}}) == []


def test_edited_file_stands_against_what_was_installed() -> None:
    edited = {"files": {"sglang": {"sglang/srt/server_args.py": "0123456789abcdef", "sglang/x.py": "missing"}}}
    assert told(edited=edited) == [
        ("edited file sglang/srt/server_args.py of sglang", "as installed", "edited (01234567)"),
        ("edited file sglang/x.py of sglang", "as installed", "missing"),
    ]


def test_model_is_told_by_the_setting_and_the_file_that_differ() -> None:
    other = {**MODEL, "declared": {"num_experts": "16"}, "settings": {"config.json": "bbbb", "tokenizer.json": "t2"}}
    assert told(models=[other]) == [
        ("num_experts in config.json of the model", "8", "16"),
        ("tokenizer.json of the model", "content t1", "content t2"),
    ]
    weight = {"size": 135, "mtime": 2000, "ends": "e2"}
    assert told(models=[{**MODEL, "weights": {"a.safetensors": weight}}]) == [
        ("a.safetensors of the model", "1.0 GiB, written 1970-01-01 00:16:40", "135 bytes, written 1970-01-01 00:33:20")
    ]


def test_model_elsewhere_is_told_once_and_not_by_each_of_its_files() -> None:
    other = {**MODEL, "path": "/n", "weights": {f"{n}.safetensors": {"size": n} for n in range(9)}}
    assert told(models=[other]) == [("model", "/m", "/n")]


def test_only_large_differences_of_room_are_told() -> None:
    def free(gib: int) -> dict[str, Any]:
        return {"gpus": [{**BASE["gpus"][0], "free_bytes": gib * GIB}]}

    assert told(**free(136)) == []
    assert told(**free(80)) == [("free memory of GPU 0", "139.0 GiB", "80.0 GiB")]
    assert told(machine={**BASE["machine"], "memory_free_bytes": 450 * GIB}) == []
    assert told(machine={**BASE["machine"], "memory_free_bytes": 50 * GIB}) == [
        ("free memory", "500.0 GiB", "50.0 GiB")
    ]


def test_what_was_not_looked_at_in_time_is_no_difference() -> None:
    edits = {"vllm": {"vllm/x.py": "1" * 16}}
    assert told(edited={"files": {}, "unchecked": 7}) == []
    assert told(edited={"files": edits, "unchecked": 7}) == [
        ("edited file vllm/x.py of vllm", "as installed", "edited (11111111)")
    ]
    hurried = {**BASE, "edited": {"files": {}, "unchecked": 7}}
    before, after = read_snapshot(hurried), read_snapshot({**BASE, "edited": {"files": edits}})
    assert before is not None
    assert after is not None
    assert compare(before, after) == ()
    weight = {**MODEL["weights"]["a.safetensors"], "ends": None}
    assert told(models=[{**MODEL, "weights": {"a.safetensors": weight}, "settings": {"tokenizer.json": None}}]) == []
    assert told(sources={"vllm": {"path": "/src", "commit": "c", "dirty": None}})[0][2] == "commit c"


def test_disk_that_only_one_start_looked_at_is_not_compared() -> None:
    room = {"free_bytes": 1, "total_bytes": 64 * GIB}
    assert told(disks={"/elsewhere": room}) == []
    assert told(disks={"/dev/shm": room}) == [("free space of /dev/shm", "60.0 GiB", "1 bytes")]


def test_part_that_one_start_did_not_see_is_not_compared() -> None:
    nothing = {part: None for part in BASE if part not in {"schema", "whole", "key_id"}}
    assert told(**nothing) == []


UNKNOWN: tuple[dict[str, Any], ...] = (
    {"machine": {}},
    {"machine": {"host": "gpu7", "limits": {}}},
    {
        "machine": {
            **BASE["machine"],
            "cpus": None,
            "memory_total_bytes": None,
            "memory_free_bytes": None,
            "boot_id": "",
        }
    },
    {"gpus": [{}]},
    {"gpus": [{"name": "H200", "uuid": "", "total_bytes": None}]},
    {"disks": {"/dev/shm": {}}},
    {"program": {"path": "/v/bin/python", "python": True, "version": None}},
    {"command": {**BASE["command"], "cwd": ""}},
)


@pytest.mark.parametrize("after", UNKNOWN)
def test_what_one_side_does_not_know_is_no_difference(after: dict[str, Any]) -> None:
    assert told(**after) == []
    before, later = read_snapshot({**BASE, **after}), read_snapshot(BASE)
    assert before is not None
    assert later is not None
    assert compare(before, later) == ()


def test_driver_and_limit_that_were_looked_for_and_not_found_are_none() -> None:
    machine = {**BASE["machine"], "driver": None, "memory_limit_bytes": 8 * GIB}
    assert sorted(told(machine=machine)) == [("GPU driver", "550.1", "none"), ("memory limit", "none", "8.0 GiB")]


def test_commit_that_is_not_known_is_no_difference() -> None:
    known = {**BASE, "sources": {"vllm": {"path": "/src", "commit": "c1", "dirty": {}}}}
    before, after = read_snapshot(known), read_snapshot({**known, "sources": {"vllm": {"path": "/src", "dirty": {}}}})
    assert before is not None
    assert after is not None
    assert compare(before, after) == ()


def test_another_gpu_of_the_same_name_is_a_difference() -> None:
    assert [one[0] for one in told(gpus=[{**BASE["gpus"][0], "uuid": "GPU-2"}])] == ["GPU 0"]


def test_what_the_cause_names_comes_first_then_its_kind_then_the_rest() -> None:
    after = {
        "command": command("--num-speculative-tokens", "16", "--port", "1"),
        "env": {**BASE["env"], "NCCL_ALGO": "Tree"},
        "packages": {**BASE["packages"], "sglang": "0.5.2"},
    }
    found = changes(why("unknown_flag", "error: unrecognized arguments: --num-speculative-tokens 16"), **after)
    assert [(one.what, one.explains) for one in found] == [
        ("flag --num-speculative-tokens", True),
        ("flag --port", True),
        ("package sglang", True),
        ("variable NCCL_ALGO", False),
    ]
    assert changes(why("nccl_init", "NCCL error"), **after)[0].what == "variable NCCL_ALGO"
    assert not any(one.explains for one in changes(None, **after))


def test_patched_file_in_the_traceback_comes_before_every_flag() -> None:
    edited = {"files": {"sglang": {"sglang/other.py": "1" * 16, "sglang/srt/server_args.py": "2" * 16}}}
    lines = ((3, '  File "/v/lib/python3.12/site-packages/sglang/srt/server_args.py", line 7'),)
    found = changes(why("bad_flag_value", "ValueError", around=lines), edited=edited, command=command("--port", "1"))
    assert found[0].what == "edited file sglang/srt/server_args.py of sglang"


def test_flag_whose_name_only_begins_like_the_one_in_the_text_is_not_named() -> None:
    after = {"command": command("--a", "1", "--a-longer", "1")}
    found = changes(why("unknown_flag", "unrecognized arguments: --a-longer"), **after)
    assert [one.what for one in found] == ["flag --a-longer", "flag --a"]


def test_more_room_than_before_explains_nothing() -> None:
    roomy = {**BASE, "gpus": [{**BASE["gpus"][0], "free_bytes": 10 * GIB}]}
    before, after = read_snapshot(roomy), read_snapshot(BASE)
    assert before is not None
    assert after is not None
    found = compare(before, after, why("gpu_oom_load"))
    assert [(one.what, one.explains) for one in found] == [("free memory of GPU 0", False)]


@pytest.mark.parametrize(
    "value", [{}, {"schema": 2}, {"env": []}, {"command": {"words": 3}}, {"models": [{}]}, {"gpus": [1]}]
)
def test_snapshot_of_another_version_or_of_nobody_is_none(value: dict[str, Any]) -> None:
    assert read_snapshot(value) is None


def test_every_kind_of_the_taxonomy_has_an_order() -> None:
    named = """unknown_flag bad_flag_value incompatible_flags model_not_found corrupt_weights missing_weights unsupported_arch
        weight_shape_mismatch draft_mismatch gpu_oom_load kv_cache_no_memory oom_cuda_graph host_oom_killed port_in_use permission
        cuda_driver_mismatch kernel_unsupported_arch missing_dependency import_error nccl_init nccl_timeout
        dist_rendezvous_timeout compile_failure jit_build_failure hang_loading hang_graph_capture hang_warmup watchdog_timeout
        crash_runtime illegal_memory_access health_misleading crash_loop disk_full shm_too_small tokenizer_error auth_gated
        spec_slower spec_not_active other"""
    assert set(named.split()) - EXPLAINS.keys() == set()


def test_every_kind_of_a_rule_has_an_order() -> None:
    folder = resources.files("vigil.diagnosis").joinpath("rules")
    rules = [tomllib.loads(one.read_text("utf-8")) for one in folder.iterdir() if one.name.endswith(".toml")]
    kinds = {str(value) for rule in rules for name, value in rule.items() if name.startswith("kind")}
    assert len(rules) > 10
    assert kinds - EXPLAINS.keys() == set()


def test_every_pattern_of_the_table_is_one_that_a_field_can_have() -> None:
    parts = ("flag.", "words", "edited.", "package.", "program", "source.", "python", "file.", "model.", "env.", "driver", "gpu.",
             "memory.", "limit.", "disk.", "kernel", "glibc", "host", "cwd", "boot")  # fmt: skip
    for pattern in {one for order in (*EXPLAINS.values(), USUALLY) for one in order}:
        assert pattern.startswith(parts), pattern
