# Everything that is run by hand or by CI. `make` lists the targets.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
export GOFLAGS ?= -buildvcs=false
LINT_VERSION = v2.15.0
VULN_VERSION = v1.9.0
VULNDB_VERSION = v0.0.0-20261105234957-e22db6528018
SBOM_VERSION = v1.9.0
TOOLS = $(CURDIR)/.tools
FUZZTIME ?= 20s

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

build: ## build the program into ./bin/audit
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/audit ./cmd/audit

test: control-plane browser ## everything: unit, golden, stories, race, real S3 server, real control plane
	go test -race ./...
	test/tools/versitygw/build.sh
	go test -tags versitygw ./store/s3
	cd test && go test ./...

quick: ## what needs nothing installed
	go test ./...

lint: $(TOOLS)/golangci-lint ## format, vet, golangci-lint
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not formatted: $$out"; exit 1; }
	go vet ./...
	cd test && go vet ./...
	$(TOOLS)/golangci-lint run ./...

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

update-golden: ## write the golden files again; read the diff before committing it
	UPDATE_GOLDEN=1 go test ./audit ./audit/... ./cmd/... ./notify/...

control-plane: ## build etcd, the control plane and Kueue for the tests (twenty minutes the first time)
	test/build.sh
	test/tools/kueue/build.sh

browser: ## a Chromium for the test of the pages; installs it on Debian as root
	test/page/browser.sh

NODES ?= 2000
PODS ?= 50000
bench: control-plane ## whole processes against a real API server with a fleet (NODES, PODS; ten minutes)
	cd test && go test -tags bench -timeout 120m ./bench -run TestFleet -v -args -nodes $(NODES) -pods $(PODS)

MINUTES ?= 10
soak: control-plane ## audit schedule every second for MINUTES, with faults that come and go
	cd test && go test -tags bench -timeout 120m ./bench -run TestSoak -v -args -minutes $(MINUTES)

bench-parts: ## speed and memory of the parts; docs/performance.md says how to read it
	go test -run '^$$' -bench . -benchmem ./audit/... ./store/... ./cmd/audit/pipeline

fuzz: ## each fuzz target for FUZZTIME (20s)
	@git grep -o 'func Fuzz[A-Za-z]*' -- '*_test.go' | sed 's/:func / /' | while read -r file target; do \
		echo "$$target in $$(dirname $$file)"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) || exit 1; done

vuln: $(TOOLS)/govulncheck $(TOOLS)/vulndb-$(VULNDB_VERSION) ## known vulnerabilities, offline; test/supply/known.txt lists those that are known
	$(TOOLS)/govulncheck -db file://$(TOOLS)/vulndb-$(VULNDB_VERSION) -format openvex ./cmd/audit > $(TOOLS)/vuln.json
	cd test && go build -o $(TOOLS)/supply ./supply
	$(TOOLS)/supply vuln test/supply/known.txt < $(TOOLS)/vuln.json

$(TOOLS)/govulncheck:
	GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)

# The database is a Go module: it comes and is verified as any other.
$(TOOLS)/vulndb-$(VULNDB_VERSION):
	GOBIN=$(TOOLS) go install golang.org/x/vulndb/cmd/indexdb@$(VULNDB_VERSION)
	$(TOOLS)/indexdb -vulns "$$(cd / && GOFLAGS=-mod=mod go mod download -json golang.org/x/vulndb@$(VULNDB_VERSION) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/data/osv" -out $@.new
	mv $@.new $@

licenses: ## write docs/licenses.csv and fail for a licence that is not permitted
	cd test && go build -o $(TOOLS)/supply ./supply
	$(TOOLS)/supply licenses docs/licenses.csv

sbom: build $(TOOLS)/cyclonedx-gomod ## write bin/audit.cdx.json: what the binary is made of, as CycloneDX
	$(TOOLS)/cyclonedx-gomod bin -json -noserial -std -version "$(VERSION)" -output bin/audit.cdx.json bin/audit

$(TOOLS)/cyclonedx-gomod:
	GOBIN=$(TOOLS) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)

.PHONY: help build test browser quick lint update-golden control-plane bench bench-parts soak fuzz vuln licenses sbom
