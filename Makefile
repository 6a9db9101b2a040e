# make test runs nearly every test function, with few seeds and draws and on small grids: tests of real processes
# that take seconds and have shorter siblings are left to make check. That runs all in full, and adds gofmt, vet,
# the linter, the race detector and more builds. A change must pass make check and make verbs, which continuous
# integration runs. make stress runs for days.
# All targets need Go, git, make and access to Go modules. The race detector needs a C compiler.

GO       ?= go
FUZZTIME ?= 20s
SEEDS    ?= 300
CHANGESEEDS ?= 200
# For make stress: draws of each property test.
DRAWS    ?= 2000

# Go before 1.21 does not understand the version in go.mod, and says no more than that it is invalid.
ifneq (,$(shell $(GO) version 2>/dev/null | grep -E '^go version go1\.(1?[0-9]|20)[. ]'))
$(error Go 1.26 or newer is needed, from https://go.dev/dl/; Go 1.21 and newer fetch it by themselves. Here is $(shell $(GO) version))
endif

# The version of the linter. make lint uses an installed linter of exactly this version, or lets
# Go build it, which takes minutes the first time.
LINT_VERSION = v2.15.0
LINT_MODULE  = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
LINT_INSTALLED = $(shell golangci-lint version 2>/dev/null | grep -q 'version $(LINT_VERSION:v%=%) ' && echo golangci-lint)
LINT = $(or $(LINT_INSTALLED),$(GO) run $(LINT_MODULE))

# The linter of the workflows in .github, without the programs that it would call.
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Packages with goroutines, or called from several. The core has none.
SHELLS = ./p2psap/driver/... ./ether/... ./shm/... ./stream/... ./solver/runner/... ./problems/file ./internal/output ./obstacle/...

# The packages that make test tests. Others, such as the generator of the assembly kernels, need not be
# built for it. Left to make check, as vet and the linter are: internal/tidy, which checks imports and
# purity (the type checker that it needs takes longer to compile than most packages take to test), and
# the programs that measure.
TESTED = $(filter-out %/internal/tidy %/bench %/twonode %/experiments %/published,$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))

# Packages compile a tenth faster without debugging information, which the traces of panics do not need,
# and without cgo, which the module does not use. Packages of others, and those named in OUTLINED, are compiled
# without inlining, which takes a sixth of the time to compile: tests spend little time in them. Tests, vet,
# the linter and make build have the same flags, so that none compiles again what another one has.
MODULE   = github.com/p2pdc/p2pdc
INLINED  = std $(MODULE)/...
OUTLINED = net/... crypto/... $(patsubst %,$(MODULE)/%/...,obstacle examples release)
GCFLAGS  = '-gcflags=all=-dwarf=false -l' $(INLINED:%=-gcflags=%=-dwarf=false) $(OUTLINED:%='-gcflags=%=-dwarf=false -l')

# Tests run an eighth faster where garbage is collected less often; the compiler, which sets its own pace, does
# not see GOGC. Some tests wait for a time-out of real processes: others use the processors meanwhile (-p).
TEST = CGO_ENABLED=0 GOGC=400 $(GO) test -p 4 -toolexec 'env -u GOGC' -vet=off $(GCFLAGS)

.PHONY: check build fmt vet lint test full race sim stress fuzz bench experiments performance pictures install verbs \
	slurm mpirun ssh kubernetes image page page-picture formats documents notebooks release reproducible cross arm64

check: full build fmt vet lint race

# Builds the whole module with its examples, also without the assembly kernels and libibverbs, and runs the example that
# is a module of its own.
build:
	CGO_ENABLED=0 $(GO) build $(GCFLAGS) ./...
	CGO_ENABLED=0 $(GO) build $(GCFLAGS) -tags noasm,nolibibverbs ./...
	cd examples/grpc && CGO_ENABLED=0 $(GO) test $(GCFLAGS) ./...

