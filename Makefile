# Two commands matter to a newcomer: `make demo` and `make test`. Both set up what they need.

PY := .venv/bin/python
SETUP := .venv/.ready

# Tests start hundreds of processes. Without compiled modules, each spends its first second on compiling them.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full bench lint format lock clean

help: ## what can be done here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP) ## .venv with everything pinned, and Java 17+ (done by the others when needed)

$(SETUP): scripts/setup pyproject.toml $(wildcard requirements/*.txt)
	@scripts/setup

demo: $(SETUP) ## show what Restow does
	@$(PY) scripts/demo.py

# A file of tests stays in one process. Those with brokers wait for them more than they compute.
PYTEST := $(PY) -m pytest --dist loadfile --no-loadscope-reorder --durations 10 -n

test: $(SETUP) ## fast tests first, then those with a JVM and a real broker
	@$(PYTEST) $(or $(TESTERS),2) -m "not full" tests/tidy tests/unit tests/sim tests/conformance
	@$(PYTEST) $(or $(TESTERS),3) -m "not full" tests/oracle tests/clients tests/apache tests/spark tests/faults tests/browser

test-full: $(SETUP) ## every case of the long matrices too, random ones from a new seed (RESTOW_SEED=…)
	@RESTOW_CASES=2000 RESTOW_SEED=$${RESTOW_SEED:-$$($(PY) -c 'import secrets; print(secrets.randbelow(10**9) + 1)')} $(PYTEST) $(or $(TESTERS),2) tests

bench: $(SETUP) ## ours, the peer's and the ratio, from one run
	@$(PY) -m benchmarks.placement $(BENCH)
	@$(PY) -m benchmarks.assignors $(BENCH)
	@$(PY) -m benchmarks.groups $(BENCH)
	@$(PY) -m benchmarks.wire $(BENCH)
	@$(PY) -m benchmarks.log $(BENCH)
	@$(PY) -m benchmarks.cluster $(BENCH)
	@$(PY) -m benchmarks.reassign $(BENCH)
	@$(PY) -m benchmarks.plan $(BENCH)
	@$(PY) -m benchmarks.execute $(BENCH)
	@$(PY) -m benchmarks.rehearse $(BENCH)
	@$(PY) -m benchmarks.pipeline $(BENCH)
	@$(PY) -m benchmarks.simulate $(BENCH)

lint: $(SETUP) ## ruff, mypy, import contracts
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

format: $(SETUP) ## let ruff put the code in shape
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

LOCK := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(LOCK_ARGS)

lock: $(SETUP) ## pin the dependencies anew (LOCK_ARGS=--upgrade to move them)
	@$(LOCK) --group build --output-file requirements/build.txt
	@$(LOCK) pyproject.toml --output-file requirements/runtime.txt
	@$(LOCK) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	@echo 'pyspark==4.0.2' | $(LOCK) - --output-file requirements/spark-4.0.txt
	@echo 'gssapi==1.12.0' | $(LOCK) - --output-file requirements/gssapi.txt
	@echo 'botocore==1.44.5' | $(LOCK) - --output-file requirements/botocore.txt
	@echo 'cython==3.3.0' | $(LOCK) - --output-file requirements/cython.txt

clean: ## remove .venv and caches of this checkout (not the jars in the user's cache)
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
