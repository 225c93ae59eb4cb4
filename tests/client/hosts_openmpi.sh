#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's Open MPI over this library, on four hosts of two ranks each: messages over
# mtl/ofi, one-sided communication over btl/ofi. The only configuration is to use libfabric. The
# bytes on the loopback show that ranks of one host use shared memory, and that with TCP alone they
# do not.
#     OTHER=/path/libfabric.so.1 bash tests/client/hosts_openmpi.sh    tests the test, on another library
# TIMEOUT=500
# shellcheck disable=SC2154,SC2034,SC2016 # what hosts.bash sets and uses; words for a shell
. "$(dirname "$0")/hosts.bash"
need mpirun mpicc
hosts=4 each=2
total=$((hosts * each))
lib=$(realpath "${OTHER:-$lib}")
for program in mpi_check mpi_rma; do
	mpicc -O2 -std=gnu11 -o "$work/$program" tests/client/$program.c || fail "mpicc $program"
done

# ranks PROVIDER OPTION... PROGRAM WORD...: runs all ranks, the first ones on the first host; sets
# $loopback.
ranks() {
	local h before=()
	for ((h = 1; h <= hosts; h++)); do before[h]=$(received $h lo); done
	on 1 timeout -k 5 120 "${mpirun[@]}" -x LD_LIBRARY_PATH="$(dirname "$lib")" --mca pml cm --mca mtl ofi \
		--mca opal_common_ofi_verbose 10 --mca btl_base_verbose 10 "${@:2}" >"$work/out" 2>"$work/err" ||
		fail "$*: $(tail -n 30 "$work/out" "$work/err")"
	[ "$(grep -c " of $total: .* passed with $lib\$" "$work/out")" -eq $total ] ||
		fail "$*: not every rank had loaded $lib: $(cat "$work/out")"
	[ "$(grep -c "mtl:ofi:prov: $1\$" "$work/err")" -eq $total ] || fail "$*: not chosen: $(cat "$work/err")"
	for ((h = 1; h <= hosts; h++)); do loopback[h]=$(($(received $h lo) - before[h])); done
	echo "$*: $(head -n 1 "$work/out"); bytes on the loopbacks: ${loopback[*]}"
}
loopback=()

# loopback_carried LEAST MOST: checks the bytes on every host. Open MPI itself sends some 20 kB
# there.
loopback_carried() {
	local bytes
	for bytes in "${loopback[@]}"; do
		[ "$bytes" -ge "$1" ] && [ "$bytes" -le "$2" ] || fail "on the loopbacks: ${loopback[*]}"
	done
}

apart= # mpirun and its processes must see each other's process ids across hosts
make_hosts $hosts
mpi_hosts $each

over_tcp=(-x FI_PROVIDER=tcp --mca btl self --mca mtl_ofi_provider_include)
if [ -n "${OTHER-}" ]; then
	ranks 'tcp;ofi_rxm' "${over_tcp[@]}" 'tcp;ofi_rxm' "$work/mpi_check"
	loopback_carried 30000000 100000000
	exit
fi
ranks weft --mca btl self "$work/mpi_check"
loopback_carried 1 500000
ranks tcp "${over_tcp[@]}" tcp "$work/mpi_check"
loopback_carried 30000000 100000000
for window in create allocate; do
	ranks weft --mca btl self,ofi --mca osc rdma "$work/mpi_rma" $window
	[ "$(grep -c 'init of component ofi returned success' "$work/err")" -eq $total ] ||
		fail "btl/ofi was not chosen: $(cat "$work/err")"
	loopback_carried 1 500000
done
