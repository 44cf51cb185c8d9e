# `make lab` and `make test` are all you need; `make` alone lists the rest.

VENV        ?= .venv
# Exact versions that the tests were run with. `make test CONSTRAINTS=` takes the newest of everything instead.
CONSTRAINTS ?= binder/constraints.txt
# Options of JupyterLab, for example  make lab LAB="--no-browser --port 8899"
LAB         ?=
# Options of the web page, for example  make app APP="--port 8899 --visitors 25"
APP         ?=
# `make lite OFFLINE=1` puts everything that the browser needs into the folder of the site.
OFFLINE     ?=
# Options of the paper's experiments, for example  make paper PAPER="--fast"
PAPER       ?=
# Processes that share the tests, and how often they are run under load:  make test-under-load TIMES=5 WORKERS=4
WORKERS     ?= 2
TIMES       ?= 1

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
HELP    := { echo "make: pip could not install the packages: is there a network? If it finds no version for your Python," \
             "let it choose:  make $(MAKECMDGOALS) CONSTRAINTS=" >&2; exit 1; }
# Matplotlib looks for fonts when it is first imported and says so: once here, not in a notebook's output.
FONTS   := $(BIN)/python -c "import matplotlib.font_manager" 2>/dev/null
PYTEST  := $(BIN)/python -m pytest
# Without the plugin for notebooks, which takes seconds to load in each process.
UNIT    := $(PYTEST) -q -p no:nbval
# The tests of most files share a page, so each goes to one process, which has a server and a browser of its own.
BROWSE  := $(UNIT) tests/browser -n $(WORKERS) --dist loadgroup
SANITIZE := tests/nbval_sanitize.cfg
SITE     := artefacts/lite

# Compiled Python files are kept, whatever the surroundings say: hundreds of processes load them anew.
unexport PYTHONDONTWRITEBYTECODE

# A stamp is newer than what it was made from, so a second run installs nothing.
LAB_STAMP     := $(VENV)/.installed-lab
TEST_STAMP    := $(VENV)/.installed-test
BENCH_STAMP   := $(VENV)/.installed-bench
BROWSER_STAMP := $(VENV)/.installed-browser

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help lab app test compile fast lint types docs unit notebooks browser layout binder test-under-load nightly audit bench rates visitors paper outputs links
.PHONY: lite lite-serve lite-test format clean oldest prereleases packages pages archive release notes tagged address

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lab: $(LAB_STAMP) ## set everything up and open JupyterLab on the first tutorial
	$(BIN)/ewens-widgets lab --directory notebooks $(LAB)

app: $(LAB_STAMP) ## set everything up and serve the Explorer as a web page
	$(BIN)/ewens-widgets app $(APP)

# First what uses one processor, two at a time: the tests after it find machine code. The rest uses all processors.
test: $(TEST_STAMP) ## install what tests need and run everything that CI runs
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint compile types docs binder
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory notebooks
	@$(MAKE) --no-print-directory browser

compile: $(TEST_STAMP) ## compile the sampler
	$(BIN)/ewens-widgets compile

fast: $(TEST_STAMP) ## only the fast tests, in parallel
	$(UNIT) -n $(WORKERS) --dist worksteal -m "not slow and not browser and not timing and not nightly"

lint: $(TEST_STAMP) ## check style, formatting, spelling and language
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell -D - -D scripts/american.txt
	$(BIN)/python scripts/check_words.py

types: $(TEST_STAMP) ## check types
	$(BIN)/mypy

docs: $(TEST_STAMP) ## build the documents and the reference; a broken reference is an error
	@rm -rf docs/reference docs/notebooks  # generated; names that are gone would be reported
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs artefacts/docs

unit: $(TEST_STAMP) ## all tests that need no browser, the slow ones too
	$(UNIT) -n $(WORKERS) --dist worksteal -m "not browser and not timing and not nightly"
	$(UNIT) -m "timing and not browser"

notebooks: $(TEST_STAMP) ## run every notebook and compare its outputs with the stored ones
	$(PYTEST) -q -n $(WORKERS) --dist loadfile --nbval --nbval-sanitize-with $(SANITIZE) notebooks

browser: $(TEST_STAMP) $(BROWSER_STAMP) ## drive JupyterLab, and the site without a server, in a real browser
	$(BROWSE) -m "browser and not lite and not nightly"

layout: $(TEST_STAMP) $(BROWSER_STAMP) ## of these, only the search for overlaps, cut text and empty space, at three sizes and in both themes
	$(BROWSE) -m layout

binder: $(TEST_STAMP) ## make an environment from binder/ alone and run the quickstart in it
	scripts/check_binder.sh $(VENV)

# Ctrl-C ends the busy processes too.
test-under-load: $(TEST_STAMP) ## the tests that need no browser, beside two busy processes: none may depend on luck
	@busy=; trap 'kill $$busy' EXIT; for one in 1 2; do $(BIN)/python -c "while True: pass" & busy="$$busy $$!"; done; \
	for time in $$(seq $(TIMES)); do $(MAKE) --no-print-directory unit || exit; done

nightly: $(TEST_STAMP) $(BROWSER_STAMP) ## the long proofs, large fuzzing, and every tutorial on the site without a server
	$(UNIT) -n $(WORKERS) --dist worksteal -m nightly
	@$(MAKE) --no-print-directory lite-test

OLDEST := .venv-oldest
artefacts/oldest.txt: pyproject.toml scripts/oldest.py
	@mkdir -p artefacts && python3 scripts/oldest.py > $@

