# The front door. Everything that is not a prerequisite (Rust by rustup, Go,
# Python 3.11 with venv, a C compiler) is installed from pinned versions into
# .venv/ and .tools/, both ignored by git: `make distclean` forgets it all.
# The Python package is tested on more than one interpreter; where one can't be
# had, what it would have run is skipped and the reason is printed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules

include tools/versions.mk

# Cargo's own variable moves the build elsewhere; the tests and the lab look
# for the binaries where it points.
export CARGO_TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
TOOLS  := $(CURDIR)/.tools
VENV   := $(CURDIR)/.venv
PYTHON := $(VENV)/bin/python
# A pinned tool is found before one of the same name on the machine.
export PATH := $(TOOLS)/bin:$(PATH)

GO_TOOLS  := s5cmd versitygw rclone minio
GO_BINS   := $(GO_TOOLS:%=.tools/bin/%)
LIMIT     := lab/drivers/limit
DOCS      := $(CARGO_TARGET_DIR)/docs
# The peers' drivers are a workspace of their own.
PEERS     := lab/drivers/rust/Cargo.toml
# So are the fuzz targets and the model checker's crate: what they need is nobody else's.
FUZZ      := fuzz/Cargo.toml
MODEL     := model/Cargo.toml
HOST       = $(shell rustc -vV | sed -n 's/^host: //p')
# Seconds for each fuzz target, and for each check of the model.
SECONDS   ?= 10
TEST_DIRS := tests lab/tests
# The Python package, what `make wheels` builds of it, and the places of its environments.
PACKAGE   := python/Cargo.toml
DIST      := $(CARGO_TARGET_DIR)/dist
NEWER     := .tools/newer
THREADED  := .tools/python3.13t
TORCH     := .tools/torch
OTHERS    := $(NEWER) $(THREADED) $(TORCH)
# Servers that are neither Go modules nor Python packages.
SERVERS   := .tools/s3mock/.stamp
# Drivers of the lab's clients that its tests start; one in Java where it can be built.
MATRIX    := minio-go $(if $(shell command -v mvn),java-direct)
# Features that change how the engine is built, each tested in its own pass.
PORTABLE  := $(shell grep -qs '^portable *=' engine/Cargo.toml && echo yes)

.PHONY: help
help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- by hand

.PHONY: demo
demo: release limit release-extension ## build, start the server, move data, print how fast
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.demo

.PHONY: bench
bench: release drivers environments awscli $(GO_BINS) instructions .venv/.stamp ## run the benchmarks and write their records
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.figures

.PHONY: results
results: .venv/.stamp ## write lab/RESULTS.md from the lab's records
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.results

.PHONY: test
test: test-rust test-python test-package test-newer test-threads test-torch ## run every test

.PHONY: check
check: check-rust check-directions check-python check-results check-types check-prose check-deny ## formatting, lints, types, directions, licences, spelling

.PHONY: extension
extension: .venv/.stamp | need-rust ## build the Python package into .venv, for trying it out
	VIRTUAL_ENV=$(VENV) PIP_QUIET=1 $(VENV)/bin/maturin develop --quiet --locked --manifest-path $(PACKAGE)

.PHONY: release-extension
release-extension: .venv/.stamp | need-rust
	VIRTUAL_ENV=$(VENV) PIP_QUIET=1 $(VENV)/bin/maturin develop --release --quiet --locked --manifest-path $(PACKAGE)

# The free-threaded wheel where there is such an interpreter.
.PHONY: wheels
wheels: .venv/.stamp $(THREADED)/.installed | need-rust ## build the Python package's wheels and source distribution, and check them
	rm -rf $(DIST)
	$(VENV)/bin/maturin build --quiet --release --locked --manifest-path $(PACKAGE) --out $(DIST) --interpreter $(PYTHON)
	test -e $(THREADED)/missing || \
	    $(VENV)/bin/maturin build --quiet --release --locked --manifest-path $(PACKAGE) --out $(DIST) --interpreter $(THREADED)/venv/bin/python
	$(VENV)/bin/maturin sdist --manifest-path $(PACKAGE) --out $(DIST)
	cargo build --locked --bins
	PACKAGES=$(DIST) $(PYTHON) -m pytest --timeout 1200 -s python/tests/packaging

