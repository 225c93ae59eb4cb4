# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # variables of run.sh, which reads this file
# The collectives part of run.sh: this library inside a host; the reference over its network
# provider, as it has none over shared memory; and as limit Open MPI's collectives over shared
# memory. Two members have a core each; more members share cores and sleep.
if part collectives && [ "${MPI-}" != no ] && command -v mpicc >/dev/null; then
	mpicc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -o "$work/collective_mpi" tests/bench/collective_mpi.c || exit
fi

# group MEMBERS WHAT SIZE
group() {
	local row=collective/$2/$1 bind='--bind-to core' times=5 _
	[ "$3" -gt 8 ] || times=15 # the shortest sizes vary most from run to run
	[ "$1" -le "$(nproc)" ] || bind='--oversubscribe --bind-to none --mca mpi_yield_when_idle 1'
	[ -z "$reference" ] ||
		job "reference/$row" env LD_LIBRARY_PATH="$(dirname "$reference")" "$work/collective" "$group_reference" "$@"
	for _ in $(seq $times); do
		job "ours/$row" env LD_LIBRARY_PATH="$build" "$work/collective" weft "$@"
		# shellcheck disable=SC2086 # several options
		[ ! -x "$work/collective_mpi" ] ||
			job "limit/$row" mpirun -n "$1" $bind --mca pml ob1 --mca btl self,vader "$work/collective_mpi" "${@:2}"
	done
}

# Each size runs alone: from some size on the reference fails, or gives wrong results.
collectives() {
	local members size
	for members in 2 4 8; do
		group $members barrier 8
		group $members allreduce 8
		for size in 65536 1048576; do
			group $members allreduce $size
			group $members broadcast $size
			group $members alltoall $size
		done
	done
}