fmt:
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$bad" ]; then echo "not formatted (gofmt -w):"; echo "$$bad"; exit 1; fi

vet:
	CGO_ENABLED=0 $(GO) vet $(GCFLAGS) ./...

lint:
	$(LINT) run ./...
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes=

# Runs test functions of all packages but internal/tidy and the programs that measure: examples,
# simulator seeds, real processes, and the seed corpus of every fuzz target. -short selects fewer seeds,
# draws, steps and schemes, and smaller grids. Vet is a target of its own. No test depends on the clock.
test:
	$(TEST) -short $(TESTED)

# Runs every test with all its seeds, draws, grids and schemes.
full:
	$(TEST) -timeout 20m ./...

# Runs the tests of the shells under the race detector, which makes them several times slower, with
# the seeds, draws, grids and schemes of make test. make stress runs all tests in full under it.
race:
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ]; then \
		echo "$(GO) test -race -short -vet=off -timeout 20m $(SHELLS)"; \
		$(GO) test -race -short -vet=off -timeout 20m $(SHELLS); \
	else \
		echo "race detector: skipped, it needs cgo and a C compiler (go env CGO_ENABLED is 0)"; \
	fi

# Tests the verbs link on the real RDMA stack, in a guest kernel with soft-RoCE from Debian's
# packages under QEMU. It takes minutes, and is skipped with a warning where the guest cannot be
# built. make verbs STEPS=devices runs one step of ib/guest/steps.sh.
verbs:
	ib/guest/run.sh $(STEPS)

# Solve under the launchers named, which are installed from Debian's packages: two nodes of Slurm on this host, Open MPI
# and MPICH, and an ssh server on loopback. Each takes under a minute, and is skipped with a warning where the launcher
# cannot be installed or started.
slurm mpirun ssh:
	deploy/test/$@.sh

# Decodes the manifests of deploy/kubernetes strictly, as the types of Kubernetes, and compares what they state in
# several places.
kubernetes:
	cd deploy/kubernetes && CGO_ENABLED=0 $(GO) test -vet=off -gcflags=all=-dwarf=false ./...

# Builds the image of Dockerfile, of at most 45 MB, and solves a problem in it. Without docker, podman or buildah it
# builds the binary alone, and says so.
image:
	deploy/image.sh $(IMAGE)

# Reads every output format by NumPy and VTK and compares all arrays by bits: needs Debian's python3-numpy
# and python3-vtk9, and skips what is missing with a message. PYTHON=… names another interpreter.
formats:
	$(GO) test ./internal/output -run 'TestPython' -count=1 -v

# Runs the blocks of all documents, and says which it leaves out. Some need Debian's python3-numpy, python3-matplotlib,
# python3-vtk9, tshark and graphviz. make notebooks runs the Python of docs/notebooks.md alone.
documents:
	$(GO) test ./internal/doctest -count=1 -v

notebooks:
	$(GO) test ./internal/doctest -run TestDocuments/docs/notebooks.md -count=1 -v

# Tests the live page in Chromium: its numbers, keyboard, colours, size on a phone, memory over a day of samples. It takes
# a minute and a half. make page-picture takes the picture of docs/page.md.
page:
	@if command -v chromium chromium-browser google-chrome >/dev/null; then \
		$(GO) test -tags page -count=1 -timeout 9m ./obstacle/internal/page; \
	else \
		echo "page: NOT TESTED, there is no Chromium here: apt-get install chromium"; \
	fi

page-picture:
	$(GO) test -tags page -count=1 -timeout 5m ./obstacle/internal/page -run TestPicture -args -picture $(CURDIR)/docs/pictures/page.png