.PHONY: faults
faults: | need-rust ## run the fault suite at length: [SCHEDULES=10000] [FIRST_SEED=1] [RECORD=FILE]
	$(if $(RECORD),WIRESPEED_RECORD='$(abspath $(RECORD))') WIRESPEED_SCHEDULES='$(or $(SCHEDULES),10000)' WIRESPEED_FIRST_SEED='$(or $(FIRST_SEED),1)' \
	    cargo test --locked --package wirespeed --test fault_suite -- --nocapture

.PHONY: docs
docs: | need-rust ## write the manual pages and the shells' completions below the build folder
	cargo build --locked --package wirespeed-cli
	$(CARGO_TARGET_DIR)/debug/wirespeed manual --folder $(DOCS)/man1
	mkdir -p $(DOCS)/completions
	for shell in bash elvish fish powershell zsh; do \
	    $(CARGO_TARGET_DIR)/debug/wirespeed completions $$shell >$(DOCS)/completions/wirespeed.$$shell; \
	done
	@echo "written to $(DOCS)"

.PHONY: fmt
fmt: .venv/.stamp | need-rust ## format everything
	cargo fmt --all
	cargo fmt --all --manifest-path $(PEERS)
	cargo fmt --all --manifest-path $(FUZZ)
	cargo fmt --manifest-path $(MODEL)
	$(VENV)/bin/ruff format --quiet .

.PHONY: setup
setup: .venv/.stamp $(GO_BINS) $(SERVERS) .tools/bin/cargo-deny $(OTHERS:%=%/.installed) ## install the pinned tools and nothing else

.PHONY: clean
clean: ## remove what was built
	rm -rf $(CARGO_TARGET_DIR) .demo $(dir $(PEERS))target lab/drivers/go/build
	$(MAKE) -C $(LIMIT) clean

.PHONY: distclean
distclean: clean ## remove what was built and what was installed
	chmod -R u+w .tools 2>/dev/null || true
	rm -rf .venv .tools

.PHONY: conformance
conformance: | need-rust ## check an S3 store: ENDPOINT=URL BUCKET=NAME [ARGS=--own-buckets]
	@test -n "$(BUCKET)" || { echo >&2 'BUCKET=NAME is missing (and ENDPOINT=URL for a store other than AWS)'; exit 2; }
	cargo run --locked --release --package wirespeed-conformance -- \
	    $(if $(ENDPOINT),--endpoint-url '$(ENDPOINT)') --bucket '$(BUCKET)' $(ARGS)

FUZZ_TARGETS  := response_head chunked list xml checksum_headers resume_file
# libFuzzer's view of which branches were taken, by flags that the stable compiler has as well.
FUZZ_COVERAGE := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
# What was found is kept in fuzz/found/, which git ignores; what is worth keeping goes to fuzz/corpus/.
.PHONY: fuzz
fuzz: | need-rust need-cxx ## feed every parser of answers with noise: SECONDS=10 a target
	RUSTFLAGS='$(FUZZ_COVERAGE)' CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/fuzz \
	    cargo build --locked --release --manifest-path $(FUZZ) --target $(HOST)
	@for target in $(FUZZ_TARGETS); do \
	    echo "== fuzz $$target for $(SECONDS) s"; mkdir -p fuzz/found/$$target; \
	    $(CARGO_TARGET_DIR)/fuzz/$(HOST)/release/$$target -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=1024 \
	        -print_final_stats=0 -verbosity=0 -artifact_prefix=fuzz/found/$$target- \
	        fuzz/found/$$target fuzz/corpus/$$target || exit 1; \
	done

.PHONY: miri
miri: | need-rust ## run the tests of the unsafe code under Miri, where it is installed
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	    CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/miri MIRIFLAGS=-Zmiri-disable-isolation \
	    cargo +nightly miri test --locked --package wirespeed --features portable,internals --lib buffer::; \
	else \
	    echo 'the unsafe code was NOT run under Miri: rustup toolchain install nightly --component miri,rust-src'; \
	fi

.PHONY: model
model: | need-rust ## try the orders that threads may run in: SECONDS=10 a check
	CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/model MODEL_SECONDS=$(SECONDS) \
	    cargo run --quiet --locked --manifest-path $(MODEL)

# ---------------------------------------------------------------- builds

.PHONY: release
release: | need-rust
	cargo build --locked --release --bins

.PHONY: limit
limit: | need-cc
	$(MAKE) -C $(LIMIT)

.PHONY: drivers
drivers: | need-rust need-go need-cc
	$(MAKE) -C lab/drivers

# One for each driver in Python, below .tools/; the package as it is released is in one of them.
.PHONY: environments
environments: .venv/.stamp | need-rust
	rm -rf $(CARGO_TARGET_DIR)/bench-wheel
	$(VENV)/bin/maturin build --quiet --release --locked --manifest-path $(PACKAGE) \
	    --out $(CARGO_TARGET_DIR)/bench-wheel --interpreter $(PYTHON)
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.environments --wheel $(CARGO_TARGET_DIR)/bench-wheel/*.whl

# What the lab's clients need, each in a folder of its own; what can't be had is named with the reason.
.PHONY: lab-setup
lab-setup: .venv/.stamp ## make what the lab's clients need: CLIENTS="boto3-get s5cmd", or all of them
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.clients $(CLIENTS)

# A driver in each language for the tests; those in Python and C need no more than the tests themselves. What is built
# without optimisation is not what the lab measures, and lies elsewhere.
.PHONY: lab-matrix
lab-matrix: .venv/.stamp | need-rust
	cd lab/drivers/rust && env -u CARGO_TARGET_DIR cargo build --locked --bin wirespeed-rust
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.clients $(MATRIX)

# AWS CLI 2, for the rows of whole commands; where it can't be had, the reason is printed and its turns are left out.
.PHONY: awscli
awscli: .tools/awscli/.stamp
.tools/awscli/.stamp: tools/awscli.sh tools/awscli-requirements.txt tools/private_apt.sh tools/missing.sh | .venv/.stamp
	tools/awscli.sh .tools/awscli $(PYTHON)
	touch $@

# The same on an interpreter without a lock, in a version of which all that it needs has wheels for that.
.PHONY: awscli-threaded
awscli-threaded: .tools/awscli-threaded/.stamp
.tools/awscli-threaded/.stamp: tools/awscli.sh tools/awscli-threaded-requirements.txt tools/private_apt.sh tools/missing.sh $(THREADED)/.stamp | .venv/.stamp
	tools/awscli.sh .tools/awscli-threaded $(PYTHON) forky awscli-threaded-requirements.txt $(THREADED)
	touch $@

# ---------------------------------------------------------------- tests

# $(call WHERE_IT_IS,FOLDER,WHAT) COMMAND: runs it unless the environment in FOLDER could not be made.
WHERE_IT_IS = if test -e $(1)/missing; then echo "$(2) were NOT run: $$(cat $(1)/missing)"; exit 0; fi;

.PHONY: test-rust
test-rust: | need-rust
	cargo test --locked --no-fail-fast
ifeq ($(PORTABLE),yes)
	cargo test --locked --no-fail-fast -p wirespeed --features portable
endif

.PHONY: test-python
test-python: .venv/.stamp $(GO_BINS) $(SERVERS) lab-matrix | need-rust
	cargo build --locked --bins
	PYTHONPATH=lab $(PYTHON) -m pytest $(TEST_DIRS)

.PHONY: test-package
test-package: extension $(GO_BINS) | need-rust
	cargo build --locked --bins
	$(PYTHON) -m pytest python/tests --ignore python/tests/packaging --ignore python/tests/torch

# The same compiled half on a newer interpreter, which is what abi3 promises.
.PHONY: test-newer
test-newer: extension $(NEWER)/.installed $(GO_BINS) | need-rust
	cargo build --locked --bins
	@$(call WHERE_IT_IS,$(NEWER),the tests on a newer Python) \
	    PYTHONPATH=python $(NEWER)/venv/bin/python -m pytest python/tests/zarr

.PHONY: test-torch
test-torch: extension $(TORCH)/.installed $(GO_BINS) | need-rust
	cargo build --locked --bins
	@$(call WHERE_IT_IS,$(TORCH),the tests with torch) \
	    PYTHONPATH=python $(TORCH)/python -m pytest python/tests/torch

.PHONY: test-threads
test-threads: $(THREADED)/.installed | need-rust
	@$(call WHERE_IT_IS,$(THREADED),the tests without a GIL) $(MAKE) threaded

.PHONY: threaded
threaded:
	cargo build --locked --bins
	rm -rf $(CARGO_TARGET_DIR)/threaded
	$(VENV)/bin/maturin build --quiet --locked --manifest-path $(PACKAGE) --interpreter $(THREADED)/venv/bin/python \
	    --out $(CARGO_TARGET_DIR)/threaded
	$(PIP) --python $(THREADED)/venv/bin/python install --quiet --no-deps --force-reinstall $(CARGO_TARGET_DIR)/threaded/*.whl
	$(THREADED)/venv/bin/python -c 'import sys, wirespeed; assert not sys._is_gil_enabled(), "the import brought the GIL back"'
	$(THREADED)/venv/bin/python -m pytest python/tests/test_threads.py

.PHONY: instructions
instructions: | need-rust
	@if command -v valgrind >/dev/null; then \
	    cargo bench --locked --package wirespeed --features internals --bench instructions; \
	else \
	    echo 'instructions NOT counted: valgrind is missing (Debian: apt-get install valgrind)'; \
	fi

# ---------------------------------------------------------------- checks

.PHONY: check-rust
check-rust: .venv/.stamp | need-rust
	cargo fmt --all --check
	cargo fmt --all --check --manifest-path $(PEERS)
	cargo fmt --all --check --manifest-path $(FUZZ)
	cargo fmt --check --manifest-path $(MODEL)
	PYO3_PYTHON=$(PYTHON) cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --package wirespeed --all-targets --features internals -- -D warnings
	PYO3_PYTHON=$(PYTHON) RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

.PHONY: check-directions
check-directions: .venv/.stamp
	$(PYTHON) tools/directions.py .
	$(PYTHON) -m pytest -q tests/test_directions.py

.PHONY: check-python
check-python: .venv/.stamp
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

# That lab/RESULTS.md is what the records give.
.PHONY: check-results
check-results: .venv/.stamp
	PYTHONPATH=lab $(PYTHON) -m wirespeed_lab.results --check

# What a person's type checker sees of the package, and that it is what the compiled half has.
.PHONY: check-types
check-types: extension
	$(PYTHON) tools/async_stubs.py --check
	$(PYTHON) tools/s3_operations.py --check
	$(PYTHON) tools/s3fs_table.py --check
	$(VENV)/bin/pyright --project python --pythonpath $(PYTHON)
	cd python && $(PYTHON) -m mypy.stubtest --allowlist tests/stubtest.txt wirespeed._wirespeed

.PHONY: check-prose
check-prose: .venv/.stamp
	$(VENV)/bin/typos
	$(VENV)/bin/shellcheck --external-sources .ci/run tools/*.sh lab/wirespeed-lab lab/drivers/c/*.sh

.PHONY: check-deny
check-deny: .tools/bin/cargo-deny | need-rust
	cargo-deny --locked check --hide-inclusion-graph licenses bans sources
	@if timeout 120 cargo-deny --locked fetch db >/dev/null 2>.tools/advisories.log; then \
	    cargo-deny --locked check --disable-fetch advisories; \
	else \
	    echo 'advisories NOT checked: database unreachable (see .tools/advisories.log)'; \
	fi

# ---------------------------------------------------------------- pinned tools

PIP := $(PYTHON) -m pip --disable-pip-version-check

.venv/.stamp: tools/requirements.txt lab/requirements.txt python/requirements.txt | need-python
	rm -rf .venv
	python3 -m venv .venv
	$(PIP) install --quiet --no-deps $(^:%=-r %)
	$(PIP) check
	touch $@

# The other interpreters, each with an environment in venv/ (or the reason why not in the file missing).
$(NEWER)/.stamp: tools/newer_python.sh tools/missing.sh
	tools/newer_python.sh $(NEWER)
	touch $@

$(THREADED)/.stamp: tools/freethreaded.sh tools/private_apt.sh tools/missing.sh
	tools/freethreaded.sh $(THREADED)
	touch $@

$(TORCH)/.stamp: tools/debian_torch.sh tools/private_apt.sh tools/missing.sh
	tools/debian_torch.sh $(TORCH)
	touch $@

# What their tests need, put there by .venv's pip: Debian's interpreter may have none.
$(NEWER)/.installed: python/requirements-zarr.txt
$(THREADED)/.installed: python/requirements-threads.txt
$(TORCH)/.installed: python/requirements-torch.txt
$(OTHERS:%=%/.installed): %/.installed: %/.stamp python/requirements-pytest.txt .venv/.stamp
	test -e $*/missing || $(PIP) --python $*/venv/bin/python install --quiet --no-deps $(patsubst %,-r %,$(filter %.txt,$^))
	touch $@

