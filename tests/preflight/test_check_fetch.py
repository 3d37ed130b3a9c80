"""What is said of a repository that is not, or not whole, on this host: nothing is asked of the hub."""

import shlex
from typing import Any

from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Report, Severity
from vigil.preflight.seen_models import HubSeen, IndexSeen, ModelSeen
from vigil.preflight.sight import Sight

COMMIT, OTHER = "a" * 40, "b" * 40
CONFIG = {"architectures": ["LlamaForCausalLM"], "num_attention_heads": 4}


def report(
    name: str = "org/m", more: str = "", before: str = "", about: dict[str, Any] | None = None, **hub: Any
) -> Report:
    """Return what is found of a model that the cache does not have, or (with `about`) has a part of."""
    words = tuple(shlex.split(f"{before} vllm serve {name} {more}"))
    own = words.index("serve") + 1
    told = {"repository": True, **(about or {})}
    model = ModelSeen(what="model", given=name, offline=hub.get("offline"), hub=HubSeen(**hub), **told)
    return examine(Command(words=words, own=own, engine="vllm"), Sight(models=(model,)))


def found(report: Report, code: str) -> Finding:
    return next(one for one in report.findings if one.code == code)


def codes(report: Report) -> list[str]:
    return [one.code for one in report.findings]


def test_what_may_be_fetched_is_noted() -> None:
    seen = report(token=True, writable=True, incomplete=2, incomplete_bytes=3 << 30)
    assert codes(seen) == ["FILE004"]
    text = "org/m is not in the cache of this host: it is fetched first (2 files were begun before, 3.0 GiB are there)."
    assert seen.findings[0].text == text


def test_offline_a_ref_without_its_snapshot_is_the_end_and_the_one_that_is_there_is_named() -> None:
    seen = report(more="--port 1", offline="HF_HUB_OFFLINE=1", begun=True, commit=COMMIT, snapshots=(OTHER,))
    (fatal,) = seen.fatal
    assert fatal.text == (
        f"The cache has a folder of org/m, and its revision is {COMMIT}, which is not there; there is {OTHER}; "
        "HF_HUB_OFFLINE=1 forbids to fetch it."
    )
    assert seen.corrected == ("vllm", "serve", "org/m", "--port", "1", "--revision", OTHER)
    assert (
        report(more=f"--revision {COMMIT}", offline="HF_HUB_OFFLINE=1", begun=True, snapshots=(OTHER,)).corrected
        is None
    )


def test_offline_counts_with_a_mirror_too() -> None:
    assert codes(report(offline="HF_HUB_OFFLINE=1", endpoint="https://mirror.example.com")) == ["FILE001"]
    assert codes(report(offline="HF_HUB_OFFLINE=1", modelscope=True)) == []


def test_offline_with_another_folder_for_downloads_is_a_warning() -> None:
    seen = report(more="--download-dir /data", offline="HF_HUB_OFFLINE=1")
    assert found(seen, "FILE001").severity is Severity.WARNING


def test_an_address_without_its_scheme_is_the_end() -> None:
    (fatal,) = report(endpoint="hf-mirror.com").fatal
    assert (fatal.code, fatal.advice) == ("FILE001", "HF_ENDPOINT=https://hf-mirror.com")
    assert report(endpoint="https://hf-mirror.com", token=True).fatal == ()


def test_a_cache_that_cannot_be_written_to_is_the_end_where_something_must_be_fetched() -> None:
    (fatal,) = report(writable=False, folder="/srv/hf/hub").fatal
    assert fatal.text == "org/m is not in the cache, and /srv/hf/hub cannot be written to: it cannot be fetched."
    assert report(writable=False, more="--download-dir /data").fatal == ()
    assert report(writable=False, before="sudo -u llm").fatal == ()
    assert report(writable=None).fatal == ()


def test_a_gated_repository_without_a_token_is_told_once() -> None:
    seen = report("meta-llama/Llama-3.1-8B")
    assert codes(seen) == ["AUTH001"]
    assert found(seen, "AUTH001").severity is Severity.FATAL
    assert found(report("mistralai/Codestral-22B"), "AUTH001").severity is Severity.WARNING
    assert codes(report("meta-llama/Llama-3.1-8B", token=True)) == ["FILE004"]
    assert codes(report("meta-llama/Llama-3.1-8B", more="--hf-token hf_x")) == ["FILE004"]
    assert codes(report("meta-llama/Llama-3.1-8B", endpoint="https://mirror.example.com")) == ["FILE004"]


def test_a_token_that_is_kept_back_is_a_warning() -> None:
    warning = found(report("meta-llama/Llama-3.1-8B", token=True, implicit=False), "AUTH001")
    assert warning.severity is Severity.WARNING
    assert "HF_HUB_DISABLE_IMPLICIT_TOKEN keeps the token of this host back" in warning.text


def test_a_card_in_the_cache_tells_that_a_repository_is_gated() -> None:
    fatal = found(report(gated=True, begun=True), "AUTH001")
    assert (fatal.severity, fatal.seen) == (Severity.FATAL, "the model card in the cache")


def part(index: IndexSeen | None = None, **more: Any) -> dict[str, Any]:
    """Return what was seen of a repository that the cache has a part of."""
    there = {"path": "/hub/m", "kind": "folder", "cached": True, "config": CONFIG, "tokenizer": ("tokenizer.json",)}
    return {**there, "index": index, **more}


def test_the_rest_of_a_repository_is_fetched_first() -> None:
    begun = "1 file was begun before, 1.0 MiB are there"
    index = IndexSeen(name="model.safetensors.index.json", shards=4, missing=("a", "b", "c"), missing_count=3)
    seen = report(about=part(index), token=True, incomplete=1, incomplete_bytes=1 << 20)
    assert codes(seen) == ["FILE004"]
    text = f"org/m is not whole: 3 files of weights are not in the cache, and fetched first ({begun})."
    assert seen.findings[0].text == text
    assert codes(report("meta-llama/Llama-3.1-8B", about=part(index))) == ["AUTH001"]
    assert codes(report("meta-llama/Llama-3.1-8B", more="--load-format dummy", about=part(index))) == []
    assert codes(report(about=part(), token=True)) == ["FILE004"]


def test_a_whole_repository_needs_no_token() -> None:
    whole = part(IndexSeen(name="i", shards=1), pickles=("a.bin",))
    assert report("meta-llama/Llama-3.1-8B", about=whole).fatal == ()


def test_llama_server_does_not_read_the_hubs_variables() -> None:
    def said(more: str = "", name: str = "org/m", **hub: Any) -> list[Finding]:
        words = ("llama-server", "-hf", name, *more.split())
        model = ModelSeen(what="model", given=name, repository=True, offline=hub.get("offline"), hub=HubSeen(**hub))
        return list(examine(Command(words=words, own=1, engine="llamacpp"), Sight(models=(model,))).findings)

    assert [one.code for one in said(offline="HF_HUB_OFFLINE=1", writable=False)] == ["FILE004"]
    assert [(one.code, one.severity) for one in said("--offline")] == [("FILE001", Severity.WARNING)]
    assert said(name="meta-llama/x")[0].severity is Severity.WARNING
