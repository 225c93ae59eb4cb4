#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# MPICH over this library: messages, one-sided communication, atomics, all of it also between ranks
# of one host. The distribution's MPICH does not use libfabric, so another one is needed:
#   MPICH=/prefix make t/client_mpich     one configured --with-device=ch4:ofi
#   MPICH=build make t/client_mpich       builds one from the distribution's source first: some ten minutes
#   make t/client_mpich                   the one that was built so before, or none
# TIMEOUT=1800
. "$(dirname "$0")/ours.bash"
. "$(dirname "$0")/mpich.bash"

find_mpich

# MPIR_CVAR_NOLOCAL: ranks treat each other as if on different hosts, so that all data uses
# libfabric.
export LD_LIBRARY_PATH=$BUILD:$prefix/lib MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_DEBUG_SUMMARY=1
for program in mpi_check mpi_rma mpi_accumulate; do
	"$prefix/bin/mpicc" -O2 -w -std=gnu11 -o "$work/$program" tests/client/$program.c || fail "mpicc $program"
done

# ranks N PROGRAM WORD...
ranks() {
	timeout 120 "$prefix/bin/mpiexec" -n "$@" >"$work/out" 2>"$work/err" ||
		fail "$*: $(tail -n 30 "$work/out" "$work/err")"
	[ "$(grep -c " of $1: .* passed with $(realpath "$lib")\$" "$work/out")" -eq "$1" ] ||
		fail "not every rank had loaded $lib: $(cat "$work/out")"
	local line
	for line in 'libfabric provider: weft - ' 'MPIDI_OFI_ENABLE_TAGGED: 1' 'MPIDI_OFI_ENABLE_RMA: 1' \
		'MPIDI_OFI_ENABLE_ATOMICS: 1'; do
		grep -q "^$line" "$work/out" || fail "$*: no line '$line': $(cat "$work/out")"
	done
	grep '^rank' "$work/out" | sort
}

for n in 2 3; do
	ranks $n "$work/mpi_check"
	for window in create allocate; do
		ranks $n "$work/mpi_rma" $window
		ranks $n "$work/mpi_accumulate" $window
	done
done
