#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds this library in trees of later suites of Debian, with their compilers, runs a part of its tests there, and clients'
# programs of these suites over it: what `make check-field` does. Read from the environment:
#   FIELD     the suites; default: trixie sid
#   STEPS     some of: gcc clang clients; default: all
#   and SUITES, TESTS, AGAIN, ... of tests/client/suites/run.py, which writes docs/COMPATIBILITY.md and README.md's list
# The status is 0 if nothing failed; a suite that cannot be had here is named, and is no failure.
set -u
cd "$(dirname "$0")/../.." || exit
build=$(realpath "${BUILD:-build}")
steps=${STEPS:-gcc clang clients}
clients="tools mpi-plain mpi-cm mpi-rma mpich-package mpi4py-bench sweeps sweeps-rma sst coarrays coarrays-rma lammps gromacs nwchem"
failures=() absent=()

# put_sources TREE: the working tree's files without what was built, which stays what it was in the tree.
put_sources() {
	mkdir -p "$1/weft"
	find "$1/weft" -mindepth 1 -maxdepth 1 ! -name 'build*' ! -name 'config*' ! -name autom4te.cache -exec rm -rf {} +
	git ls-files -z -co --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$1/weft"
	commit=$(git rev-parse --short HEAD)$([ -z "$(git status --porcelain -uno src include)" ] || echo +)
}

# run COMMAND...: so that a signal is not kept waiting.
run() {
	"$@" &
	job=$!
	wait "$job"
}

# inside COMMAND [NAME=VALUE...]: runs a command of the shell in the sources of the tree, with a limit of time.
inside() {
	run timeout --kill-after=10 "${limit:-1800}" tests/field/enter.sh "$tree" "${@:2}" bash -c "cd /weft && $1"
}

# step NAME COMMAND...
step() {
	case " $steps " in *" ${1%% *} "*) ;; *) return ;; esac
	echo "== $suite: $1"
	"${@:2}" || failures+=("$suite: $1")
}

# built COMPILER: builds and shows it at work, then the short form of its tests.
built() {
	local with="CC=$1 BUILD=build-$1"
	inside "$1 --version | head -n 1; make $with demo >build-$1.log 2>&1 || { tail -n 30 build-$1.log; exit 1; }
		make $with fast >>build-$1.log 2>&1; s=\$?
		grep -aE 'warning:|FAIL' build-$1.log; tail -n 1 build-$1.log; exit \$s" HW=weft FEWER=10
}

# clients_run: those of tests/client/suites.
clients_run() {
	local status
	limit=7200 inside "make CC=gcc BUILD=build-gcc all >build-gcc.log 2>&1 || { tail -n 30 build-gcc.log; exit 1; }
		exec python3 tests/client/suites/run.py" FIELD="$suite" \
		COMMIT="$commit" SUITES="${SUITES-$clients}" BUILD=build-gcc TESTS="${TESTS-}" AGAIN="${AGAIN-}" \
		SLOWER="${SLOWER:-1}"
	status=$?
	cp "$tree/weft/README.md" README.md
	cp "$tree/weft/docs/COMPATIBILITY.md" docs/COMPATIBILITY.md
	return $status
}

job= # of which all ends with it
trap '[ -z "$job" ] || kill "$job"; exit 130' HUP INT TERM
for suite in ${FIELD:-trixie sid}; do
	tree=$build/field/$suite
	if ! run tests/field/prepare.sh "$suite"; then
		absent+=("$suite")
		continue
	fi
	put_sources "$tree"
	step gcc built gcc
	step clang built clang
	step clients clients_run
done

[ ${#absent[@]} -eq 0 ] || echo "not run, as said above: ${absent[*]}"
[ ${#failures[@]} -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
[ ${#failures[@]} -eq 0 ]
