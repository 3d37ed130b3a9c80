"""Print the draft's folder."""

from vigil_draft_smollm2 import DRAFT

print(DRAFT)
