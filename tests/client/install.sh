#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# `make install` works: programs build by pkg-config alone, shared and static. `make uninstall`
# leaves nothing behind.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${BUILD:-build}")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
make=(make -s BUILD="$build" prefix=/opt/weft libdir=/opt/weft/lib64 DESTDIR="$root")

cat >"$root/program.c" <<'C'
#include <rdma/fabric.h>
#include <stdio.h>

int main(void)
{
	struct fi_info *info;
	int ret = fi_getinfo(FI_VERSION(2, 6), NULL, NULL, 0, NULL, &info);

	if (ret)
		return 1;
	printf("%s %u.%u\n", info->fabric_attr->prov_name, FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	fi_freeinfo(info);
	return 0;
}
C

"${make[@]}" install
export PKG_CONFIG_PATH=$root/opt/weft/lib64/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
[ "$(pkg-config --modversion libfabric)" = 2.6.0 ]

# shellcheck disable=SC2046 # words are wanted
"${CC:-cc}" "$root/program.c" -o "$root/shared" $(pkg-config --cflags --libs libfabric)
[ "$(LD_LIBRARY_PATH=$root/opt/weft/lib64 "$root/shared")" = "weft 2.6" ]
readelf -d "$root/shared" | grep -q 'NEEDED.*libfabric.so.1'

# shellcheck disable=SC2046
"${CC:-cc}" -static "$root/program.c" -o "$root/static" $(pkg-config --static --cflags --libs libfabric) 2>"$root/log" ||
	{ cat "$root/log"; exit 1; }
[ "$("$root/static")" = "weft 2.6" ]

man=$root/opt/weft/share/man
for page in man/*.[1-9]; do cmp "$page" "$man/man${page##*.}/${page#man/}"; done
# Further names of a page lead to it.
awk -f man/links.awk man/*.[1-9] >"$root/links"
while read -r link page; do
	[ "$(cat "$man/man${link##*.}/$link")" = ".so man${page##*.}/$page" ]
done <"$root/links"
for tool in fi_info fi_pingpong fi_strerror fi_mon_sampler; do [ -x "$root/opt/weft/bin/$tool" ]; done
LD_LIBRARY_PATH=$root/opt/weft/lib64 "$root/opt/weft/bin/fi_strerror" 11 >/dev/null

"${make[@]}" uninstall
left=$(find "$root/opt" ! -type d)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
