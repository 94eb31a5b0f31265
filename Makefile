# `make` lists what can be made.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up down status build packages charms demo demo-accounting demo-bridge demo-enlist demo-governance demo-site test test-cluster test-long sim soak bench format

help: ## This list
	@awk -F':.*## ' '/^[a-z][a-zA-Z0-9_-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- The local cluster ----

up: ## A Kubernetes cluster of three nodes on this machine (Debian 12, root)
	@dev/up.sh

down: ## Stop that cluster and remove all of it
	@dev/down.sh

status: ## What of it runs
	@dev/status.sh

# ---- Build, test, measure ----

build: ## The operator's binary, slurm-bridge and kubectl-slurm, in build/release
	@dev/cpp.sh release slurm-operator slurm-bridge kubectl-slurm

packages: ## Debian packages of slurm-enlist, in build/packages
	@dev/packages.sh

charms: ## The charms of Juju, slurmd and slurmctld, in build/charms
	@dev/charms.sh

demo: ## The main job from nothing: cluster, operator, Slurm, and a job on 3 workers (SLURM=24.11 for the older release)
	@dev/demo.sh

demo-accounting: ## The same with slurmdbd and a MariaDB: an account, jobs, and their records in sacct
	@dev/demo-accounting.sh

demo-bridge: ## slurm-bridge: pods of a Deployment and a job of sbatch wait in one queue, and squeue and kubectl tell the same
	@dev/demo-bridge.sh

demo-enlist: ## slurm-enlist: hosts outside of Kubernetes (network namespaces) join a pool by one command each, run jobs, and leave
	@dev/demo-enlist.sh

demo-governance: ## Accounts, a user and QOS as manifests: drift that is mended, a denial, a limit that follows the nodes, why a job waits
	@dev/demo-governance.sh

demo-site: ## A whole site by one helm install: accounting, both kinds of workers, and a login node for users of an LDAP directory
	@dev/demo-site.sh

test: ## The gate: what each change has to pass, in some 20 minutes; SUITES="unit sim" for some of it, KEEP_GOING=1 past a failure
	@dev/test.sh $(SUITES)

test-cluster: ## What takes longer: all of the local cluster, more histories, other seeds; SUITES="e2e tidy" for some of it
	@dev/test.sh --cluster $(SUITES)

test-long: ## Both, with what takes hours: SEEDS=N histories, every fault at every write, every test with each Slurm release
	@SEEDS=$(SEEDS) SEED_BASE=$(SEED_BASE) dev/test.sh --long $(SUITES)

sim: ## Random histories with faults in the simulator: SEEDS=N SEED_BASE=S
	@SEEDS=$(or $(SEEDS),1000) SEED_BASE=$(or $(SEED_BASE),1) dev/test.sh sim

soak: ## Random work and faults on the local cluster: MINUTES=30 SEED=1; no job may be lost
	@MINUTES=$(MINUTES) SEED=$(SEED) SLURM=$(SLURM) dev/soak.sh

bench: ## What users wait for, on the local cluster: median and worst of 5, beside its floor
	@dev/bench.sh

format: ## Format the sources as CI checks it
	@dev/deps.sh lint
	@git ls-files '*.hpp' '*.cpp' | xargs clang-format -i
