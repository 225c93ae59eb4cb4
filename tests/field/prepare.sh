#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Makes a tree of a later suite of Debian, build/field/SUITE, with its compilers, libfabric and clients: prepare.sh SUITE
# It is made once and kept; `make clean` and `make distclean` remove it. FIELD_MIRROR names another mirror. Where no tree
# can be had it exits with 77 and the reason as its last line.
set -u
cd "$(dirname "$0")/../.." || exit
suite=$1
build=$(realpath "${BUILD:-build}")
tree=$build/field/$suite log=$build/field/$suite.log
groups=(build test clients tree bench)

skip() {
	echo "$*"
	exit 77
}

# run COMMAND...: its output goes into the log. A signal ends it, and all that it has begun.
job=
trap '[ -z "$job" ] || kill -KILL "$job"; exit 143' HUP INT TERM
run() {
	setpriv --pdeathsig KILL "$@" >"$log" 2>&1 </dev/null &
	job=$!
	wait "$job"
}

# packages: those of the list that the suite has.
packages() {
	# shellcheck disable=SC2046 # names
	tests/field/enter.sh "$tree" apt-cache policy $(tests/setup.sh list "${groups[@]}") |
		awk '/^[^ ]/ { name = $1 } $1 == "Candidate:" && $2 != "(none)" { sub(":$", "", name); print name }'
}

[ "$(id -u)" -eq 0 ] || skip "a tree of $suite needs root, for debootstrap and chroot"
unshare --mount --pid --fork --kill-child true 2>/dev/null || skip "a tree of $suite needs a namespace for its mounts"
[ ! -e "$tree/.made" ] || exit 0
command -v debootstrap >/dev/null || tests/setup.sh field || skip "debootstrap cannot be installed"

mkdir -p "$build/field"
if [ ! -e "$tree/etc/debian_version" ]; then
	echo "field: making a tree of $suite in $tree"
	rm -rf "$tree.part" "$tree"
	# What debootstrap mounts goes with the namespace.
	run unshare --mount --pid --fork --kill-child --propagation private debootstrap --variant=minbase "$suite" "$tree.part" \
		"${FIELD_MIRROR:-http://deb.debian.org/debian}" ||
		skip "debootstrap cannot make a tree of $suite: $(tail -n 1 "$log")"
	mv "$tree.part" "$tree"
fi
cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
run tests/field/enter.sh "$tree" apt-get -qq update || skip "no packages of $suite: $(tail -n 1 "$log")"
echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/field"
mapfile -t found < <(packages)
echo "field: installing ${#found[@]} packages and what they need in the tree of $suite"
# An earlier try may have been interrupted.
run tests/field/enter.sh "$tree" sh -c 'dpkg --configure -a && exec apt-get install -y --no-install-recommends "$@"' install \
	"${found[@]}" ||
	skip "packages of $suite cannot be installed: $(grep '^E:' "$log" | tail -n 1)"
tests/field/enter.sh "$tree" apt-get clean
touch "$tree/.made"
