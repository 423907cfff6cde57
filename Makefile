# Everything done twice has a target here. `make demo` and `make test` do their own set-up.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

SERVICES := tests/services/services

.PHONY: help demo build test test-offline test-postgres-all test-connect-all test-flink-1 services services-down services-env lint fmt snapshots reference perf clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: ## The main job on a broker of its own: init, validate, plan, apply, a change, plan, apply, status, lineage
	@examples/demo

build: ## The release binary, at target/release/streamt
	cargo build --release --locked

test: ## All tests; starts the services they need and stops those it started
	@tests/run

test-offline: ## The tests that need no service, in seconds
	cargo test --locked --lib --test cli

test-postgres-all: ## The tests of PostgreSQL state against every supported major, 14 to 18
	@tests/postgres-all

test-connect-all: ## The tests of connectors against older Kafka Connect workers too, 3.5 and 3.4
	@tests/connect-all

test-flink-1: ## The tests of Flink against Flink 1.20 with the plain Kafka connector
	@tests/flink-1

services: ## Start the services of the tests and leave them running
	$(SERVICES) up kafka kafka-3 connect flink registry postgres-14 postgres-18 pgbouncer

services-down: ## Stop them
	$(SERVICES) down

services-env: ## The variables by which tests find them
	@$(SERVICES) env

lint: ## Formatting and clippy
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --features failpoints -- -D warnings

fmt: ## Format
	cargo fmt

snapshots: ## Accept the current output of the commands as the expected one
	INSTA_UPDATE=always cargo test --locked --features failpoints --lib --test cli -- --skip state::postgres

reference: ## Write docs/reference from the code
	STREAMT_REGENERATE=1 cargo test --locked --features failpoints --lib the_reference_of

perf: ## The figures of perf/README.md
	@perf/run

clean: ## Remove build outputs and service data
	$(SERVICES) down
	cargo clean
