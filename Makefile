# make run   install if needed, then open the console with the rehearsal model (no key, no network)
# make test  install if needed, then the whole suite
# make help  the rest

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STATE ?= ./.state
JOBS ?= 2
# Not beside others: they wait for frames in real time, or fill the machine's process table.
ALONE := tests/e2e tests/tui/terminal tests/test_stop.py tests/sandbox

.DEFAULT_GOAL := help
.PHONY: help run test soak check format lint types contracts bench wheel clean newer

help:
	@grep -E '^# make|^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^# //; s/:.*## /\t/'

# One stamp per set of extras: `make run` needs no test tools.
$(VENV)/.run: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,check]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run ## open the console on ./.state
	@$(BIN)/claw-tui --state-dir $(STATE)

test: $(VENV)/.dev ## the whole suite, with a seeded slice of the long harnesses
	$(BIN)/python -m pytest -q -n $(JOBS) $(ALONE:%=--ignore=%)
	$(BIN)/python -m pytest -q $(ALONE)

soak: $(VENV)/.dev ## the long harnesses in full; writes bench/results/soak.json
	$(BIN)/python -m bench.soak

check: $(VENV)/.dev format lint types contracts test ## what CI runs

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## measure start, latency, CPU and memory
	$(BIN)/python -m bench.figures

newer: ## the suite once more on a newer Python, if one is installed
	@sh .ci/newer-python

wheel: $(VENV)/.dev ## dist/*.whl
	rm -rf dist build
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache
