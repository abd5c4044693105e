# Everything one does with this tree; `make help` lists it. The targets install what they need (tools/bootstrap) into
# .venv and, on Debian and Ubuntu, with apt-get. BOOTSTRAP=0 installs nothing and uses the tools and the Python that are
# here: for machines without package registries.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= python3
BOOTSTRAP ?= 1
JOBS ?= $(shell nproc)
PYTEST_ARGS ?=
# Of tools/gpu_session.sh: `make gpu-test GPU_STAGES="build test"` runs the tests alone.
GPU_STAGES ?= all
FUZZ_SECONDS ?= 60
export PYTHON PYTEST_ARGS

ifeq ($(BOOTSTRAP),1)
  PY := $(CURDIR)/.venv/bin/python
  bootstrap = tools/bootstrap $(1)
  export PATH := $(CURDIR)/.venv/bin:$(PATH)
else
  PY := $(PYTHON)
  bootstrap = true
endif

CPP_SOURCES = $(shell git ls-files 'csrc/*.h' 'csrc/*.cc' 'tests/*.h' 'tests/*.cc' 'benchmarks/*.cc' 'tools/*.h' 'tools/*.cc')

.PHONY: help demo build install test test-full gpu-test bench lint format fuzz clean \
        bootstrap-build bootstrap-test bootstrap-lint bootstrap-fuzz $(addprefix cpp-,release asan tsan)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | \
	  while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

demo: install ## build gpuperf, record a small job (or, without a GPU, replay a recorded one) and show the report
	@$(PY) tools/demo.py

build: cpp-release ## build everything, with tests, in build/release

install: bootstrap-build ## build and install gpuperf into .venv
	@echo "building and installing gpuperf (a minute or two the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
	  --config-settings=build-dir=build/wheel .

test: bootstrap-test ## the test suite: C++ plain, with ASan+UBSan and with TSan, then Python; no GPU needed
	$(MAKE) cpp-release cpp-asan cpp-tsan install
	ctest --preset release
	ctest --preset asan
	ctest --preset tsan
	$(PY) -m pytest -m 'not long' $(PYTEST_ARGS)

test-full: bootstrap-test ## the test suite with its long tests
	$(MAKE) test
	$(PY) -m pytest -m long $(PYTEST_ARGS)

gpu-test: ## the tests and benchmarks that need a real GPU, with a PYTHON that has torch; writes docs/verification.md
	status=0; PATH="$${PATH#$(CURDIR)/.venv/bin:}" tools/gpu_session.sh build/gpu-session $(GPU_STAGES) || status=$$?; \
	  cp build/gpu-session/verification.md docs/verification.md; exit $$status

bench: bootstrap-test ## measure all that this machine can measure, as one table
	$(MAKE) cpp-release install
	$(PY) benchmarks/run.py

lint: bootstrap-lint ## clang-format, clang-tidy, ruff, mypy
	clang-format --dry-run --Werror $(CPP_SOURCES)
	ruff check .
	ruff format --check .
	mypy
	cmake --preset release -B build/lint -DGPUPERF_PYTHON=ON >/dev/null
	cmake --build build/lint --target gpuperf_proto
	tools/run_clang_tidy build/lint $(JOBS)

format: bootstrap-lint ## let clang-format and ruff rewrite the sources
	clang-format -i $(CPP_SOURCES)
	ruff format .
	ruff check --fix .

fuzz: bootstrap-fuzz ## feed the reader broken files for FUZZ_SECONDS (default 60)
	cmake --preset fuzz >/dev/null
	cmake --build --preset fuzz -j $(JOBS) --target reader_fuzz
	mkdir -p build/fuzz/corpus
	build/fuzz/tests/fuzz/reader_fuzz -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/data/golden tests/fuzz/seeds

clean: ## remove all that was built (not .venv)
	rm -rf build dist

bootstrap-build bootstrap-test bootstrap-lint bootstrap-fuzz: bootstrap-%:
	@$(call bootstrap,$*)

cpp-release cpp-asan cpp-tsan: cpp-%:
	mkdir -p build
	cmake --preset $* $(CMAKE_ARGS) >build/$*.configure.log || { cat build/$*.configure.log; exit 1; }
	cmake --build --preset $* -j $(JOBS)
