#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the library and its tests for 64-bit Arm by Debian's cross compiler and runs those of
# tests/aarch64/list under qemu's user emulation: once for any processor, on an Armv8.0, and those that
# the list marks once more with the atomic instructions of Armv8.1, and with pages of 64 KiB.
# Environment:
#     SHORT    1: only the marked tests
#     NAMES    tests to run in place of the list's
#     OPTIONAL 1: where the compiler, the emulator or the libraries are not to be had, nothing is run, and why is said
# and that of sysroot.bash. What passes here says nothing about the order of memory accesses: the
# emulation runs on this machine's. tests/model/ looks at that. It even lets a load-acquire pass an
# earlier store-release (stlr, ldar) where this machine's processor does, which no Arm may: of two
# threads that each store and then look, none may see the other, and a sleeper is not woken. So the
# tests run on one processor, where no thread sees that.
set -u
cd "$(dirname "$0")/../.." || exit
. tests/aarch64/sysroot.bash

build=$PWD/build-aarch64
one_processor=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
emulate="qemu-aarch64-static -L $build/root"

fail() {
	echo "aarch64: $*" >&2
	exit 1
}

# not_here WHY
not_here() {
	[ "${OPTIONAL-}" = 1 ] || fail "$@"
	echo "aarch64: $*: nothing is run for it"
	exit 0
}

# names [MARK]: the tests of the list, or those that have this mark.
names() {
	# shellcheck disable=SC2086 # NAMES is a list of words
	if [ -n "${NAMES-}" ]; then
		printf '%s\n' $NAMES
	else
		sed 's/#.*//' tests/aarch64/list | awk -v mark="${1-}" 'NF && (mark == "" || index(" " $0 " ", " " mark " ")) { print $1 }'
	fi
}

# tools: the compiler and pkg-config for the libraries of the sysroot.
tools() {
	cat >"$build/cc" <<-END
		#!/bin/sh
		exec aarch64-linux-gnu-gcc --sysroot=$build/root "\$@"
	END
	cat >"$build/pkg-config" <<-END
		#!/bin/sh
		export PKG_CONFIG_LIBDIR=$build/root/usr/lib/aarch64-linux-gnu/pkgconfig
		export PKG_CONFIG_SYSROOT_DIR=$build/root
		exec pkg-config "\$@"
	END
	chmod +x "$build/cc" "$build/pkg-config"
}

configure() {
	[ -e "$build/config.mk" ] && [ ! configure -nt "$build/config.mk" ] && return
	(cd "$build" && ../configure -q --host=aarch64-linux-gnu CC="$build/cc" PKG_CONFIG="$build/pkg-config")
}

# run FOLDER CFLAGS EMULATOR TEST...: builds the tests in FOLDER and runs them.
run() {
	local folder=$1 flags=$2 programs=() name
	RUN=$3
	shift 3
	for name; do
		case $name in abi_*) ;; *) programs+=("$folder/t/$name") ;; esac
	done
	make --no-print-directory -j"$(nproc)" BUILD="$folder" CONFIG="$build/config.mk" CFLAGS="$flags" all "${programs[@]}" >"$build/make.log" 2>&1 || {
		tail -n 20 "$build/make.log"
		fail "it does not build"
	}
	BUILD=$folder HW=${HW:-shm tcp} SLOWER=2 FEWER=20 COMPILERS=$build/cc taskset -c "$one_processor" tests/run.sh "$@" || status=1
}

command -v aarch64-linux-gnu-gcc >/dev/null || not_here "there is no aarch64-linux-gnu-gcc"
command -v qemu-aarch64-static >/dev/null || not_here "there is no qemu-aarch64-static"
mkdir -p "$build"
get_sysroot "$build" || not_here "the libraries are not to be had"
tools
{ make -s configure && configure; } || fail "it cannot be configured"

status=0
export RUN
sed -n 's/^# not here: /aarch64: not run: /p' tests/aarch64/list
if [ "${SHORT-}" != 1 ]; then
	echo "aarch64: Armv8.0"
	mapfile -t tests < <(names)
	run build-aarch64/armv8.0 "-O2 -g" "$emulate -cpu cortex-a53" "${tests[@]}"
fi
echo "aarch64: Armv8.1, with its atomic instructions"
mapfile -t tests < <(names atomics)
run build-aarch64/armv8.1 "-O2 -g -march=armv8.1-a" "$emulate" "${tests[@]}"
echo "aarch64: pages of 64 KiB"
mapfile -t tests < <(names pages)
run build-aarch64/armv8.1 "-O2 -g -march=armv8.1-a" "$emulate -p 65536" "${tests[@]}"
exit $status
