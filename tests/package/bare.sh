#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What `make dist` packs builds and installs where there is a compiler, make and little else: no pkg-config, no
# autoconf, no headers but the C library's. configure says what is left out, and nothing of that is found then.
# TIMEOUT=400
set -eu
cd "$(dirname "$0")/../.."
command -v git >/dev/null || { echo "git is not installed" && exit 77; }
[ -e .git ] || { echo "this tree is no clone: it has no list of the files to pack" && exit 77; }
build=$(realpath "${BUILD:-build}")
version=$(sed -n 's/^VERSION = //p' config.mk)
work=$(mktemp -d "$build/bare.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() {
	echo "bare: $1"
	exit 1
}

mkdir "$work/bin"
for command in ar as awk basename cat chmod cmp cp cut date diff dirname echo egrep expr false find grep gzip head hostname \
	install ld ln ls make mkdir mktemp mv nproc od printf pwd ranlib realpath rm rmdir sed sh sleep sort strip tail tar test \
	touch tr true uname uniq wc; do
	path=$(type -P $command) && ln -s "$path" "$work/bin/$command"
done
ln -s "$(type -P gcc || type -P cc)" "$work/bin/cc"
for header in infiniband/verbs.h rdma/rdma_cma.h netlink/netlink.h netlink/route/link.h openssl/ssl.h; do
	mkdir -p "$work/headers/$(dirname $header)"
	echo "#error $header is not here" >"$work/headers/$header"
done

# bare COMMAND...: runs it where only these commands and headers are.
bare() {
	(cd "$work/weft-$version" && env -i PATH="$work/bin" C_INCLUDE_PATH="$work/headers" HOME="$work" "$@") >>"$work/log" 2>&1
}

env -u BUILD make -s dist
tar -xzf "build/weft-$version.tar.gz" -C "$work"
bare ./configure --prefix="$work/weft" || fail "configure: $(tail -n 5 "$work/log")"
for word in 'RDMA devices are left out' 'encryption is left out' 'interfaces are asked for through sysfs'; do
	grep -q "WARNING: $word" "$work/log" || fail "configure does not say: $word"
done
bare make -j2 || fail "make: $(tail -n 15 "$work/log")"
bare make install || fail "make install: $(tail -n 15 "$work/log")"

"$work/weft/bin/fi_info" >"$work/info" || fail "fi_info"
for provider in weft shm tcp; do
	grep -q "^provider: $provider\$" "$work/info" || fail "no provider $provider: $(cat "$work/info")"
done
! readelf -d "$work/weft/lib/libfabric.so.1" | grep 'NEEDED.*lib\(nl\|ibverbs\|ssl\)' || fail "libraries that are not here"
bare make uninstall || fail "make uninstall: $(tail -n 5 "$work/log")"
left=$(find "$work/weft" ! -type d)
[ -z "$left" ] || fail "left behind: $left"
grep WARNING "$work/log" | sed 's/.*WARNING: //; s/:.*//'
