#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# An OpenSHMEM runtime (shmem_node.h) that makes the calls of such runtimes in their order, with one
# endpoint and with two: locks handed over by masked swaps, waits on a region's counter, swaps and
# blocks of all with all. Runs with as many processes as processors, and with more, over each
# transport. Computing between calls takes as long with a second endpoint as with one, also in CPU
# time: no thread spins.
# TIMEOUT=240
. "$(dirname "$0")/ours.bash"
program=$work/shmem_check
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra ${WERROR-} -Iinclude -o "$program" tests/client/shmem_check.c "$lib" ||
	fail "shmem_check.c does not compile"
cores=$(nproc)
many=$((2 * cores + 3 < 24 ? 2 * cores + 3 : 24))

# run OPTION... PROGRAM: succeeds in time; its output is in $out.
run() {
	out=$(LD_LIBRARY_PATH="$(dirname "$lib")" timeout -s KILL $((60 * ${SLOWER:-1})) "$program" "$@" 2>&1) ||
		fail "$*: $out"
}

for provider in shm tcp weft; do
	for endpoints in 1 2; do
		for pes in 2 $many; do
			for name in locks waits swaps blocks; do
				run -p $provider -e $endpoints -n "$pes" -r 60 -w 1000 $name
			done
			run -p $provider -e $endpoints -n "$pes" -r 30 -q locks
		done
		echo "$provider, $endpoints endpoint(s): 2 and $many processes"
	done
done
run -p shm -e 2 -n 1 locks
run -p shm -e 1 -n 1 waits

# pace PROVIDER ENDPOINTS: sets $took and $used, the least wall time and CPU time (us) of some
# tries.
pace() {
	local try wall cpu
	took=0 used=0
	for try in 1 2 3 4 5; do
		run -p "$1" -e "$2" -n $((2 * cores)) -r 800 -w 15000 pace
		read -r wall _ cpu _ <<<"${out/,/}"
		wall=$((10#${wall/./}))
		cpu=$((10#${cpu/./}))
		[ "$try" -gt 1 ] && [ "$took" -lt "$wall" ] || took=$wall
		[ "$try" -gt 1 ] && [ "$used" -lt "$cpu" ] || used=$cpu
	done
}

# Other programs on this machine disturb single figures by the size of the effect tested: a second
# endpoint once took three times as long.
for provider in shm tcp; do
	pace $provider 1
	one=$took one_used=$used
	pace $provider 2
	echo "$provider: $one ms with one endpoint, $took with two; of processors $one_used and $used"
	[ "$used" -le $((one_used * 3 / 2 + 20)) ] || fail "two endpoints use more of the processors"
	[ "$took" -le $((one * 2 + 50 * ${SLOWER:-1})) ] || fail "two endpoints take longer"
done
