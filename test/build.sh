#!/bin/sh
# Builds etcd and the control plane from Go modules into .cache, keyed by their
# versions and the toolchain. Prints the folder. Ten minutes cold, nothing warm.
set -eu
cd "$(dirname "$0")"
key=$( { grep -E "k8s.io/kubernetes v|etcd/server/v3 v" go.mod; go version; } | sha256sum | cut -c1-16)
dir="$PWD/.cache/controlplane-$key"
if [ ! -d "$dir" ]; then
	tmp=$(mktemp -d "$PWD/.cache.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	echo "building etcd and the control plane; this takes about ten minutes the first time" >&2
	GOFLAGS="${GOFLAGS:-} -buildvcs=false" go build -ldflags "-s -w" -o "$tmp/" \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kube-controller-manager >&2
	GOFLAGS="${GOFLAGS:-} -buildvcs=false" go build -ldflags "-s -w" -o "$tmp/etcd" go.etcd.io/etcd/server/v3 >&2
	mkdir -p .cache
	mv "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ]
fi
echo "$dir"
