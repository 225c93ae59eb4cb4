#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's Open MPI, two ranks over queue pairs of the devices.
# TIMEOUT=120
. "$(dirname "$0")/lab.bash"
need mpirun mpicc
mpicc -O2 -std=gnu11 -o "$work/mpi_check" tests/client/mpi_check.c || fail "mpicc"
ulimit -l unlimited
timeout 100 mpirun -n 2 --bind-to none -x LD_LIBRARY_PATH="$BUILD" -x FI_PROVIDER='verbs;ofi_rxm' --mca pml cm --mca mtl ofi \
	--mca opal_common_ofi_verbose 10 "$work/mpi_check" >"$work/out" 2>"$work/err" ||
	fail "$(tail -n 30 "$work/out" "$work/err")"
[ "$(grep -c " of 2: .* passed with $(realpath "$lib")\$" "$work/out")" -eq 2 ] ||
	fail "not every rank had loaded $lib: $(cat "$work/out")"
[ "$(grep -c 'mtl:ofi:prov: verbs;ofi_rxm$' "$work/err")" -eq 2 ] || fail "not chosen: $(cat "$work/err")"
sort "$work/out"
