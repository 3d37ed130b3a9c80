# make install | demo | test | test-engines | test-engines-more | test-drafts | faults | bench | diagnose-score | docs. Everything lands in git-ignored folders here.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin

.PHONY: story install demo check test test-long engines test-engines test-engines-more test-drafts faults bench diagnose-score docs clean
.DEFAULT_GOAL := help

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

.venv/.installed: packages/vigil/pyproject.toml packages/vigil-draft/pyproject.toml packages/vigil-draft-smollm2/pyproject.toml packages/vigil-engine/pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e packages/vigil -e packages/vigil-draft -e packages/vigil-draft-smollm2 -e packages/vigil-engine -r requirements-dev.txt
	touch $@

install: .venv/.installed ## .venv with vigil and what its checks need

demo: .venv/.installed ## bring a real llama-server up, break it, see the verdicts (under four minutes on a fresh machine)
	@bash examples/demo.sh

story: engines ## the chain from a target to speculation that pays, end to end, on the CPU; a page of what was promised and measured
	bash tests/learning/install.sh
	$(BIN)/python examples/story

check: .venv/.installed ## format, lint, types, import law
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check ## all checks and tests, under ten minutes
	bash tests/install-system.sh
	bash tests/llama/install.sh
	$(BIN)/pytest -n 2 --dist loadgroup -m "not engine and not long"
	$(MAKE) --no-print-directory docs

test-long: .venv/.installed ## tests that take most of a minute each: whole tunings over the streaming fake
	$(BIN)/pytest -m long --durations 8 tests/speculation

engines: .venv/.installed ## install vLLM and SGLang for the CPU, what drafts are trained with, and make their model: 5 GB, some minutes
	bash tests/real/install-vllm.sh
	bash tests/real/install-sglang.sh
	bash tests/learning/install.sh
	.engines/vllm/bin/python tests/real/make_model.py

test-engines: engines ## the heavy engines: vLLM and SGLang on the CPU
	$(BIN)/pytest -m engine --timeout 1200 --durations 8 tests/real --ignore tests/real/test_real_attest.py --ignore tests/real/test_real_engines_bench.py --ignore tests/real/test_real_speculate_more.py

test-engines-more: engines ## what heavy engines say of themselves, and how they measure: wants a quiet machine
	$(BIN)/pytest -m engine --timeout 1200 --durations 8 tests/real/test_real_attest.py tests/real/test_real_engines_bench.py tests/real/test_real_speculate_more.py

test-drafts: ## drafts on the CPU with torch: the whole chain with a toy target; takes vLLM's torch
	$$(bash tests/learning/install.sh)/bin/pytest --durations 8 tests/learning

faults: .venv/.installed ## every fault of the table, here and over a real sshd
	bash tests/install-system.sh
	$(BIN)/python bench/faults.py --where both

diagnose-score: .venv/.installed ## right line, right kind, how fast: the diagnosis beside three other ways to look
	bash bench/peers/install.sh
	$(BIN)/python bench/diagnose_score.py
	$(BIN)/python bench/diagnose_speed.py
	$(BIN)/python docs/generate.py

bench: .venv/.installed ## speed and cost, with the peers beside it
	bash tests/install-system.sh
	bash tests/llama/install.sh
	bash bench/peers/install.sh
	$(BIN)/python bench/bench.py
	$(BIN)/python bench/client_ceiling.py
	$(BIN)/python docs/generate.py

docs: .venv/.installed ## build the documentation and check that nothing in it drifted
	$(BIN)/python docs/generate.py --check
	$(BIN)/zensical build --clean --strict

clean: ## remove what the targets made
	rm -rf .venv .engines .peers .demo .story site
