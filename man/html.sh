#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# man/html.sh FOLDER: writes the manual pages as HTML into FOLDER, with an index.html.
# A further name of a page is a link to its file. Pages of others are those of Debian.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

# index SECTION TITLE: the pages of a section, each with what it says of itself.
index() {
	printf '<h2>%s</h2>\n<dl>\n' "$2"
	for page in "$here"/*."$1"; do
		[ -e "$page" ] || continue
		name=$(basename "$page")
		printf '<dt><a href="%s.html">%s(%s)</a></dt>\n<dd>%s</dd>\n' "$name" "${name%.*}" "$1" \
			"$(sed -n 's/^\.Nd //p' "$page")"
	done
	echo '</dl>'
}

cp "$here/style.css" .
# mandoc takes a page for one of ours if a file of its name is in the current folder.
names=$(mktemp -d)
trap 'rm -rf "$names"' EXIT
cp "$here"/*.[1-9] "$names"
awk -f "$here/links.awk" "$here"/*.[1-9] | while read -r link page; do
	ln -s "$page" "$names/$link"
	ln -sf "$page.html" "$link.html"
done
for page in "$here"/*.[1-9]; do
	name=$(basename "$page")
	(cd "$names" && mandoc -T html -O 'style=style.css,man=%N.%S.html;https://manpages.debian.org/%N.%S' "$name") >"$name.html"
done

{
	echo '<!DOCTYPE html>'
	echo '<html lang="en"><head><meta charset="utf-8"><title>Weft</title>'
	echo '<link rel="stylesheet" href="style.css"></head><body><h1>Manual pages of Weft</h1>'
	index 7 Overviews
	index 3 Calls
	index 1 Programs
	echo '</body></html>'
} >index.html
