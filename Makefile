# Every command that a person or CI runs. Each does its own set-up; longer logic lives in scripts/.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup protos format check test run run-engine run-gateway run-grammar gates fuzz bench demo-eval clean

RANKS ?= 2
PORT ?= 8000
MODEL ?=
DTYPE ?= float32
KINDS ?=
COUNT ?= 50
CASES ?= 5000
SEED ?=
ONLY ?=
BASE_URL ?= http://127.0.0.1:$(PORT)
PYTHON_BIN := .venv/bin/python
# Two workers share the cores: threads that wait for one another must not spin.
TEST_ENV := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Create .venv with the pinned packages, build the protos, install everything editable
	@scripts/setup.sh

protos: setup ## Generate the stubs from the .proto files, if one changed

format: setup ## Format the code and sort imports
	@.venv/bin/ruff check --fix-only --quiet . && .venv/bin/ruff format .

check: setup ## Lint, types, import rules, protos, dead dependencies
	@scripts/check.sh

test: setup ## Every CPU test, the fast ones first
	@$(TEST_ENV) $(PYTHON_BIN) -m pytest -m "not slow and not gpu" -n auto --dist loadfile && $(TEST_ENV) $(PYTHON_BIN) -m pytest -m "slow and not gpu"

run: setup ## Serve the demo model, or MODEL=folder, with all services (RANKS=2 PORT=8000 DTYPE=float32), until Ctrl-C
	@exec $(PYTHON_BIN) -m twinspark_tools.launch --ranks "$(RANKS)" --port "$(PORT)" --dtype "$(DTYPE)" $(if $(MODEL),--model "$(MODEL)")

run-engine: setup ## Run one engine rank alone, with settings from TWINSPARK_ENGINE_*
	@exec $(PYTHON_BIN) -m twinspark_engine

run-gateway: setup ## Run the gateway alone, with settings from TWINSPARK_GATEWAY_*
	@exec $(PYTHON_BIN) -m twinspark_gateway

run-grammar: setup ## Run the grammar service alone, with settings from TWINSPARK_GRAMMAR_*
	@exec $(PYTHON_BIN) -m twinspark_grammar

gates: setup ## Run the gates of exactness against a running server (BASE_URL=http://127.0.0.1:8000 ONLY=cancel,load)
	@$(PYTHON_BIN) -m twinspark_tools.gates --base-url "$(BASE_URL)" $(if $(ONLY),--only "$(ONLY)")

fuzz: setup ## Send CASES=5000 requests drawn from the OpenAPI document, and as many broken bodies (SEED=1 repeats)
	@FUZZ_CASES="$(CASES)" $(TEST_ENV) $(PYTHON_BIN) -m pytest tests/gateway/fuzz -s --timeout 0 -p no:randomly -W ignore $(if $(SEED),--hypothesis-seed "$(SEED)")

bench: setup ## Benchmark a running server (BASE_URL=http://127.0.0.1:8000); JSON and a table
	@$(PYTHON_BIN) -m twinspark_tools.bench --base-url "$(BASE_URL)"

demo-eval: setup ## Score the demo model on a running server (BASE_URL=http://127.0.0.1:8000 KINDS=copy,json COUNT=50 SEED=1)
	@$(PYTHON_BIN) -m twinspark_demo.evaluation --base-url "$(BASE_URL)" --kinds "$(KINDS)" --count "$(COUNT)" --json build/demo-eval.json $(if $(SEED),--seed "$(SEED)")

clean: ## Remove the environment, generated stubs and caches
	@rm -rf .venv .setup.lock protos/gen build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
