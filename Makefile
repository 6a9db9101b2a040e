# make test runs every test, in minutes, whatever else the machine does. make check adds
# linter, race detector and builds; make check and make verbs are what continuous
# integration runs, and what a change must pass. make stress has the long lanes.
# All need Go, git, make and access to Go modules, the race detector a C compiler too.

GO       ?= go
FUZZTIME ?= 20s
SEEDS    ?= 300
CHANGESEEDS ?= 200
# Of make stress: seeds of each simulation, and draws of each property test.
STRESSSEEDS ?= 10000
DRAWS       ?= 2000

# The linter is pinned here. An installed one of exactly this version is used,
# otherwise Go builds it: minutes the first time, nothing afterwards.
LINT_VERSION = v2.15.0
LINT_MODULE  = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
LINT_INSTALLED = $(shell golangci-lint version 2>/dev/null | grep -q 'version $(LINT_VERSION:v%=%) ' && echo golangci-lint)
LINT = $(or $(LINT_INSTALLED),$(GO) run $(LINT_MODULE))

# Packages with goroutines, or called from several; the core has none.
SHELLS = ./p2psap/driver/... ./ether/... ./solver/runner/... ./problems/file ./internal/output ./obstacle/...

.PHONY: check build fmt vet lint test race sim stress fuzz bench experiments performance pictures install verbs

check: test build fmt vet lint race

# The whole module, examples included; also without the assembly kernels and without
# what loads libibverbs.
build:
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) build -tags noasm,nolibibverbs ./...

fmt:
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$bad" ]; then echo "not formatted (gofmt -w):"; echo "$$bad"; exit 1; fi

vet:
	$(GO) vet ./...

lint:
	$(LINT) run ./...

# Every test: examples, layout and purity (internal/tidy), simulator seeds, real
# processes, and the seed corpus of every fuzz target. None depends on the clock.
test:
	$(GO) test ./...

race:
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ]; then \
		echo "$(GO) test -race -short $(SHELLS)"; $(GO) test -race -short $(SHELLS); \
	else \
		echo "race detector: skipped, it needs cgo and a C compiler (go env CGO_ENABLED is 0)"; \
	fi

# The verbs link on the real RDMA stack: a guest kernel with soft-RoCE, from Debian's
# packages, under QEMU. Minutes; skipped, loudly, where it cannot be built.
# make verbs STEPS=devices runs one step of ib/guest/steps.sh.
verbs:
	ib/guest/run.sh $(STEPS)

# More seeds of the cluster simulator than make test runs: make sim SEEDS=10000.
sim:
	$(GO) test ./internal/sim -run 'TestSeeds$$' -count=1 -v -sim.count=$(SEEDS)
	$(GO) test ./internal/sim -run 'TestAttacks$$' -count=1 -v -attack.count=$(SEEDS)
	$(GO) test ./internal/sim -run 'TestFalseStops' -count=1 -v -timeout 3h -stops.count=$(SEEDS)
	$(GO) test ./p2psap -run 'TestChanges$$' -count=1 -v -change.count=$(CHANGESEEDS) -change.goal=1000

# The long lanes, hours: more seeds of the simulations, more draws of the property tests, all
# tests under the race detector, and those of real processes and sockets again and again.
stress:
	$(MAKE) sim SEEDS=$(STRESSSEEDS)
	$(GO) test -count=1 -timeout 6h -rapid.checks=$(DRAWS) $$(grep -rl --include='*_test.go' 'pgregory.net/rapid"' . | xargs -n 1 dirname | sort -u)
	$(GO) test -race -count=1 -timeout 2h ./...
	$(GO) test -count=10 -timeout 2h $(SHELLS)

# Every fuzz target for FUZZTIME, one after the other. Minimising what is interesting, for a
# minute each by default, would take most of that time.
fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
		done; \
	done

# Regression benchmarks on this machine; the loops in C need gcc. make bench ARGS="-against COMMIT"
# compares this tree with a commit. make experiments repeats what takes hours.
bench experiments:
	$(GO) run ./$@ $(ARGS)

# The tables of docs/performance.md, from the records of both.
performance:
	$(GO) run ./bench -report

# The figures of README.md and docs/.
pictures:
	mkdir -p docs/pictures
	$(GO) run ./cmd/obstacle solve jacksboro --n 401,342 --tol 1e-6 --out docs/pictures/jacksboro.png
	$(GO) run ./cmd/obstacle solve membrane --n 64 --out docs/pictures/membrane.png
	$(GO) run ./cmd/obstacle solve examples/problems/finger.yaml --n 255,127 --tol 1e-5 --out docs/pictures/finger.png
	$(GO) run ./cmd/obstacle compare membrane --n 96 --tol 1e-3 --peers 1,2 --rounds 3 --slowdown 1:3 --out docs/pictures/compare.png

install:
	$(GO) install ./cmd/obstacle
