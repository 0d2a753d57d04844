# What is built, checked and measured here.
#
# demo, test, build and install need Go, git, make and a C compiler. generate, lint and check also build the pinned
# tools of .ci/tools.mod and .ci/lint.mod, once, into .bin. Nothing here reaches for the network once the modules are there.

# The caller's flags for Go are not asked for: a build is the same everywhere, with or without git's own data.
export GOFLAGS := -buildvcs=false
export PATH := $(CURDIR)/.bin:$(PATH)

FUZZTIME ?= 60s
SOAKTIME ?= 10m
ENDURETIME ?= 10m
KILLS ?= 1000
UPGRADES ?= 100
SEED ?= 1
STARTS ?= 10000
CORES := $(shell getconf _NPROCESSORS_ONLN)

VERSION ?=

.DEFAULT_GOAL := all
.PHONY: race upgrades dist rootfs test-dist all demo picture test test-cluster lint generate check bench bench-sandbox cost day growth peer instructions suites world starts crash flap memory builds soak fuzz build install clients servers generated protos vet cluster cluster-bench cluster-memory cluster-demo cluster-endure

all: generate lint test

# A turn of real calls in a temporary workspace: batches, progress, an edit, an abort, a denied call, a timeline.
demo: build
	.bin/toold demo

build:
	go build -o .bin/toold ./cmd/toold

install:
	go install ./cmd/toold

# -count=1: several tests drive the built program, which Go's test cache does not see. A program under the race detector
# would take a second to end, and there are hundreds of them. Many tests wait for others, so more are under way than there
# are processors. The program that tests drive is linked once.
test: build
	TOOLD_BUILT=$(CURDIR)/.bin/toold GORACE=atexit_sleep_ms=0 go test -race -count=1 -timeout 30m -p $$(($(CORES) + 1)) -parallel $$((2 * $(CORES))) ./...

# The tests of the command line with the race detector in the programs that they start, too: "make test" drives toold as users build it.
race:
	GORACE=atexit_sleep_ms=0 TOOLD_RACE=1 go test -race -count=1 -timeout 60m ./cmd/toold

# The cluster's module. TOOLD_MODEL_STEPS is how many steps its model test makes.
test-cluster:
	cd cluster && GORACE=atexit_sleep_ms=0 go test -race -count=1 -timeout 10m ./...

# What CI runs. The tests come last, so that their closing lines are the last thing printed.
check: generated protos lint vet test

generate: .bin/buf
	buf format -w
	buf generate
	cd cluster && buf format -w && buf generate

# The committed Go code is what the contract in proto/ gives.
generated: .bin/buf
	@new=$$(mktemp -d) && trap 'rm -rf "$$new"' EXIT && \
	buf generate -o "$$new" && \
	(cd cluster && buf generate -o "$$new/cluster") && \
	diff -r gen "$$new/gen" && diff -r cluster/gen "$$new/cluster/gen" || \
	{ echo 'gen/ is not what proto/ gives: run "make generate" and commit gen/ and cluster/gen/.' >&2; exit 1; }

# The contract reads well, and breaks nobody: it is compared with what main had before this change.
protos: .bin/buf
	buf lint
	buf format --diff --exit-code
	cd cluster && buf lint && buf format --diff --exit-code
	@.ci/breaking

lint: .bin/golangci-lint
	golangci-lint run ./...
	cd cluster && golangci-lint run ./...
	cd contrib/dist && golangci-lint run ./...
	go test -count=1 -run "^TestWords$$" ./docs

# macOS is not a platform yet, but nothing should stand in its way.
vet:
	GOOS=darwin go vet ./...

# Benchmarks beside the code, and then the ratios of docs/performance.md.
bench: build
	go test -run '^$$' -bench . -benchmem ./...
	go run ./bench -toold .bin/toold

# What a call costs as calls, sessions, rules, files and records grow. Needs half an hour and 2 GiB of disk.
growth: build
	go run ./bench -toold .bin/toold -growth -rounds 9

