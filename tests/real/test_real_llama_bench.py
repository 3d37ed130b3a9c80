"""The real llama-server, measured: what it reports is what it was asked for, with and without n-gram speculation."""

import json
import shlex
from pathlib import Path
from typing import Any

from real_runs import Site

LENGTHS = ("--input", "24", "--output", "8", "--repeats", "1", "--requests", "4", "--concurrency", "1,2")


def arm(site: Site, llama: Path, gguf: Path, *flags: str) -> str:
    command = [str(llama / "bin" / "llama-server"), "-m", str(gguf), "-c", "1024", "-t", "1", "--metrics"]
    return shlex.join([*command, "--port", str(site.port), *flags])


def test_llama_with_and_without_ngram_is_compared(site: Site, llama: Path, gguf: Path) -> None:
    out = site.folder / "results"
    arms = (f"off={arm(site, llama, gguf)}", f"ngram={arm(site, llama, gguf, '--spec-type', 'ngram-mod')}")
    done = site("compare", "--arm", arms[0], "--arm", arms[1], *LENGTHS, "--out", str(out), "--json")

    assert done.rc == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    assert [(row["arm"], row["point"]["value"]) for row in sorted_rows(found)] == [
        ("ngram", 1.0), ("ngram", 2.0), ("off", 1.0), ("off", 2.0),
    ]  # fmt: skip
    for row in found["rows"]:
        assert (row["ended"], row["failures"], row["output_tokens"]) == (4, {}, 8.0)
        assert abs(row["input_tokens"] - 24) <= 4
        assert row["ttft_s"]["p50"] > 0
    for server in found["servers"].values():
        assert (server["target"]["engine"], server["target"]["ignore_eos"]) == ("llamacpp", True)
        assert server["settings"]["total_slots"] == 4
    assert found["answers"][0]["arm"] == "ngram"
    assert site.processes() == []


def sorted_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(found["rows"], key=lambda row: (row["arm"], row["point"]["value"]))


def test_llama_refuses_a_prompt_that_its_context_does_not_hold_in_one_line(site: Site, llama: Path, gguf: Path) -> None:
    one = arm(site, llama, gguf)
    done = site(
        "compare", "--arm", f"a={one}", "--arm", f"b={one}", "--input", "3000", "--output", "8", "--concurrency", "1"
    )

    assert done.rc == 2
    assert "context" in done.err.splitlines()[-1]
    assert site.processes() == []
