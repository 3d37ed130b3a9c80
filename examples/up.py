"""Start a server, wait for the verdict, and say what to do: `python examples/up.py llama-server -m model.gguf --port 8080`."""
# ruff: noqa: INP001

import sys

import vigil

plan = vigil.Plan(command=tuple(sys.argv[1:]))
verdict = vigil.up(plan)
print(f"{verdict.word}: {verdict.reason}")
if verdict.cause is not None:
    print(f"{verdict.cause.code}: {verdict.cause.text}")
    print(f"what to do: {verdict.cause.advice}")
elif verdict.word is vigil.Word.READY:
    print(f"it serves at {verdict.url}; to end it: vigil stop {verdict.name}")
sys.exit(verdict.exit_code)