# What a call costs the daemon in instructions, also on a machine that is not quiet. Needs perf.
instructions: build
	go run ./bench -toold .bin/toold -instructions

# Beside what people have today, in one run: npm's filesystem server, gemini-cli-core, Codex's exec-server.
peer: build
	cd bench/peer/npm && npm ci --ignore-scripts
	go run ./bench/peer -toold .bin/toold

# The test suites of the projects whose checkouts are in PROJECTS, in plain bash and through the daemon.
suites: build
	go run ./bench/day -toold .bin/toold -projects $(PROJECTS) -suites 3

# What a call costs in allocations, switches and system calls, against the budgets. KEEP names a folder for the profile,
# the trace and the lines of strace that show where they go.
cost:
	TOOLD_COST_KEEP=$(abspath $(KEEP)) go test -count=1 -v -run '^TestCostOfACall$$' ./cmd/toold

# A day's commands in plain bash and through the daemon: what differs, what is asked, and the time that both take.
day: build
	go run ./bench/day -toold .bin/toold
	go run ./bench/day -toold .bin/toold -mode default

# All of what "make test" tries a part of: the scripts of the property test, the doors of git, everyday and ordinary work, and commands
# in a home, in each tier, what an answer opens, what advice leads to, turns in the dependency order, servers that are killed, searches
# that remember, large pages, the commands that are judged to change nothing, and upgrades between this program and an earlier one. Of most
# of them "make test" tries other ones every day. Run it before a release, and after a change to the sandbox.
world:
	TOOLD_ALL=1 go test -count=1 -timeout 60m -run '^(TestDependencyIsSerial|TestModelEventsAgain|TestServerKilledAtAnyMoment)$$' ./daemon
	TOOLD_ALL=1 go test -count=1 -timeout 20m -run '^(TestMemoryIsNoticedByNobody|TestHostilePages|TestReadOnlyChangesNothing)$$' ./tools/grep ./tools/webfetch ./tools/exec/shell
	TOOLD_ALL=1 go test -count=1 -timeout 60m -run '^Test(OneWorld|Git|EverydayGit|OrdinaryWork|Caches|AdviceWorks|AnswerGrants|GrantsNoMoreWithoutNamespaces|ReadsInAHome|HomeWithoutNamespaces|Skew$$)' ./cmd/toold

# What starting a process costs under each confinement, against os/exec and, where it is installed, bubblewrap.
bench-sandbox:
	go run ./bench -sandbox

# STARTS confined starts in each tier, 16 at once, and what they leave behind: nothing.
starts:
	SANDBOX_TEST_STARTS=$(STARTS) go test -count=1 -timeout 10m -v -run '^TestManyStarts$$' ./tools/exec/sandbox

# Kills the daemon KILLS times and holds what clients see against what is promised; SEED repeats a run.
crash: build
	go run ./bench/endure crash -toold .bin/toold -kills $(KILLS) -seed $(SEED)

# A client that is killed every second for a minute.
flap: build
	go run ./bench/endure flap -toold .bin/toold

# The picture of README.md, from a turn that runs.
picture: build
	.bin/toold demo >.bin/demo.txt
	go run ./docs/picture 'The turn over time' <.bin/demo.txt >docs/demo.svg
	go run ./docs/picture 'Another turn' 'The same' <.bin/demo.txt >docs/orders.svg

# Upgrades the daemon UPGRADES times while clients send calls.
upgrades:
	TOOLD_UPGRADES=$(UPGRADES) go test -race -count=1 -timeout 60m -v -run '^TestUpgradesUnderLoad$$' ./cmd/toold

# 500 sessions that all want to build, on two places, and small calls beside them.
builds: build
	go run ./bench/endure builds -toold .bin/toold

# Ten clients with 60 MiB of buffers each, and as many sessions with large options as there may be.
memory: build
	go run ./bench/endure memory -toold .bin/toold

# Everything at once for SOAKTIME.
soak:
	go run ./bench/endure soak -for $(SOAKTIME) -seed $(SEED)

