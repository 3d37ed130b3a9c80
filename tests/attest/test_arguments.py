"""The table "asked for, in force": which setting a flag is held against, and which it is not."""

import pytest

from vigil import fact_parts, facts
from vigil.attest.arguments import table_of_arguments
from vigil.engines import table


def state_of(command: str, values: dict[str, fact_parts.Value], engine: str) -> dict[str, str]:
    seen = facts.Attested(at_s=0.0, arguments=(fact_parts.Arguments(source="S", values=values),))
    return {row.flag: row.state for row in table_of_arguments(command.split(), table(engine), seen)}


def test_short_flag_is_not_the_beginning_of_some_setting() -> None:
    """llama-server's `-t 1` (threads) was held against `total_slots`, the one setting that begins so."""
    values = {"total_slots": 2, "model_path": "/m.gguf", "build_info": "b1"}
    states = state_of("llama-server -m /m.gguf -t 1 -b 512 -np 2 --build x", values, "llamacpp")

    assert states == {"-m": "same", "-t": "not told", "-b": "not told", "-np": "same", "--build": "not told"}


@pytest.mark.parametrize("flag", ["--max-running", "--max-running-requests"])
def test_flag_that_pythons_parser_completes_is_held_against_the_whole_name(flag: str) -> None:
    states = state_of(f"python -m sglang.launch_server {flag} 256", {"max_running_requests": 48}, "sglang")

    assert states == {flag: "changed"}
