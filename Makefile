# One task runner. `make` lists the targets; each of them sets up what it needs.
# Needed beforehand: Python 3.11+, Java 17+ and make. Everything else lives in .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.ready
JOBS  ?= 2
ARGS  ?=

# A version manager may put names on the PATH that do not run, so each candidate is tried, not just looked up.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start a hundred processes: each of them would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## make .venv from the hash-locked requirements

$(STAMP): requirements/build.txt requirements/dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "error: no Python 3.11 or newer with venv was found" >&2; \
		echo "  hint: install one (Debian: apt-get install python3 python3-venv), or run make PYTHON=/path/to/python3" >&2; \
		exit 1; fi
	@if ! $(PYTHON) -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "error: $(PYTHON) ($$($(PYTHON) -V 2>&1)) is no Python 3.11 or newer with venv" >&2; \
		echo "  hint: run make PYTHON=/path/to/a/newer/python3" >&2; \
		exit 1; fi
	@echo "setting up $(VENV) with $$($(PYTHON) -V); the first time takes a few minutes" >&2
	@$(BIN)/python -c '' 2>/dev/null || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install -q --require-hashes --only-binary :all: -r requirements/build.txt
	@$(BIN)/python -m pip install -q --require-hashes --no-build-isolation -r requirements/dev.txt
	@HEADWATER_SHIP_KERNELS=0 $(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@$(BIN)/headwater warm
	@touch $@

# Without a JAVA_HOME a test that starts a JVM all the same fails: it lacks the mark `spark`.
.PHONY: quick
quick: $(STAMP) ## run the short tests that need no Spark, no JVM and no S3 server
	@JAVA_HOME=/nonexistent $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not long and not spark and not s3 and not cloud and not interop" $(ARGS)

.PHONY: test
test: $(STAMP) ## run the tests (JOBS=2, ARGS="tests/lake -k merge")
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)
ifeq ($(ARGS),)
	@$(MAKE) --no-print-directory test-lake-s3
endif

.PHONY: test-lake-s3
test-lake-s3: $(STAMP) ## run the tests of the lake, of SQL and of search with the lake on a real S3 server
	@HEADWATER_TEST_STORAGE=s3 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not interop" $(or $(ARGS),tests/lake tests/query tests/search)

.PHONY: test-s3
test-s3: $(STAMP) test-lake-s3 ## run all tests that use a real S3 server
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m s3 $(ARGS)

# Node (Azurite, from npm) and Go (fake-gcs-server) are needed; the emulators are installed once, outside of the repository, and only here: other
# targets run the tests in tests/cloud where they find them. What cannot be installed is reported, and its tests are skipped.
CLOUD_TESTS := tests/s3/test_operations.py tests/s3/test_errors.py tests/s3/test_races.py tests/derived/test_contract_on_s3.py \
	tests/incremental/views/test_s3.py tests/lake_spark/test_s3.py tests/lake tests/query tests/search

.PHONY: test-cloud
test-cloud: $(STAMP) ## run the tests of the lake, SQL, search and everything derived on emulators of Azure and Google Cloud
	-@$(BIN)/python -m headwater.testing.server_tools
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m cloud tests/cloud
	@for cloud in azure gcs; do \
		HEADWATER_TEST_STORAGE=$$cloud $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not interop" $(or $(ARGS),$(CLOUD_TESTS)); done

# A second environment with the newest Spark: its own pyspark, and everything else out of .venv. Delta's JVM reader has no release for it,
# so the everyday tests stay on the Spark before.
NEWEST := .venv-4.3
NEWEST_TESTS := tests/sql/analyzed tests/spark_session tests/timeseries/test_opening.py tests/timeseries/test_on_spark.py \
	tests/timeseries/test_asof.py tests/timeseries/test_window_laid.py tests/incremental/views/test_definitions.py tests/incremental/views/test_spark_reader.py

