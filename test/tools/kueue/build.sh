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
	source=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)
	mkdir -p "$folder/crd"
	cp "$source"/config/components/crd/bases/*.yaml "$folder/crd/"
	chmod -R u+w "$folder/crd"
	go build -trimpath -ldflags '-s -w' -o "$folder/kueue.new" sigs.k8s.io/kueue/cmd/kueue
	mv "$folder/kueue.new" "$folder/kueue"
fi
echo "$folder"
