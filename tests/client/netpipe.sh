#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# NetPIPE over Open MPI over this library: once with its data check, once for its figures.
# TIMEOUT=120
. "$(dirname "$0")/ours.bash"
need mpirun NPopenmpi

# netpipe OPTION...
netpipe() {
	timeout 50 mpirun -n 2 -x LD_LIBRARY_PATH="$BUILD" --mca pml cm --mca mtl ofi --mca opal_common_ofi_verbose 10 \
		NPopenmpi -o "$work/figures" "$@" >"$work/out" 2>&1 || fail "NPopenmpi $*: $(tail -n 30 "$work/out")"
	[ "$(grep -c 'mtl:ofi:prov: weft$' "$work/out")" -eq 2 ] || fail "ours was not chosen: $(cat "$work/out")"
}

netpipe -i -u 100000
grep -qi 'integrity' "$work/out" || fail "no check of the data: $(tail -n 5 "$work/out")"
! grep -i 'integrity check failed' "$work/out" || fail "wrong data"
netpipe -u 1048576 -n 50
awk '$1 >= 1048576 { seen = 1 } END { exit !seen }' "$work/figures" || fail "it did not reach 1 MiB"
awk '$1 == 8 || $1 == 65536 || $1 == 1048576 { printf "%8d bytes %8.2f us\n", $1, $3 * 1e6 }' "$work/figures"