$(NEWEST)/.ready: $(STAMP) requirements/spark-4.3.txt
	@echo "setting up $(NEWEST): pyspark 4.3 is built once" >&2
	@rm -rf $(NEWEST) && $(BIN)/python -m venv $(NEWEST)
	@$(NEWEST)/bin/python -m pip install -q --require-hashes --only-binary :all: -r requirements/build.txt
	@$(NEWEST)/bin/python -m pip install -q --require-hashes --no-build-isolation -r requirements/spark-4.3.txt
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$($(NEWEST)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/everything_else.pth"
	@touch $@

.PHONY: test-43
test-43: $(NEWEST)/.ready ## run the tests of both readers' plans, and some more, on Spark 4.3
	@$(NEWEST)/bin/python -c 'import pyspark, sys; v = pyspark.__version__; print("on pyspark", v); sys.exit(not v.startswith("4.3."))'
	@$(NEWEST)/bin/python -m pytest -n $(JOBS) --dist loadfile -m "not interop" $(or $(ARGS),$(NEWEST_TESTS))

# A third environment: Feast, which holds some packages back, and everything else out of .venv. What both have is the same version.
FEAST := .venv-feast

$(FEAST)/.ready: $(STAMP) requirements/feast.txt
	@echo "setting up $(FEAST)" >&2
	@rm -rf $(FEAST) && $(BIN)/python -m venv $(FEAST)
	@$(FEAST)/bin/python -m pip install -q --require-hashes --only-binary :all: -r requirements/feast.txt
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$($(FEAST)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/everything_else.pth"
	@touch $@

.PHONY: test-feast
test-feast: $(FEAST)/.ready ## run the tests of the online store for Feast, with Feast
	@$(FEAST)/bin/python -c 'import feast, sys; v = feast.__version__; print("on feast", v); sys.exit(not v.startswith("0.67."))'
	@$(FEAST)/bin/python -m pytest $(or $(ARGS),tests/serving/feast)

# A fourth one: dbt, for the adapter.
DBT := .venv-dbt

$(DBT)/.ready: $(STAMP) requirements/dbt.txt
	@echo "setting up $(DBT)" >&2
	@rm -rf $(DBT) && $(BIN)/python -m venv $(DBT)
	@$(DBT)/bin/python -m pip install -q --require-hashes --only-binary :all: --no-deps -r requirements/dbt.txt
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> "$$($(DBT)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/everything_else.pth"
	@touch $@

.PHONY: test-dbt
test-dbt: $(DBT)/.ready ## run the tests of the adapter for dbt, with dbt
	@$(DBT)/bin/python -c 'from dbt.version import __version__ as v; import sys; print("on dbt-core", v); sys.exit(not v.startswith("1.11."))'
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(DBT)/bin/python -m pytest $(or $(ARGS),tests/dbt_adapter)

# Each of them once; `make soak` has them with all other tests, and with larger amounts.
.PHONY: test-slow
test-slow: $(STAMP) ## run the tests that `make test` leaves out: all of the matrix with delta-spark, all benchmarks, long histories
	@HEADWATER_TEST_KILLS=$(or $(KILLS),50) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --slow -m slow $(ARGS)

# STEPS is the length of a random history and SEEDS how many there are: the defaults are 242,000 steps of random views and more than
# 200,000 of circuits' operators, each compared with DuckDB. KILLS is how often each process that writes is killed, and FUZZ how often each
# kind of file is garbled.
.PHONY: soak
soak: $(STAMP) ## run the long tests: EXAMPLES=500 STEPS=220 SEEDS=20 KILLS=1000 FUZZ=500
	@HYPOTHESIS_PROFILE=long HEADWATER_TEST_EXAMPLES=$(or $(EXAMPLES),500) HEADWATER_TEST_STEPS=$(or $(STEPS),220) \
		HEADWATER_TEST_SEEDS=$(or $(SEEDS),20) HEADWATER_TEST_KILLS=$(or $(KILLS),1000) \
		HEADWATER_TEST_FUZZ=$(or $(FUZZ),500) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --slow $(ARGS)

.PHONY: lint
lint: $(STAMP) ## check style, types and who imports whom
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

.PHONY: format
format: $(STAMP) ## rewrite the code in the house format
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

.PHONY: demo
demo: $(STAMP) ## tell the story on a small lake, offline
	@$(BIN)/headwater demo $(ARGS)

.PHONY: bench
bench: $(STAMP) ## measure against named peers (ARGS=... goes to the benchmark)
	@$(BIN)/python -m benchmarks $(ARGS)

# Its packages in an environment of their own: they are needed for nothing else.
DOCS := .venv-docs

$(DOCS)/.ready: requirements/docs.txt
	@echo "setting up $(DOCS)" >&2
	@rm -rf $(DOCS) && $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install -q --require-hashes --only-binary :all: -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: $(DOCS)/.ready ## build the site into build/site: guides, reference, comparisons
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build -q
	@echo "open build/site/index.html (to search it, too: $(DOCS)/bin/python -m http.server -d build/site --bind 127.0.0.1)"

.PHONY: wheel
wheel: $(STAMP) ## build dist/*.whl with the machine code of the kernels, for this Python and platform
	@rm -rf build dist
	@$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .
	@ls -l dist

.PHONY: lock
lock: $(STAMP) ## renew the lock files with their hashes
	@$(BIN)/uv pip compile -q --upgrade --generate-hashes --universal --no-emit-index-url --no-annotate \
		--custom-compile-command 'make lock' --python-version 3.11 --extra dev \
		-c requirements/constraints.txt pyproject.toml -o requirements/dev.txt
	@printf 'setuptools\nwheel\n' | $(BIN)/uv pip compile -q --generate-hashes --universal --no-emit-index-url \
		--no-annotate --custom-compile-command 'make lock' --python-version 3.11 \
		-c requirements/dev.txt - -o requirements/build.txt
	@printf 'pyspark>=4.3,<4.4\n' | $(BIN)/uv pip compile -q --upgrade --generate-hashes --universal --no-emit-index-url \
		--no-annotate --custom-compile-command 'make lock' --python-version 3.11 - -o requirements/spark-4.3.txt
	@printf 'feast>=0.67,<0.68\n' | $(BIN)/uv pip compile -q --upgrade --generate-hashes --universal --no-emit-index-url \
		--no-annotate --custom-compile-command 'make lock' --python-version 3.11 \
		-c <(sed -nE 's/^((numpy|pandas|pyarrow|pydantic|starlette|uvicorn)==.*) \\$$/\1/p' requirements/dev.txt) - -o requirements/feast.txt
	@printf 'dbt-core>=1.11,<1.12\n' | $(BIN)/uv pip compile -q --upgrade --generate-hashes --universal --no-emit-index-url \
		--no-annotate --custom-compile-command 'make lock' --python-version 3.11 \
		-c <(sed -nE 's/^((pydantic|pyyaml|sqlglot|typing-extensions)==.*) \\$$/\1/p' requirements/dev.txt) - -o requirements/dbt.txt
	@printf 'mkdocs-material>=9.8,<10\nmkdocstrings[python]>=1.0\n' | $(BIN)/uv pip compile -q --upgrade --generate-hashes --universal \
		--no-emit-index-url --no-annotate --custom-compile-command 'make lock' --python-version 3.11 - -o requirements/docs.txt

.PHONY: clean
clean: ## remove .venv and everything that was built
	@rm -rf $(VENV) $(NEWEST) $(FEAST) $(DBT) $(DOCS) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis src/*.egg-info
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
