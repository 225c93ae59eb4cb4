# SPDX-License-Identifier: BSD-2-Clause
# awk -f man/links.awk PAGE...
# Prints "NAME.SECTION PAGE" for each name that the NAME section of a page lists beside the page's own.

FNR == 1 {
	page = FILENAME
	sub(/.*\//, "", page)
	section = page
	sub(/.*\./, "", section)
}
/^\.Sh/ {
	listed = $2 == "NAME"
}
listed && $1 == ".Nm" {
	for (i = 2; i <= NF; i++)
		if ($i != "," && $i "." section != page)
			print $i "." section, page
}
