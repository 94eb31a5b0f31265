# `make` lists what can be made.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up down status

help: ## This list
	@awk -F':.*## ' '/^[a-z][a-zA-Z0-9_-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- The local cluster ----

up: ## A Kubernetes cluster of three nodes on this machine (Debian 12, root)
	@dev/up.sh

down: ## Stop that cluster and remove all of it
	@dev/down.sh

status: ## What of it runs
	@dev/status.sh

# ---- Build, test, release: further targets go here, each with a "## help" of its own, and into .PHONY ----
