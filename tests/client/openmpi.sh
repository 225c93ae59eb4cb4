#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's Open MPI, told only to use libfabric, must choose this library's first entry.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
need mpirun mpicc
mpicc -O2 -std=gnu11 -o "$work/mpi_check" tests/client/mpi_check.c || fail "mpicc"

# ranks N [OPTION...]
ranks() {
	local n=$1
	timeout 100 mpirun -n "$n" "${@:2}" -x LD_LIBRARY_PATH="$BUILD" --mca pml cm --mca mtl ofi \
		--mca opal_common_ofi_verbose 10 "$work/mpi_check" >"$work/out" 2>"$work/err" ||
		fail "$n ranks: $(tail -n 30 "$work/out" "$work/err")"
	[ "$(grep -c " of $n: .* passed with $(realpath "$lib")\$" "$work/out")" -eq "$n" ] ||
		fail "not every rank had loaded $lib: $(cat "$work/out")"
	[ "$(grep -c 'mtl:ofi:prov: weft$' "$work/err")" -eq "$n" ] || fail "not chosen: $(cat "$work/err")"
	! grep 'in exclude list' "$work/err" || fail "the first entry was not the one chosen"
	sort "$work/out"
}

ranks 1
ranks 2
ranks 3 --oversubscribe
ranks 4 --oversubscribe
