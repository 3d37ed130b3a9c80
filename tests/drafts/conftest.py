"""The script that makes toy drafts is imported as it lies here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
