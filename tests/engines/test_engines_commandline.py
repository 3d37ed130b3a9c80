"""Command lines as people write them: which engine, where it answers, what it serves."""

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.transcripts import ENGINE_OF, LOGS
from vigil.engines import TABLES, Address, address, asks_speculation, detect, served_model, table
from vigil.engines.commandline import flatten, split
from vigil.errors import UsageError

CASES = [
    ("python -m sglang.launch_server --model-path /m --port 30001", "sglang", ("http", "127.0.0.1", 30001), "/m"),
    ("sglang serve q --host 10.0.0.5", "sglang", ("http", "10.0.0.5", 30000), "q"),
    ("python3 /app/sglang/launch_server.py --model x --ssl-certfile c", "sglang", ("https", "127.0.0.1", 30000), "x"),
    ("vllm serve m --port=9000 --host 0.0.0.0 --served-model-name a b", "vllm", ("http", "127.0.0.1", 9000), "a"),
    ("/opt/v/bin/vllm serve m --host ::", "vllm", ("http", "::1", 8000), "m"),
    ("python -m vllm.entrypoints.openai.api_server --model=m", "vllm", ("http", "127.0.0.1", 8000), "m"),
    ("CUDA_VISIBLE_DEVICES=0 nohup setsid vllm serve m", "vllm", ("http", "127.0.0.1", 8000), "m"),
    ("env HF_HUB_OFFLINE=1 timeout -k 5 900 uv run vllm serve $MODEL", "vllm", ("http", "127.0.0.1", 8000), "zz"),
    (
        "docker run --gpus all -p 8080:8000 --name llama-server vllm/vllm-openai:v0.9 --model m",
        "vllm",
        ("http", "127.0.0.1", 8080),
        "m",
    ),
    (
        "docker run -p 127.0.0.1:9:30000 lmsysorg/sglang python3 -m sglang.launch_server --model q",
        "sglang",
        ("http", "127.0.0.1", 9),
        "q",
    ),
    (
        "docker run --network host registry.local:5000/vllm/vllm-openai@sha256:ab --port 7",
        "vllm",
        ("http", "127.0.0.1", 7),
        None,
    ),
    (
        "bash -lc 'cd /x && export PORT=8123; exec llama-server -m /a.gguf --port ${PORT:-1}'",
        "llamacpp",
        ("http", "127.0.0.1", 8123),
        "/a.gguf",
    ),
    ("ssh h 'nohup sglang serve q > x.log 2>&1 &'", "sglang", ("http", "127.0.0.1", 30000), "q"),
    (
        "env LLAMA_ARG_PORT=99 LLAMA_ARG_HOST=::1 /opt/llama-server -hf a/b:Q4 --ssl-cert-file c",
        "llamacpp",
        ("https", "::1", 99),
        "a/b:Q4",
    ),
    ("LLAMA_ARG_PORT=99 llama-server --port 98 --alias n1,n2", "llamacpp", ("http", "127.0.0.1", 98), "n1"),
    ("/opt/supervise.sh /opt/llama/llama-server -m x --host a.sock", "llamacpp", None, "x"),
    ("vllm serve m --uds /tmp/s", "vllm", None, "m"),
    (
        "bash -c \"while true; do bash -c 'vllm serve x --port 7'; sleep 2; done\"",
        "vllm",
        ("http", "127.0.0.1", 7),
        "x",
    ),
    (
        "torchrun --nproc_per_node 8 -m sglang.launch_server --model-path m --tp 8",
        "sglang",
        ("http", "127.0.0.1", 30000),
        "m",
    ),
    ("kubectl exec -i pod -- vllm serve q -tp 8", "vllm", ("http", "127.0.0.1", 8000), "q"),
    ("sbatch --gres=gpu:8 --wrap='vllm serve q --port 7'", "vllm", ("http", "127.0.0.1", 7), "q"),
    ("sbatch --wrap 'cd /x; srun vllm serve q --port 7'", "vllm", ("http", "127.0.0.1", 7), "q"),
    ("vllm serve m --port nonsense", "vllm", ("http", "127.0.0.1", 8000), "m"),
    ("torchrun --nproc 8 train.py --port 4", "generic", ("http", "127.0.0.1", 4), None),
    ("bash -c 'PORT=5 python app.py'", "generic", ("http", "127.0.0.1", 5), None),
    ("bash run.sh -p 77", "generic", ("http", "127.0.0.1", 77), None),
    ("ssh -p 2222 h python app.py", "generic", None, None),
    ("python train.py --out /x/llama-server", "generic", None, None),
    ("python -c 'import vllm serve'", "generic", None, None),
    ("vllm bench serve m", "generic", None, None),
    ("curl http://host/llama-server", "generic", None, None),
    ("tail -f sglang.launch_server.log", "generic", None, None),
]


@pytest.mark.parametrize(("command", "engine", "where", "model"), CASES)
def test_command_line_is_understood(
    command: str, engine: str, where: tuple[str, str, int] | None, model: str | None
) -> None:
    argv = shlex.split(command)
    seen = detect(argv)
    assert seen.name == engine
    assert address(seen, argv, {"MODEL": "zz"}) == (None if where is None else Address(*where))
    assert served_model(argv, {"MODEL": "zz"}) == model


@pytest.mark.parametrize("path", sorted(LOGS.glob("*/*.cmd")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_command_of_a_real_start_is_understood(path: Path) -> None:
    text = path.read_text()
    argv = ("bash", "-c", text)
    seen = detect(argv)
    # The server in Python was a script that calls the library: nothing on its command line says so.
    assert seen.name == ("generic" if path.parent.name == "xllamacpp" else ENGINE_OF[path.parent.name])
    found = address(seen, argv)
    ports = re.findall(r"--port (\d+)", text)
    assert found is None or found.port == (int(ports[-1]) if ports else seen.default_port)


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("sglang serve m --speculative-algorithm EAGLE3", True),
        ("sglang serve m --speculative-num-steps 3", False),
        ('vllm serve m --speculative-config \'{"method": "eagle3"}\'', True),
        ('vllm serve m --speculative_config={"method":"eagle3"}', True),
        ("vllm serve m --speculative-config.method ngram", True),
        ("vllm serve m", False),
        ("llama-server -m m -md d", True),
        ("llama-server -m m -md d --spec-type none", False),
        ("llama-server -m m --spec-default --port 1", True),
        ("llama-server -m m --spec-draft-n-max 3", False),
    ],
)
def test_speculation_is_asked_for(command: str, asked: bool) -> None:  # noqa: FBT001
    argv = shlex.split(command)
    assert asks_speculation(detect(argv), argv) == asked


def test_engine_is_known_by_name() -> None:
    assert table("SGLang") is TABLES["sglang"]
    assert table("llama-server") is TABLES["llamacpp"]


def test_engine_of_no_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="sglang"):
        table("tgi")


def test_shell_text_ends_one_command_at_an_operator() -> None:
    assert split("a 'b c' && d; e|f > x") == ("a", "b c", "&&", "d", ";", "e", "|", "f", ">", "x")


def test_open_quote_is_read_as_it_stands() -> None:
    assert split("vllm serve 'm") == ("vllm", "serve", "'m")


@given(st.lists(st.text(max_size=40), max_size=8))
def test_any_words_are_taken(argv: list[str]) -> None:
    found = detect(argv)
    address(found, argv, {})
    served_model(argv)
    asks_speculation(found, argv)


@given(st.text(max_size=200))
def test_any_shell_text_is_taken(text: str) -> None:
    flatten(("bash", "-c", text))
    assert detect(("bash", "-c", text)).name in TABLES
