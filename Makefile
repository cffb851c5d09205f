# make demo   sets up and audits four simulated editors, offline; ends with the path of a report
# make test   sets up and runs every check and test
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check bench clean

demo: .venv/base
	$(BIN)/evenedit demo --out demo

test: check
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/dev
	$(BIN)/python -m bench

.venv/base: pyproject.toml constraints.txt
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/dev: .venv/base
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv demo
