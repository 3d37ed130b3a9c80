"""Repositories that are known to ask for consent before a download: offline only their names tell."""

import re

# Whose pages ask everybody (huggingface.co, read in 2025 and 2026): a download without a token is a 401.
_GATED = re.compile(r"(?:meta-llama/|google/gemma-(?:2b|7b|2-|3))[\w.-]*\Z")
# Of these families many do.
_OFTEN = re.compile(
    r"(?:google/(?:gemma|codegemma|paligemma|shieldgemma|medgemma)|CohereLabs/|CohereForAI/"
    r"|mistralai/(?:Mistral-Large|Codestral|Mixtral-8x22B-Instruct)|bigcode/starcoder)[\w./-]*\Z"
)


def gated(name: str) -> bool | None:
    """Tell whether a repository asks for consent: True for sure, False where it may, None where nothing is known."""
    return True if _GATED.match(name) else False if _OFTEN.match(name) else None
