# make demo      sets up and audits four simulated editors, offline; ends with the path of a report
# make test      sets up and runs every check and test
# make docs      sets up and builds the documentation as a site, into site/
# make wheel     sets up and builds the wheel, into dist/
# make validate  sets up and runs the large versions of some tests; writes their tables into docs/validation
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check docs wheel bench validate clean

demo: .venv/base
	$(BIN)/evenedit demo --out demo

test: check
	$(BIN)/python -m compileall -q src  # or each of some hundred processes would compile it anew
	$(BIN)/pytest --numprocesses 2 --dist loadgroup --no-loadscope-reorder

check: .venv/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/code_lines.py

docs: .venv/dev
	$(BIN)/mkdocs build --strict

wheel: .venv/dev
	$(BIN)/python -m hatchling build --target wheel

bench: .venv/dev
	$(BIN)/python -m bench

validate: .venv/dev
	EVENEDIT_TESTS=full $(BIN)/pytest -m slow
	$(BIN)/python -m validation

.venv/base: pyproject.toml constraints.txt
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	$(BIN)/python -m compileall -q src  # or the demo's five processes would each compile it anew
	touch $@

.venv/dev: .venv/base
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv demo site dist
