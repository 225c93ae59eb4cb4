#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs linked with older releases, and with the development line, work: old_nodes.c calls each symbol version
# with structs of its release.
set -u
cd "$(dirname "$0")/../.." || exit
lib=$(realpath "${BUILD:-build}/libfabric.so") || exit 1
program=$(mktemp)
trap 'rm -f "$program"' EXIT
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -Iinclude -DWEFT_API_2_7 -o "$program" tests/abi/old_nodes.c -ldl || exit 1
"$program" "$lib"
