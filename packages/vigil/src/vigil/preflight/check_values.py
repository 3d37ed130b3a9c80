"""Check the values and pairs of the command that need no file and no host."""

from collections.abc import Iterator

from vigil.preflight.check_fractions import check_fractions
from vigil.preflight.check_json import check_json
from vigil.preflight.check_llamacpp import check_llamacpp
from vigil.preflight.check_sglang_speculation import check_sglang_speculation
from vigil.preflight.check_sglang_values import check_sglang_values
from vigil.preflight.check_switching import check_switching
from vigil.preflight.check_vllm_lora import check_vllm_lora
from vigil.preflight.check_vllm_speculation import check_vllm_speculation
from vigil.preflight.check_vllm_values import check_vllm_values
from vigil.preflight.check_words import check_words
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.sight import Sight
from vigil.preflight.versions import version_of


def check_values(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find values that the engine refuses, changes silently, or reads otherwise than they are meant."""
    yield from check_words(command)
    yield from check_json(command)
    yield from check_fractions(command)
    if command.engine == "sglang":
        yield from check_sglang_speculation(command)
        yield from check_sglang_values(command, version_of(sight))
        yield from check_switching(command, version_of(sight))
    elif command.engine == "vllm":
        yield from check_vllm_speculation(command, version_of(sight))
        yield from check_vllm_values(command)
        yield from check_vllm_lora(command)
    elif command.engine == "llamacpp":
        yield from check_llamacpp(command, version_of(sight))
