.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
SHORT_JVMS := JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1  # their JVMs end before the second compiler pays

help:  ## Show this help
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: $(STAMP)  ## Make the environment (.venv) with all dependencies

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e '.[dev]'
	touch $@

demo: $(STAMP)  ## Decode a shop's changes from every dialect, convert them, run jobs, and show that all agree
	@$(BIN)/python -m examples.demo

test: $(STAMP)  ## Run all tests, with half of the random examples (all of them: HEADGATE_EXAMPLES=1)
	HEADGATE_EXAMPLES=$${HEADGATE_EXAMPLES:-0.5} $(BIN)/python -m pytest -n 3 --dist loadfile --durations=25 $(PYTEST_ARGS)

test-fast: $(STAMP)  ## Run the tests that need neither Spark nor a broker, with fewer random examples
	HEADGATE_EXAMPLES=0.1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not spark and not slow" $(PYTEST_ARGS)

interop: $(STAMP)  ## Check with Flink, Kafka's JSON converter, Spark and polars what is written; jobs with RocketMQ, DataHub, S3, a Spark cluster
	$(SHORT_JVMS) $(BIN)/python -m pytest -n 3 --dist loadfile -rs --durations=15 tests/interop $(PYTEST_ARGS)

torture: $(STAMP)  ## Kill a job twenty times, and give it the other faults (HEADGATE_KILLS, HEADGATE_SEED)
	$(SHORT_JVMS) $(BIN)/python -m pytest -n 3 --dist loadfile -rs --durations=15 tests/torture $(PYTEST_ARGS)

lint: $(STAMP)  ## Check format, style, types, layers and dead code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

format: $(STAMP)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)  ## Write the tables of docs/jobs.md anew, and build the site (site/)
	$(BIN)/python -m headgate.config.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(STAMP)  ## Measure decoding, conversion and landing beside Spark and Flink
	$(BIN)/python bench/run.py $(BENCH_ARGS)

clean:  ## Remove the environment and caches
	rm -rf $(VENV) site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup demo docs test test-fast interop torture lint format bench clean
