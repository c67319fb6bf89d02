#!/usr/bin/env bash
# Builds the S3 server that the store is tested against. It is a module of its own, so that its dependencies are nobody
# else's. Safe to run twice at once, and quick when the server of this version is there already.
set -euo pipefail
cd "$(dirname "$0")"

version=$(go list -m -f '{{.Version}}' github.com/versity/versitygw)
folder=../../.bin/versitygw-$version
binary=$folder/versitygw
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ -x "$binary" ]; then
	echo "versitygw $version: $binary"
	exit 0
fi
echo "versitygw $version: building, about a minute" >&2
go build -trimpath -ldflags '-s -w' -o "$binary.new" github.com/versity/versitygw/cmd/versitygw
mv "$binary.new" "$binary"
echo "versitygw $version: $binary"
