#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs linked with older releases, and with the development line, work: old_nodes.c calls each symbol version
# with structs of its release; a program that needs FABRIC_1.10 starts.
set -u
cd "$(dirname "$0")/../.." || exit
lib=$(realpath "${BUILD:-build}/libfabric.so") || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=("${CC:-cc}" -std=gnu11 -Wall -Wextra ${WERROR-} -Iinclude -DWEFT_API_2_7)
"${cc[@]}" -o "$work/old_nodes" tests/abi/old_nodes.c -ldl || exit 1
"$work/old_nodes" "$lib" || exit 1

cat >"$work/next.c" <<'C'
#include <rdma/fabric.h>

__asm__(".symver fi_getinfo, fi_getinfo@FABRIC_1.10");
__asm__(".symver fi_freeinfo, fi_freeinfo@FABRIC_1.10");

int main(void)
{
	struct fi_info *info;
	int ret = fi_getinfo(FI_VERSION(2, 7), 0, 0, 0, 0, &info);

	if (ret || info->fabric_attr->api_version != FI_VERSION(2, 7) || info->ep_attr->xpu_ctx)
		return 1;
	fi_freeinfo(info);
	return 0;
}
C
"${cc[@]}" -o "$work/next" "$work/next.c" "$lib" -Wl,-rpath,"$(dirname "$lib")" || exit 1
readelf -V -W "$work/next" | grep -q 'Name: FABRIC_1\.10 ' || { echo "old_nodes: next.c needs no FABRIC_1.10"; exit 1; }
timeout 20 "$work/next" || { echo "old_nodes: a program of the development line fails"; exit 1; }
