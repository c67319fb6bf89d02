#!/usr/bin/env bash
# Builds the queueing controller whose objects and words the program is tested with, and puts its CRDs beside it. A module
# of its own, so that its dependencies are nobody else's. Safe to run twice at once, and quick when it is there already.
# Prints the folder.
set -euo pipefail
cd "$(dirname "$0")"

version=$(go list -m -f '{{.Version}}' sigs.k8s.io/kueue)
mkdir -p ../../.bin
folder=$(cd ../../.bin && pwd)/kueue-$version
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -x "$folder/kueue" ]; then
	echo "kueue $version: building, about ten minutes of processor time" >&2
	source=$(go mod download -json sigs.k8s.io/kueue | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') # downloads it where it is not there yet
	mkdir -p "$folder/crd"
	cp "$source"/config/components/crd/bases/*.yaml "$folder/crd/"
	chmod -R u+w "$folder/crd"
	# The folder of its metrics certificate is fixed in its main file, and a test cannot write to /etc: built from a copy.
	rm -rf "$folder/source"
	cp -r "$source" "$folder/source"
	chmod -R u+w "$folder/source"
	sed -i 's#"/etc/kueue/metrics/certs"#os.Getenv("KUEUE_METRICS_CERTS")#' "$folder/source/cmd/kueue/main.go"
	grep -q KUEUE_METRICS_CERTS "$folder/source/cmd/kueue/main.go"
	(cd "$folder/source" && go build -mod=mod -trimpath -ldflags '-s -w' -o "$folder/kueue.new" ./cmd/kueue)
	rm -rf "$folder/source"
	mv "$folder/kueue.new" "$folder/kueue"
fi
echo "$folder"
