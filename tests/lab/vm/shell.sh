#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2034,SC2154 # what the files read here set, and the other way round
# A shell in a virtual machine with two RDMA devices, in this folder as it is on the host. Ctrl-A X
# ends the machine.
# KERNEL chooses its kernel.
set -u
cd "$(dirname "$0")/../../.." || exit
BUILD=$(realpath "${BUILD:-build}")
. tests/lab/vm/kernel.bash
. tests/lab/vm/boot.bash

fail() {
	echo "lab: $*" >&2
	exit 1
}

new_work
timer+=(--foreground)
trap 'rm -rf "$work"' EXIT
get_kernel "${KERNEL:-6.1}" || fail "$why"
make_initramfs "$work/initrd" yes bash tests/lab/vm/inside.sh env HW=verbs LD_LIBRARY_PATH="$BUILD" \
	PS1="lab $(cat "$kernel/name") \\w# " bash --norc -i || fail "no initramfs"
(guest 86400 -chardev stdio,id=line,mux=on,signal=off -serial chardev:line -mon chardev=line)
