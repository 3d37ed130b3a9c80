"""The scripts that gather prompts stand in a folder of bench/ and are imported from there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "draft_prompts"))