.tools/bin/s5cmd: GO_PACKAGE := github.com/peak/s5cmd/v2
.tools/bin/versitygw: GO_PACKAGE := github.com/versity/versitygw/cmd/versitygw
.tools/bin/rclone: GO_PACKAGE := .
.tools/bin/minio: GO_PACKAGE := github.com/minio/minio
$(GO_BINS): .tools/bin/%: tools/go/%/go.mod tools/go/%/go.sum | need-go
	mkdir -p .tools/bin
	cd tools/go/$* && go build -mod=readonly -trimpath -ldflags '-s -w' -o $(TOOLS)/bin/$* $(GO_PACKAGE)
.tools/bin/rclone: tools/go/rclone/main.go

# Where it can't be had, its runs of the conformance suite are skipped with the reason that this prints.
.tools/s3mock/.stamp: tools/s3mock.sh tools/s3mock/pom.xml tools/s3mock/sha256 tools/missing.sh
	tools/s3mock.sh .tools/s3mock
	touch $@

# Its own release profile spends minutes on link-time optimisation that a check
# of a second has no use for.
.tools/bin/cargo-deny: tools/versions.mk | need-rust
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
	    env -u CARGO_TARGET_DIR cargo install --quiet --locked --force --root .tools --no-default-features cargo-deny@$(CARGO_DENY_VERSION)
	touch $@

# ---------------------------------------------------------------- prerequisites

# `|` before one of these: it is asked for when its tool is about to be used,
# and never makes anything out of date.
MISSING = { echo >&2 "missing:" $(1); exit 1; }

.PHONY: need-rust need-go need-python need-cc need-cxx
need-rust: need-cc
	@{ cargo --version && cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || \
	    $(call MISSING,"Rust with rustfmt and clippy. Install rustup (Debian 13: apt-get install rustup): it fetches the version in rust-toolchain.toml.")
need-go:
	@go version >/dev/null 2>&1 && test "$$(go env GOVERSION | sed 's/^go1\.//; s/[^0-9].*//')" -ge 25 || \
	    $(call MISSING,"Go 1.25 or newer (Debian 13: apt-get install -t trixie-backports golang-go).")
need-python:
	@python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    $(call MISSING,"Python 3.11 or newer with venv (Debian: apt-get install python3 python3-venv).")
need-cc:
	@command -v cc >/dev/null || \
	    $(call MISSING,"a C compiler (Debian: apt-get install gcc libc6-dev).")
need-cxx:
	@command -v c++ >/dev/null || \
	    $(call MISSING,"a C++ compiler for libFuzzer (Debian: apt-get install g++).")
