#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One-sided communication of the distribution's Open MPI: osc/rdma over btl/ofi over this library.
# No other transport between ranks is permitted, so data that arrives in windows made by
# MPI_Win_create has come through the library. Of windows allocated by Open MPI it maps the parts of
# other ranks, and uses the library for the rest.
# TIMEOUT=400
. "$(dirname "$0")/ours.bash"
need mpirun mpicc
for program in mpi_rma mpi_accumulate; do
	mpicc -O2 -std=gnu11 -o "$work/$program" tests/client/$program.c || fail "mpicc $program"
done

# run N BTL OPTION... PROGRAM WORD...
run() {
	timeout 60 mpirun -n "$1" --oversubscribe -x LD_LIBRARY_PATH="$BUILD" --mca pml cm --mca mtl ofi \
		--mca btl "$2" --mca osc rdma --mca btl_base_verbose 10 "${@:3}" >"$work/out" 2>"$work/err"
}

# ranks N OPTION... PROGRAM WORD...
ranks() {
	local n=$1
	run "$n" self,ofi "${@:2}" || fail "$*: $(tail -n 30 "$work/out" "$work/err")"
	[ "$(grep -c 'init of component ofi returned success' "$work/err")" -eq "$n" ] ||
		fail "$*: btl/ofi was not chosen: $(cat "$work/err")"
	[ "$(grep -c " of $n: .* passed with $(realpath "$lib")\$" "$work/out")" -eq "$n" ] ||
		fail "not every rank had loaded $lib: $(cat "$work/out")"
	sort "$work/out"
}

# Shows that nothing else transports the data: without btl/ofi there are no windows.
! run 2 self "$work/mpi_rma" create || fail "it works without btl/ofi: $(cat "$work/out")"
grep -q 'no window: MPI_ERR_WIN' "$work/out" ||
	fail "without btl/ofi it fails for another reason: $(cat "$work/out" "$work/err")"

for n in 2 4; do
	for window in create allocate; do
		ranks $n "$work/mpi_rma" $window
		# once with the atomics of btl/ofi, once with compare-and-swap alone
		ranks $n "$work/mpi_accumulate" $window no-max
		ranks $n --mca osc_rdma_acc_use_amo false "$work/mpi_accumulate" $window
	done
done
