"""What the checks of values say of what is no mistake for certain, and that no words make them fail."""

import random
import re
from importlib import resources

import pytest

from hosts import host_of
from vigil.plan import Plan
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Report, Severity, kinds
from vigil.preflight.sight import Sight
from vigil.supervise.ahead import command_of

EAGLE = "--speculative-algorithm EAGLE3 --speculative-draft-model-path D"


def report_on(text: str, *more: str, env: dict[str, str] | None = None) -> Report:
    """Return the report on a command, of which no host was looked at."""
    return examine(command_of(Plan(command=(*text.split(), *more), env=env or {})), Sight())


def found(report: Report, code: str) -> Finding:
    return next(one for one in report.findings if one.code == code)


def sglang(text: str) -> Report:
    return report_on(f"python -m sglang.launch_server --model-path M {text}")


def test_draft_tokens_that_are_changed_silently_are_told_with_both_ways_out() -> None:
    told = found(
        sglang(f"{EAGLE} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"),
        "SPEC004",
    )
    assert told.severity is Severity.WARNING
    assert told.text.startswith("--speculative-num-draft-tokens 16 is changed to 4:")
    assert told.advice.startswith("--speculative-num-steps 15 for 16 draft tokens, or --speculative-num-draft-tokens 4")


def test_limit_of_48_requests_is_a_note_and_a_warning_where_more_are_wanted() -> None:
    note = found(sglang(EAGLE), "SPEC005")
    assert (note.severity, "--max-running-requests 48 for EAGLE3" in note.text) == (Severity.NOTE, True)
    assert found(sglang(f"{EAGLE} --cuda-graph-max-bs 128"), "SPEC005").severity is Severity.WARNING
    assert not sglang(f"{EAGLE} --max-running-requests 64").findings


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
            "it needs --speculative-eagle-topk 1",
        ),
        ("--tp 4 --dp 4 --enable-dp-attention", "data-parallel attention"),
        ("--enable-two-batch-overlap", "two-batch overlap"),
    ],
)
def test_adaptive_speculation_that_is_turned_off_silently_is_told(more: str, why: str) -> None:
    told = found(sglang(f"{EAGLE} --speculative-adaptive {more}"), "SPEC004")
    assert (told.severity, why in told.text) == (Severity.WARNING, True)


def test_graphs_for_fewer_requests_than_may_run_are_told() -> None:
    small = found(sglang("--max-running-requests 256 --cuda-graph-bs 1 2 4 8 --tp 2"), "GRAPH001")
    assert small.text == "graphs for 8 requests at most, and 256 may run: batches above 8 run without a graph"
    wide = report_on(
        "vllm serve M --max-num-seqs 64 --cudagraph-capture-sizes 1 2 64",
        "--speculative-config",
        '{"method": "eagle3", "model": "D", "num_speculative_tokens": 3}',
    )
    assert "64 requests x 4 tokens each may decode at a time: 256" in found(wide, "GRAPH001").text
    assert not report_on("vllm serve M --max-num-seqs 64 --cudagraph-capture-sizes 1 2 64 --enforce-eager").findings


def test_flag_that_is_given_twice_keeps_its_last_value() -> None:
    report = sglang("--port 30000 --port 30001")
    told = found(report, "FLAG005")
    assert (told.severity, told.text) == (Severity.WARNING, "--port 30000 and then --port 30001: the last counts")
    assert report.corrected is not None
    assert report.corrected[-2:] == ("--port", "30001")
    assert not sglang("--port 30000 --port 30000").findings
    assert not sglang("--lora-paths a=1 --lora-paths b=2").findings


def test_draft_without_a_type_is_a_warning_that_can_be_pasted() -> None:
    report = report_on("llama-server -m m.gguf -md d.gguf -c 2048")
    assert found(report, "SPEC001").severity is Severity.WARNING
    assert report.corrected == (
        "llama-server",
        "-m",
        "m.gguf",
        "-md",
        "d.gguf",
        "--spec-type",
        "draft-simple",
        "-c",
        "2048",
    )
    assert not report_on("llama-server -m m.gguf -md d.gguf", env={"LLAMA_ARG_SPEC_TYPE": "draft-simple"}).findings