# Runs more seeds of the cluster simulator than make test: make sim SEEDS=10000.
sim:
	$(GO) test ./internal/sim -run 'TestSeeds$$' -count=1 -v -sim.count=$(SEEDS)
	$(GO) test ./internal/sim -run 'TestAttacks$$' -count=1 -v -attack.count=$(SEEDS)
	$(GO) test ./internal/sim -run 'TestDeaths$$' -count=1 -v -timeout 3h -death.count=$(SEEDS)
	$(GO) test ./internal/sim -run 'TestFalseStops' -count=1 -v -timeout 3h -stops.count=$(SEEDS)
	$(GO) test ./p2psap -run 'TestChanges$$' -count=1 -v -change.count=$(CHANGESEEDS) -change.goal=1000

# Runs for days: more seeds of the simulations, more draws of the property tests, all tests under the race detector, the
# tests of real processes and sockets ten times, and every fuzz target for an hour.
stress: SEEDS = 10000
stress:
	$(MAKE) sim SEEDS=$(SEEDS)
	$(GO) test -count=1 -timeout 6h -rapid.checks=$(DRAWS) $$(grep -rl --include='*_test.go' 'pgregory.net/rapid"' . | xargs -n 1 dirname | sort -u)
	$(GO) test -count=1 -timeout 6h $$(grep -rl --include='*_test.go' 'flag.Bool("long"' . | xargs -n 1 dirname | sort -u) -long
	$(GO) test ./p2psap -run EveryInterleaving -count=1 -timeout 6h -exhaust.big
	$(GO) test -race -count=1 -timeout 2h ./...
	$(GO) test -count=10 -timeout 2h $(SHELLS)
	$(MAKE) fuzz FUZZTIME=1h

# Runs every fuzz target for FUZZTIME. Minimising interesting inputs, a minute each by default,
# would use most of that time.
fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test $$pkg -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x; \
		done; \
	done

# Runs the regression benchmarks; the loops in C need gcc. make bench ARGS="-against COMMIT"
# compares this tree with a commit. make experiments runs the experiments, which take hours.
bench experiments:
	$(GO) run ./$@ $(ARGS)

# Writes the tables of docs/performance.md, and of the pages beside the records, from the records of both.
performance:
	$(GO) run ./bench -report

# Draws the figures of README.md and docs/.
pictures:
	mkdir -p docs/pictures
	$(GO) run ./cmd/obstacle solve jacksboro --n 401,342 --tol 1e-6 --out docs/pictures/jacksboro.png
	$(GO) run ./cmd/obstacle solve membrane --n 64 --out docs/pictures/membrane.png
	$(GO) run ./cmd/obstacle solve examples/problems/finger.yaml --n 255,127 --tol 1e-5 --out docs/pictures/finger.png

install:
	$(GO) install ./cmd/obstacle

# Checks that the whole module with its tests compiles for the other systems of a release.
cross:
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...

# Packages whose code differs between processors, or computes: kernels, methods, formats, composites, sessions.
PORTABLE = ./internal/kernel ./internal/npy ./internal/output ./solver/method ./microproto/... ./p2psap

# Runs the tests of the portable code for 64-bit ARM, under emulation (Debian's qemu-user). Skipped with a message if that is
# missing. TestPython… would need an emulated Python, and is not run by -short.
arm64:
	@if command -v qemu-aarch64 >/dev/null; then \
		echo "tests for arm64: $(PORTABLE)"; \
		GOARCH=arm64 CGO_ENABLED=0 $(GO) test -vet=off -exec qemu-aarch64 -short -timeout 20m $(PORTABLE); \
	else \
		echo "tests for arm64: SKIPPED, qemu-aarch64 is missing: apt-get install qemu-user"; \
	fi

# Builds the files of a release in dist/: archives, Debian packages, SBOMs and SHA256SUMS (docs/releases.md).
# make release ARGS="-targets linux/amd64 -out DIR" builds less, or elsewhere.
release:
	$(GO) run ./release $(ARGS)

# Builds the release of the last commit twice, in two clones and the second time with an empty build cache, and compares
# all files. It takes some minutes for each target.
reproducible:
	release/reproducible.sh $(ARGS)
