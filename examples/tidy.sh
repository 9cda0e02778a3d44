#!/bin/sh
# go mod tidy for this module (or for the one in the folder $1), as it would be with the library published.
#
# tidy does not look at go.work, and cannot find a version of the library that no
# proxy has. So it runs on a copy of go.mod with a replace line, which is left out
# of what comes back. -diff as the last argument changes nothing and fails if
# something would change.
set -eu
cd "$(dirname "$0")"
case "${1-}" in '' | -diff) ;; *) cd "$1"; shift ;; esac
library=github.com/quorumlock/redlock
root=$(cd .. && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cp go.mod "$copy/go.mod"
[ ! -e go.sum ] || cp go.sum "$copy/go.sum"
go mod edit -replace="$library=$root" "$copy/go.mod"
GOWORK=off go mod tidy -modfile="$copy/go.mod"
go mod edit -dropreplace="$library" "$copy/go.mod"
if [ "${1-}" = -diff ]; then
	diff -u go.mod "$copy/go.mod"
	diff -u go.sum "$copy/go.sum"
else
	cp "$copy/go.mod" "$copy/go.sum" .
fi
