#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Proves that the manual pages are well formed: mandoc warns of nothing in them, and makes of each a page of HTML that the index
# and further names lead to.
set -u
cd "$(dirname "$0")/../.." || exit
command -v mandoc >/dev/null || {
	echo "no mandoc"
	exit 77
}

# complaints FILE...: prints mandoc's messages about the pages.
complaints() {
	mandoc -T lint -W warning "$@" 2>/dev/null
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
broken=$work/x.7
printf '.Dd November 24, 2026\n.Dt X 7\n.Os\n.Sh NAME\n.Nm x\n.Nd x\n.Bogus\n' >"$broken"
[ -n "$(complaints "$broken")" ] || {
	echo "man: a broken page is not noticed"
	exit 1
}
pages=(man/*.[1-9])
found=$(complaints "${pages[@]}")
[ -z "$found" ] || {
	echo "$found"
	exit 1
}

# dangling FOLDER: prints the pages that a file of a folder of HTML leads to, and that are not there.
dangling() {
	(
		cd "$1" || exit
		find . -xtype l
		grep -oh 'href="[^":#]*"' -- *.html | sort -u | while IFS='"' read -r _ page _; do
			[ -s "$page" ] || echo "$page"
		done
	)
}

man/html.sh "$work/html" || exit
found=$(dangling "$work/html")
for page in "${pages[@]#man/}"; do
	grep -q "<a href=\"$page.html\">" "$work/html/index.html" || found+=" the index lacks $page"
	! grep -l "manpages.debian.org/$page\"" "$work"/html/* || found+=" $page is here"
done
[ -z "$found" ] || {
	echo "man: HTML: $found"
	exit 1
}
rm "$work/html/weft-env.7.html"
[ "$(dangling "$work/html")" = weft-env.7.html ] || {
	echo "man: a link that leads nowhere is not noticed"
	exit 1
}
echo "${#pages[@]} pages"
