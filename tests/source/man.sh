#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves that the manual pages are well formed: mandoc reports nothing but missing pages of other
# projects.
set -u
cd "$(dirname "$0")/../.." || exit
command -v mandoc >/dev/null || {
	echo "no mandoc"
	exit 77
}

# complaints FILE...: prints mandoc's messages about the pages.
complaints() {
	mandoc -T lint "$@" 2>/dev/null | grep -v 'referenced manual not found'
}

broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
printf '.Dd November 24, 2026\n.Dt X 7\n.Os\n.Sh NAME\n.Nm x\n.Nd x\n.Bogus\n' >"$broken"
[ -n "$(complaints "$broken")" ] || {
	echo "man: a broken page is not noticed"
	exit 1
}
found=$(complaints man/*.7)
[ -z "$found" ] || {
	echo "$found"
	exit 1
}
echo "$(find man -name '*.7' | wc -l) pages"