# Compiled first: no test is to wait for the compiler until its time is over.
oldest: artefacts/oldest.txt ## the fast tests with the oldest versions that pyproject.toml allows, in an environment of their own
	@$(MAKE) --no-print-directory compile VENV=$(OLDEST) CONSTRAINTS=$<
	@$(MAKE) --no-print-directory fast VENV=$(OLDEST) CONSTRAINTS=$<

NEXT := .venv-next
prereleases: ## the fast tests with the newest versions of everything, pre-releases too
	@$(MAKE) --no-print-directory $(NEXT)/bin/python VENV=$(NEXT)
	$(NEXT)/bin/python -m pip install --quiet --pre --upgrade --upgrade-strategy eager --editable ".[test]"
	$(NEXT)/bin/ewens-widgets compile
	$(NEXT)/bin/python -m pytest -q -p no:nbval -n $(WORKERS) --dist worksteal -m "not slow and not browser and not timing and not nightly"

packages: $(TEST_STAMP) ## build wheel and source archive into dist/, check them, and try each in a clean environment
	scripts/check_packages.sh $(VENV)

pages: ## put documents and browser site together as they are published, in artefacts/pages, and check their links
	@test -f artefacts/docs/index.html && test -f $(SITE)/index.html || { echo "make: build both first:  make docs lite" >&2; exit 1; }
	rm -rf artefacts/pages && cp -r artefacts/docs artefacts/pages && cp -r $(SITE) artefacts/pages/try
	python3 scripts/check_links.py --site artefacts/pages

release: $(TEST_STAMP) ## make release VERSION=0.2.0: version, changelog, packages, all checked; the tag is left to you
	$(BIN)/python scripts/release.py prepare "$(VERSION)"
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory packages
	@$(MAKE) --no-print-directory notes
	@echo "Look at 'git diff', commit, then:  git tag -s v$(VERSION) && git push origin main v$(VERSION)"

notes: $(TEST_STAMP) ## what the changelog says about this version, in artefacts/notes.md
	@mkdir -p artefacts && $(BIN)/python scripts/release.py notes > artefacts/notes.md

tagged: ## make tagged TAG=v0.2.0: fail unless the tag fits version and changelog
	@python3 scripts/release.py tagged "$(TAG)"

address: ## make address OWNER=name: the account that hosts the project, wherever its name stands
	@python3 scripts/address.py $(OWNER)

audit: $(TEST_STAMP) ## ask the package index about vulnerabilities of the pinned versions; needs a network
	@$(PIP) pip-audit
	$(BIN)/pip-audit --disable-pip --no-deps --requirement binder/constraints.txt

links: $(TEST_STAMP) ## check the links to other sites too; needs a network
	$(BIN)/python scripts/check_links.py --external

lite: $(TEST_STAMP) ## build the site that runs in the browser, without a server; OFFLINE=1: without the web too
	$(BIN)/python -m browser_site.build $(SITE) $(if $(OFFLINE),--offline)

archive: ## the site with everything in its folder, as releases have it: artefacts/ewens_widgets-site.zip
	@$(MAKE) --no-print-directory lite OFFLINE=1
	cd artefacts && python3 -m zipfile -c ewens_widgets-site.zip lite

lite-serve: $(TEST_STAMP) ## serve that site on this computer, and open it
	@test -f $(SITE)/serve.py || { echo "make: there is no site yet; build it:  make lite" >&2; exit 1; }
	$(BIN)/python $(SITE)/serve.py

lite-test: $(TEST_STAMP) $(BROWSER_STAMP) ## run every tutorial and lab in a browser that reaches no other address
	$(PYTEST) -q tests/browser/test_lite*.py

bench: $(BENCH_STAMP) ## run the benchmarks
	EWENS_WIDGETS_WAIT=1 $(PYTEST) benchmarks --benchmark-only

rates: $(BENCH_STAMP) ## print how fast the sampler is; on an otherwise idle machine
	EWENS_WIDGETS_WAIT=1 $(BIN)/python benchmarks/sampler_rates.py

visitors: $(TEST_STAMP) $(BROWSER_STAMP) ## measure the web page with ten visitors; on an otherwise idle machine
	$(BIN)/python benchmarks/app_visitors.py

paper: $(TEST_STAMP) ## run the paper's experiments, other methods and simulations; tables and figures go to artefacts/paper
	$(BIN)/ewens-widgets paper --output artefacts/paper $(PAPER)
	$(BIN)/python benchmarks/other_methods.py artefacts/paper > artefacts/paper/others.md
	$(BIN)/python benchmarks/simulations.py > artefacts/paper/simulations.md

outputs: $(TEST_STAMP) ## run every notebook and store its outputs anew
	$(BIN)/jupyter nbconvert --log-level=ERROR --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False --ExecutePreprocessor.store_widget_state=False notebooks/*.ipynb
	$(BIN)/python scripts/tidy_outputs.py notebooks/*.ipynb

format: $(TEST_STAMP) ## put the code in the project's format and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove the environment, caches and everything built
	rm -rf $(VENV) $(OLDEST) $(NEXT) artefacts build dist docs/reference docs/notebooks .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@scripts/make_venv.sh $(VENV)

$(LAB_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing ewens_widgets and JupyterLab (a few minutes the first time)"
	@$(PIP) --editable ".[lab,arviz,dask]" || $(HELP)
	@$(FONTS)
	@touch $@

$(TEST_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing ewens_widgets and what its tests need (a few minutes the first time)"
	@$(PIP) --editable ".[test]" || $(HELP)
	@$(FONTS)
	@touch $@ $(LAB_STAMP)

$(BENCH_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing ewens_widgets and what its benchmarks need"
	@$(PIP) --editable ".[bench]" || $(HELP)
	@touch $@

$(BROWSER_STAMP): $(TEST_STAMP)
	@scripts/install_browser.sh $(VENV) $@
