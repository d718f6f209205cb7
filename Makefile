# The targets of Headgate. `make` without a target lists them.

NODE := node_modules/node/bin/node
DOCS := $(filter-out scripts/write-document.ts,$(wildcard scripts/write-*.ts))

.PHONY: help install install-node install-test install-bench deb release test-deb image test-image container demo demo-octavia demo-bgp test-fast test test-bare test-matrix conformance conformance-kubernetes conformance-gateway conformance-http soak alerts bench check format docs clean
.DEFAULT_GOAL := help

help:
	@echo 'make install     installs missing programs: HAProxy, Node and the packages of package.json'
	@echo 'make demo        runs the agent under load and shows that no request fails (DEMO_ONCE=1 ends it after the table)'
	@echo 'make demo-octavia'
	@echo '                 compares an amphora of Headgate with Octavia'"'"'s own, under load (root)'
	@echo 'make demo-bgp    shows what clients see when one of several hosts dies, is maintained or joins (root)'
	@echo 'make test-fast   runs the tests that need only Node, in less than a minute'
	@echo 'make test        runs the checks and all tests (ALLOW_SKIP=1 skips tests whose requirements are missing),'
	@echo '                 or the files and folders in FILES (FILES="test/agent/base test/real/vrrp.test.ts")'
	@echo 'make test-bare   runs make test, or FILES, on the smallest Debian 12 with Node and npm and nothing else (root;'
	@echo '                 KUBE_CACHE=1 copies the built Kubernetes programs)'
	@echo 'make test-matrix runs the tests with a real HAProxy, keepalived or nft on each Debian version (MATRIX="haproxy 3.2")'
	@echo "make conformance runs Kubernetes' own tests of load balancers (WORDS='session affinity') and those of Gateway API"
	@echo '                 (TEST=HTTPRouteWeight) in a cluster with Headgate (SUITE=kubernetes, SUITE=gateway; root),'
	@echo '                 and those of HTTP against a Gateway (SUITE=http)'
	@echo 'make soak        runs three tests of long operation for MINUTES=5 each: endpoint changes, no API server, a pair;'
	@echo '                 KIND=all runs every kind of change at once, at random from SEED=NUMBER; KIND=auth has authorization'
	@echo '                 servers fail a hundred times, in four minutes'
	@echo 'make alerts      runs the shipped alerts with their own durations, in real outages of MINUTES=10 (root)'
	@echo 'make deb         builds the Debian package in .cache/deb (REVISION=1, ARCH=arm64)'
	@echo 'make release     makes a release in .cache/release: packages of amd64 and arm64, repository for apt, bill of'
	@echo '                 materials (KEY=a key of gpg, ARCH=arm64)'
	@echo 'make test-deb    makes a release, runs lintian, renders with an unpacked copy of each architecture, and lets apt'
	@echo '                 read the repository'
	@echo 'make image       builds the root filesystem of a host in .cache/image with debootstrap and boots it (root)'
	@echo 'make test-image  tests the package on a real systemd, from installation to purge (root)'
	@echo 'make container   builds the container image in .cache/container, with rights of an ordinary user; as root it runs it too'
	@echo 'make bench       runs the benchmarks and writes bench/results.json (ROWS=PATTERN selects rows)'
	@echo 'make check       runs the linter, the type checker and the checks of generated documents'
	@echo 'make format      formats the files and fixes what the linter can fix'
	@echo 'make docs        writes the generated documents'
	@echo 'make clean       removes installed and generated files inside this directory'

install:
	@sh scripts/install.sh

install-node:
	@sh scripts/install.sh node

install-test:
	@sh scripts/install.sh test

install-bench:
	@sh scripts/install.sh bench

demo: install
	@$(NODE) examples/demo.ts

demo-octavia:
	@sh scripts/install.sh octavia
	@$(NODE) examples/demo-octavia.ts

demo-bgp:
	@sh scripts/install.sh bgp
	@$(NODE) examples/demo-bgp.ts

test-fast: install-node
	@$(NODE) scripts/test.ts --fast $(FILES)

test: install-test
	@$(NODE) scripts/test.ts $(FILES)

test-bare:
	@sh scripts/install.sh bare
	@sh scripts/test-bare.sh $(FILES)

test-matrix: install-test
	@$(NODE) scripts/test-matrix.ts $(MATRIX)

conformance: $(addprefix conformance-,$(or $(SUITE),$(if $(WORDS),kubernetes),$(if $(TEST),gateway),kubernetes gateway http))

conformance-kubernetes: install
	@sh scripts/install.sh conformance
	@$(NODE) scripts/test-kubernetes.ts $(WORDS)

conformance-gateway: install
	@sh scripts/install.sh conformance
	@$(NODE) scripts/test-gateway.ts $(if $(TEST),--test '$(TEST)')

conformance-http: install-test
	@$(NODE) node_modules/.bin/ava -c 1 test/real/http-conformance.test.ts

SOAK_all := soak-all
SOAK_auth := authorizer-faults
SOAKS := $(addprefix test/real/,$(addsuffix .test.ts,$(or $(SOAK_$(KIND)),kubernetes-churn kubernetes-away pair-soak)))

soak: install-test
	@AUTH_FAULTS=100 SOAK_MINUTES=$(or $(MINUTES),5) $(if $(SEED),SEED=$(SEED)) $(NODE) node_modules/.bin/ava -c 1 $(SOAKS)

alerts: install-test
	@ALERT_MINUTES=$(or $(MINUTES),10) $(NODE) node_modules/.bin/ava -c 1 test/real/alert-durations.test.ts

deb: install
	@sh scripts/install.sh $(if $(ARCH),release,deb)
	@$(NODE) scripts/build-deb.ts --revision '$(or $(REVISION),1)' $(if $(ARCH),--arch '$(ARCH)')

release: install
	@sh scripts/install.sh release
	@$(NODE) scripts/build-release.ts $(if $(KEY),--key '$(KEY)') $(if $(ARCH),--arch '$(ARCH)')

test-deb: install
	@sh scripts/install.sh test-deb
	@$(NODE) scripts/test-deb.ts

image: install
	@sh scripts/install.sh image
	@$(NODE) scripts/build-image.ts $(if $(CONFIG),--config '$(CONFIG)') $(if $(VRRP),--vrrp) $(if $(BGP),--bgp)

test-image: install
	@sh scripts/install.sh image
	@$(NODE) scripts/test-image.ts

container: install
	@sh scripts/install.sh container
	@$(NODE) scripts/build-container.ts

bench: install-bench
	@$(NODE) bench/main.ts $(if $(ROWS),--rows '$(ROWS)')

check: install
	@$(NODE) scripts/check.ts

format: install
	@$(NODE) node_modules/@biomejs/biome/bin/biome check --write .

docs: install
	@for script in $(DOCS); do $(NODE) $$script || exit 1; done

clean:
	rm -rf node_modules .cache coverage dist bench/results.json
