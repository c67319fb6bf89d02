#!/bin/sh
# Builds etcd and the control plane from Go modules into .cache, keyed by their
# versions and the toolchain. Prints the folder. Ten minutes cold, nothing warm.
set -eu
cd "$(dirname "$0")"
# The version that the binaries say they are; without it a client takes them for v0.0.0.
version=$(sed -n 's|.*k8s.io/kubernetes \(v[0-9.]*\)$|\1|p' go.mod | head -1)
[ -n "$version" ] || { echo "go.mod does not name k8s.io/kubernetes" >&2; exit 1; }
package=k8s.io/component-base/version
stamp="-X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(echo "$version" | cut -d. -f2)"
key=$( { echo "$stamp"; grep -E "k8s.io/kubernetes v|etcd/server/v3 v" go.mod; go version; } | sha256sum | cut -c1-16)
dir="$PWD/.cache/controlplane-$key"
if [ ! -d "$dir" ]; then
	tmp=$(mktemp -d "$PWD/.cache.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	echo "building etcd and the control plane; this takes about ten minutes the first time" >&2
	GOFLAGS="${GOFLAGS:-} -buildvcs=false" go build -ldflags "-s -w $stamp" -o "$tmp/" \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kube-controller-manager >&2
	GOFLAGS="${GOFLAGS:-} -buildvcs=false" go build -ldflags "-s -w" -o "$tmp/etcd" go.etcd.io/etcd/server/v3 >&2
	mkdir -p .cache
	mv "$tmp" "$dir" 2>/dev/null || [ -d "$dir" ]
fi
echo "$dir"