def test_place_of_a_mistake_in_json_is_told() -> None:
    told = found(
        report_on("vllm serve M --speculative-config", '{"method": "ngram" "num_speculative_tokens": 3}'), "FLAG002"
    )
    assert told.text == (
        "the value of --speculative-config is no JSON: expecting ',' delimiter at character 20, "
        'here: hod": "ngram" >>"num_speculati'
    )
    assert told.edits == ()


def test_words_of_a_shell_that_are_a_value_are_left_alone() -> None:
    assert not report_on("llama-server -m m.gguf -r |").findings
    assert not report_on("llama-server -m m.gguf -r", "-- the end").findings


def test_dash_that_may_be_a_value_is_a_warning() -> None:
    assert found(report_on("llama-server -m m.gguf -r \u2013ende"), "FLAG001").severity is Severity.WARNING


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 20_000, "{" + "9" * 60_000, '{"a": ' + "9" * 5000 + "}", "{'\\d': 1}", "{" * 65536],
)
def test_hostile_json_is_one_finding(text: str) -> None:
    report = report_on("vllm serve M --speculative-config", text)
    assert len(report.fatal) <= 1
    assert all(len(one.text) < 400 for one in report.findings)


def test_every_code_that_a_check_names_is_explained() -> None:
    for file in resources.files("vigil.preflight").iterdir():
        if file.name.startswith("check_"):
            for code in re.findall(r'"([A-Z]{3,5}\d{3})"', file.read_text("utf-8")):
                assert code in kinds(), f"{file.name}: {code}"


WORDS = """
--port --tp --dp --pp-size --nnodes --node-rank --speculative-algorithm --speculative-num-steps --speculative-eagle-topk
--speculative-num-draft-tokens --page-size --chunked-prefill-size --mem-fraction-static --max-running-requests -tp -dp
--cuda-graph-bs --attention-backend --enable-dp-attention --attn-dp-size --speculative-adaptive --served-model-name
--gpu-memory-utilization --max-model-len --max-num-seqs --max-num-batched-tokens --speculative-config -c -md -np
--base-gpu-id --gpu-id-step --kv-cache-dtype --context-length --data-parallel-size-local --device --config - -- =
EAGLE3 EAGLE NGRAM 0 1 2 3 -1 64 0.9 1e300 99999999999999999999 {} {'a' [1] && | > $X cpu cuda flashmla nan inf
--port= --tp=0 --pp-size=-3 \0 \udcff \u2013port
"""
CONFIGS = (
    '{"method": "ngram"}',
    '{"num_speculative_tokens": [1]}',
    '{"method": 3, "num_speculative_tokens": true, "draft_tensor_parallel_size": {}}',
)
PIECES = (*WORDS.split(), *CONFIGS, "", " ", "--tp 4")
HOSTS = [
    {},
    {"gpus": 0},
    {"gpus": [{"free_bytes": None, "total_bytes": 0}, {"total_bytes": 1, "free_bytes": 5}]},
    {
        "settings": {
            "variables": {
                "CUDA_VISIBLE_DEVICES": ",,-1,x",
                "NCCL_SOCKET_IFNAME": "=,",
                "http_proxy": "\0",
                "no_proxy": "1/2/3,::/0",
            }
        }
    },
    {
        "gpus": 2,
        "sizes": [{"what": "model", "given": "", "path": "/", "bytes": 1 << 60, "numbers": {"num_hidden_layers": 1}}],
    },
]


def test_no_words_and_no_host_make_a_check_fail() -> None:
    """Words at random, each time the same: whatever they are, the checks say what they find."""
    chance = random.Random(4)
    for _ in range(1500):
        base = chance.choice((("python", "-m", "sglang.launch_server"), ("vllm", "serve", "M"), ("llama-server",)))
        words = (*base, *chance.choices(PIECES, k=chance.randrange(12)))
        version = chance.choice((None, "0.5.10", "0.32.0", "b", "9.9.9.9"))
        report = examine(command_of(Plan(command=words)), Sight(host=host_of(chance.choice(HOSTS), version)))
        assert all(one.at is None or one.at + one.count <= len(report.words) for one in report.findings), words
