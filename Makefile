# The one list of commands. `make help` prints it.
#
# Variables:
#   PYTHON              the interpreter .venv is made with, 3.10 to 3.12 (default: the first one found); to change it
#                       later, `make clean` first
#   MARVEC_TORCH_INDEX  a package index to take torch from, such as the one with CPU-only wheels (default: pip's own)
#   AIP_HTTP_PORT       the port that `make serve` serves on (default: 7080)

SHELL := /bin/sh
PYTHON ?=
MARVEC_TORCH_INDEX ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SETUP := $(VENV)/.setup
TORCH := $(shell sed -n 's/^\(torch==[^;]*\).*/\1/p' requirements/constraints.txt)
CODE := handler archiver serving image vertex marvec_cli demo bench examples tests
LOCK := cd docker/requirements && ../../$(BIN)/uv pip compile --quiet --generate-hashes --only-binary :all: \
    --no-python-downloads --no-annotate --python-platform x86_64-manylinux_2_28 --custom-compile-command 'make lock'
PACKED := $(shell find handler archiver demo -name '*.py' 2>/dev/null) $(wildcard model-config.yaml)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup serve lint check format test test-unit test-contract test-pack test-parity test-sentiment test-server test-cloud test-image test-bench test-python bench bench-quick lock clean

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 15

setup: $(SETUP)  ## make .venv and install everything into it

serve: $(SETUP) model_store/minilm.mar  ## pack the demo model if need be, serve it until Ctrl-C
	@exec $(BIN)/marvec serve minilm

lint: $(SETUP)  ## ruff and mypy; changes nothing
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(CODE)

check: lint  ## another name for lint

format: $(SETUP)  ## let ruff put things right
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

test: lint  ## lint, then every test
	$(BIN)/python -m pytest

test-unit: $(SETUP)  ## pure code, seconds
	$(BIN)/python -m pytest tests/unit

test-contract: $(SETUP)  ## the wire contract on a real TorchServe
	$(BIN)/python -m pytest tests/contract

test-pack: $(SETUP)  ## archives really built and loaded
	$(BIN)/python -m pytest tests/pack

test-parity: $(SETUP)  ## vectors against sentence-transformers
	$(BIN)/python -m pytest tests/parity

test-sentiment: $(SETUP)  ## classifiers: parity, a real TorchServe, Vertex AI's stand-in, the example
	$(BIN)/python -m pytest tests/sentiment tests/cloud/test_classification.py

test-server: $(SETUP)  ## life cycle, faults and load of a real TorchServe
	$(BIN)/python -m pytest tests/server

test-cloud: $(SETUP)  ## the road to Vertex AI, against a stand-in of it
	$(BIN)/python -m pytest tests/cloud

test-image: $(SETUP)  ## images really built and run, with podman (as root it is installed if need be)
	$(BIN)/python -m pytest tests/image

test-bench: $(SETUP)  ## the benchmark runs, and what it writes can be read
	$(BIN)/python -m pytest tests/bench

test-python: $(SETUP)  ## the other Pythons: install and torch-free tests
	$(BIN)/python -m pytest tests/install

bench: $(SETUP)  ## Marvec beside its peers, all of it: hours
	$(BIN)/python -m bench run
	$(BIN)/python -m bench run --model large --corpora mixed --rounds 2
	for measurement in engine cold-start memory json scaling soak; do $(BIN)/python -m bench $$measurement || exit 1; done

bench-quick: $(SETUP)  ## Marvec beside two peers, under four minutes
	$(BIN)/python -m bench quick

lock: $(SETUP)  ## pin anew, with hashes, what images and prebuilt containers get
	$(PIP) uv==0.13.9
	$(LOCK) base.in --python-version 3.11 --constraint ../../requirements/constraints.txt --output-file base-py311.txt
	$(LOCK) server.in --python-version 3.11 --constraint ../../requirements/constraints.txt --output-file server-py311.txt
	$(LOCK) server.in --python-version 3.9 --constraint ../../requirements/python3.9.txt --output-file server-py39.txt
	$(LOCK) prebuilt.in --no-deps --python-version 3.9 --constraint ../../requirements/python3.9.txt --output-file prebuilt-py39.txt

clean:  ## remove .venv, caches and packed archives
	rm -rf $(VENV) build *.egg-info handler/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	rm -rf model_store/*.mar model_store/*.vertex
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

model_store/minilm.mar: $(SETUP) $(PACKED)
	@model="$$($(BIN)/python -m demo minilm)" && $(BIN)/marvec pack "$$model" --name minilm

$(SETUP): setup.cfg pyproject.toml requirements/constraints.txt | $(BIN)/python
	@echo 'Installing $(TORCH) and the other pinned packages into $(VENV): minutes the first time.'
	@$(PIP) $(TORCH) $(if $(MARVEC_TORCH_INDEX),--index-url $(MARVEC_TORCH_INDEX))
	@$(PIP) --constraint requirements/constraints.txt --editable '.[dev]'
	@touch $@

# A name on PATH may be a shim that leads nowhere, and a distribution's Python may lack venv: so each one is tried.
$(BIN)/python:
	@for candidate in $(or $(PYTHON),python3.11 python3.12 python3.10 python3 python); do \
	    if $$candidate -c 'import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; \
	    then exec $$candidate -m venv $(VENV); fi; \
	done; \
	echo 'make: no Python 3.10, 3.11 or 3.12 with the venv module found; name one: make PYTHON=/path/to/python3.11' >&2; exit 1
