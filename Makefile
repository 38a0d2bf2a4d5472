# Everything from a fresh clone: `make demo`, `make web`, `make test`, `make dist`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --quiet --disable-pip-version-check
DEMO   := $(VENV)/demo-ready
DEV    := $(VENV)/dev-ready
TWINE  := $(VENV)/twine/bin

.PHONY: demo web dev test test-examples test-flower test-paper test-wheel lint types unit numbers docs bench fuzz wheel dist clean

demo: $(DEMO)
	rm -rf runs/demo
	$(BIN)/fedvote run quickstart --out runs/demo
	@echo "open in a browser: file://$(CURDIR)/runs/demo/report.html"
	@echo "to draw digits in a page and have this network read them: make web"

# the demo's network in a page that runs it
web: $(DEMO)
	test -e runs/demo/network.safetensors || $(MAKE) demo
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[onnx]'
	$(BIN)/fedvote export runs/demo --to web --test

# every extra and every checker, into the same environment
dev: $(DEV)

test: lint types unit

# the examples and pages that start several programs: a minute
test-examples: $(DEV)
	$(BIN)/pytest -m slow --numprocesses auto --maxprocesses 2 tests/test_examples.py tests/test_pages.py

# real servers and clients as separate programs, over TLS: some minutes
test-flower: $(DEV)
	$(BIN)/pytest -m slow --numprocesses 2 --dist loadgroup --durations=5 tests/engines/flower

# every figure and table of the paper, on small data: some minutes
test-paper: $(DEV)
	$(BIN)/pytest -m slow --numprocesses auto tests/studies

# what `make dist` built, in an environment with nothing else: a minute or two
test-wheel: $(DEV) dist
	$(BIN)/pytest -m slow tests/test_wheel.py

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

unit: $(DEV)
	$(BIN)/pytest --numprocesses auto --maxprocesses 8 --dist worksteal --durations=10

# write the numbers of the result files into the pages; `make test` checks that they agree
numbers: $(DEV)
	$(BIN)/python docs/measured.py

# the documentation site, build/site/index.html: a warning is an error
docs: $(DEV)
	rm -rf build/site
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto -c docs -d build/pages . build/site
	$(BIN)/pytest -m slow tests/test_site.py
	@echo "open in a browser: file://$(CURDIR)/build/site/index.html"

bench: $(DEV)
	$(BIN)/fedvote bench codec
	$(BIN)/fedvote bench tally

fuzz: $(DEV)
	$(BIN)/python -m tests.codecs.fuzz --frames 1000000

# build/ goes first: setuptools would pack files that have left the sources since
wheel: $(DEMO)
	rm -rf build dist
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' >/dev/null

# a wheel and a source archive that a package index would take
dist: wheel $(TWINE)/twine
	$(TWINE)/twine check --strict dist/*

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch goes first, at the version pinned: a range would let pip take a build with several gigabytes of CUDA.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt torch setuptools
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable .
	touch $@

# in an environment of its own: Flower needs an older `packaging`
$(TWINE)/twine: $(DEMO)
	$(PYTHON) -m venv $(VENV)/twine
	$(TWINE)/pip --quiet --disable-pip-version-check install twine==7.0.0

$(DEV): $(DEMO)
	$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $@
