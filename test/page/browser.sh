#!/bin/sh
# Sees that there is a Chromium, Node.js and npm for the test of the pages; as root
# on Debian and its kin it installs what is missing.
set -eu
missing=""
[ -n "${BROWSER:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing="chromium"
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "the test of the pages needs$(printf ' %s' $missing): install them, or set BROWSER to the path of a Chromium" >&2
	exit 1
fi
echo "installing $missing" >&2
# shellcheck disable=SC2086 # a list of packages
DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >&2 || {
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing >&2
}
