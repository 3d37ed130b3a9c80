"""A short flag is not the beginning of a setting's name."""

from vigil.attest.arguments import table_of_arguments
from vigil.engines import table
from vigil.fact_parts import Arguments
from vigil.facts import Attested

PROPS = Arguments(source="/props", values={"total_slots": 4, "model_path": "m.gguf"})


def test_threads_of_llama_server_are_not_its_slots() -> None:
    words = ["llama-server", "-m", "m.gguf", "-t", "1", "-np", "4"]
    rows = table_of_arguments(words, table("llamacpp"), Attested(at_s=0.0, served=PROPS))

    assert [(row.flag, row.state) for row in rows] == [("-m", "same"), ("-t", "not told"), ("-np", "same")]