# Each fuzz target for FUZZTIME, one after the other.
fuzz:
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(go -C $$dir test -list '^Fuzz' | grep '^Fuzz'); do \
	    echo "$$dir $$target"; \
	    go -C $$dir test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) || exit 1; \
	  done; \
	done

# What the tests of the clients in other languages need beside apt packages: see examples/clients/README.md. Most of it, 1.1 GB, are
# the agents that examples/agents starts.
clients: .bin/grpcurl
	cd examples/clients/node && npm ci --ignore-scripts
	cd clients/typescript && npm ci --ignore-scripts
	cd clients/vscode && npm ci --ignore-scripts
	cd cmd/toold/testdata/conformance && npm ci --ignore-scripts
	cd cmd/toold/testdata/browser && npm ci --ignore-scripts
	cd examples/agents && npm ci --ignore-scripts
	clients/neovim/test/fetch .bin/neovim
	cd tools/memory/testdata/sdk && npm ci --ignore-scripts

# The language servers and the MCP servers that tests drive.
servers: .bin/gopls
	cd tools/exec/language/testdata/servers && npm ci --ignore-scripts
	cd tools/mcp/testdata/servers && npm ci --ignore-scripts

.bin/buf: .ci/tools.mod .ci/tools.sum
	go build -modfile=.ci/tools.mod -o .bin/ github.com/bufbuild/buf/cmd/buf \
	  google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc

.bin/golangci-lint: .ci/lint.mod .ci/lint.sum
	go build -modfile=.ci/lint.mod -o .bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.bin/grpcurl: examples/clients/grpcurl/tool.mod examples/clients/grpcurl/tool.sum
	go build -modfile=examples/clients/grpcurl/tool.mod -o .bin/ github.com/fullstorydev/grpcurl/cmd/grpcurl

.bin/gopls: tools/exec/language/testdata/servers/tool.mod tools/exec/language/testdata/servers/tool.sum
	go build -modfile=tools/exec/language/testdata/servers/tool.mod -o .bin/ golang.org/x/tools/gopls

# The cluster: a module of its own, see docs/cluster.md.
cluster: build
	cd cluster && go build -o ../.bin/ ./cmd/toold-cluster

# Starts a whole cluster on loopback, kills a node in the middle of a call, and shows how the session goes on.
cluster-demo: cluster
	.bin/toold-cluster demo --toold .bin/toold

# A cluster under faults for ENDURETIME, held against what is promised. ENDUREFLAGS=-strict: with strict effects.
cluster-endure:
	cd cluster && go run ./endure -for $(ENDURETIME) $(ENDUREFLAGS)

# What a cluster adds to a call, against a local daemon and the log in the same run, and how long a takeover takes.
cluster-bench: cluster
	cd cluster && go run ./bench

# The memory of a gateway for each attached session, in a process of its own.
cluster-memory:
	cd cluster && go test -run XXX -bench Memory -benchtime 1x ./gateway

# What a release consists of, in .bin/release: see docs/installing.md. With .bin/rootfs.tar there, the image too. VERSION is
# vMAJOR.MINOR.PATCH; without it, the commit's tag or a pseudo-version.
dist:
	cd contrib/dist && go build -o ../../.bin/dist .
	.bin/dist -out .bin/release -version '$(VERSION)' $(if $(wildcard .bin/rootfs.tar),-rootfs .bin/rootfs.tar)

# The root file system of the image, once. This needs the network, debootstrap and root.
rootfs:
	contrib/dist/rootfs .bin/rootfs.tar

# Packages install, and two builds give the same bytes. TOOLD_ALL=1 also builds from nothing, for both architectures, and runs the
# program for arm64 by an emulator; with .bin/rootfs.tar there, the image's file system is run too.
test-dist:
	cd contrib/dist && $(if $(wildcard .bin/rootfs.tar),TOOLD_ROOTFS=$(CURDIR)/.bin/rootfs.tar) go test -count=1 -timeout 30m ./...
