"""An EAGLE-3 draft of SmolLM2-135M-Instruct, as a folder that SGLang and vLLM load.

python -m vigil_draft_smollm2        # prints the folder
"""

from pathlib import Path

HERE = Path(__file__).parent
DRAFT = HERE / "draft"
"""The draft: config.json, model.safetensors, vigil.json (where it comes from)."""
ESTIMATE = HERE / "made" / "eval.json"
"""What `vigil draft eval --json` said of it on the documents that were held out."""
PROMPTS = HERE / "made" / "heldout.jsonl"
"""120 of the prompts that were held out."""
