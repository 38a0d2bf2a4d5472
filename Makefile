# Everything from a fresh clone: `make demo`, `make test`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

.PHONY: demo test test-flower lint types unit bench fuzz clean

demo: $(READY)
	rm -rf runs/demo
	$(BIN)/fedvote run quickstart --out runs/demo

test: lint types unit

# real servers and clients as separate programs, over TLS: some minutes
test-flower: $(READY)
	$(BIN)/pytest -m slow --durations=5 tests/engines/flower

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/pytest --numprocesses auto --maxprocesses 8 --durations=10

bench: $(READY)
	$(BIN)/fedvote bench codec
	$(BIN)/fedvote bench tally

fuzz: $(READY)
	$(BIN)/python -m tests.codecs.fuzz --frames 1000000

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch goes first, at the version pinned: a range would let pip take a build with several gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch setuptools
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $@
