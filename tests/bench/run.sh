#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs all measurements: this library, the reference (Debian's libfabric 1.17), and the limits of
# the machine. The three alternate, so that other load on the machine affects all of them; the best
# of ROUNDS rounds counts. Writes $BUILD/bench.tsv and, if gnuplot is installed, $BUILD/bench.svg.
#   BUILD (build)      ROUNDS (3)      PAIRS (weft:shm): providers compared, ours:reference
#  MPI=no leaves out NetPIPE over Open MPI, whose reference is Open MPI's shared memory (ob1, vader)
#  ONLY=messages, onesided, network or collectives: only that part; the last two are in files of their own
#  AGAINST=DIR: another build of this library (the folder of its libfabric.so.1) replaces the reference,
#   with the same provider names; the table ends with the rows that changed by more than their noise
set -u
cd "$(dirname "$0")/../.." || exit
build=$(realpath "${BUILD:-build}")
work=$build/bench
rounds=${ROUNDS:-3}
pairs=${PAIRS:-weft:shm}
tcp_references='tcp net'	# 1.17: the layered provider and the new one; later releases only have tcp
group_reference='tcp;ofi_rxm'	# the reference has no collectives over shared memory
sizes='8 64 512 4096 16384 65536 262144 1048576 4194304'
rma_sizes='8 64 512 4096 16384 65536 1048576 4194304'
mpi_sizes='8 64 512 4096 16384 65536 262144 1048576 4194304'
failed=0
mkdir -p "$work"
raw=$work/raw
: >"$raw"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

case ${ONLY-} in
'' | messages | onesided | network | collectives) ;;
*) echo "bench: ONLY is messages, onesided, network or collectives" >&2; exit 1 ;;
esac
[ -e "$build/libfabric.so.1" ] || { echo "bench: no libfabric.so.1 in $build" >&2; exit 1; }
reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
if [ -n "${AGAINST-}" ]; then
	reference=$(realpath "$AGAINST")/libfabric.so.1
	[ -e "$reference" ] || { echo "bench: no libfabric.so.1 in AGAINST=$AGAINST" >&2; exit 1; }
	rounds=${ROUNDS:-5} pairs=${PAIRS:-weft:weft} tcp_references=tcp group_reference=weft
fi

# compile PROGRAM ARGUMENT...
compile() {
	# shellcheck disable=SC2086 # a compiler and its options
	${CC:-cc} -std=gnu11 -O2 -Wall -Iinclude -o "$work/$1" "tests/bench/$1.c" "${@:2}" || exit
}

for program in client onesided connect collective; do compile $program "${reference:-$build/libfabric.so.1}"; done
compile limit
compile sockets -luring
compile tls -lssl -lcrypto
compile plain -Isrc -I. "$build/libfabric.a"

# part NAME: succeeds if the part is selected
part() { [ "${ONLY:-$1}" = "$1" ]; }

# job NAME COMMAND...: appends the command's lines to the raw figures: "SIZE VALUE" as "NAME SIZE
# VALUE", "WHAT NUMBER VALUE" as "NAME/WHAT NUMBER VALUE". Status 77: not supported.
job() {
	local name=$1 status=0
	shift
	timeout 90 "$@" >"$work/out" 2>"$work/err" || status=$?
	if [ $status -eq 0 ]; then
		awk -v name="$name" '{ row = NF > 2 ? name "/" $1 : name; print row, $(NF - 1), $NF }' "$work/out" >>"$raw"
		return
	fi
	echo "bench: $name: $([ $status -eq 77 ] && echo not offered || echo failed) (status $status): $*" >&2
	tail -n 3 "$work/err" >&2
	case $name in ours*) failed=1 ;; esac
}

# clients WHO LIBRARY_PATH PROVIDER PAIR
clients() {
	local run=(env LD_LIBRARY_PATH="$2" "$work/client")
	# shellcheck disable=SC2086 # several sizes
	job "$1/$4/tsend" "${run[@]}" "$3" lat $sizes
	job "$1/$4/tinject" "${run[@]}" -i "$3" lat 8
	job "$1/$4/tsend,thread-safe" "${run[@]}" -s "$3" lat 8
	job "$1/$4/stream" "${run[@]}" "$3" rate 8 4096
	job "$1/$4/stream,tinject" "${run[@]}" -i "$3" rate 8
}

# onesided WHO LIBRARY_PATH PROVIDER PAIR
onesided() {
	local run=(env LD_LIBRARY_PATH="$2" "$work/onesided")
	part messages || job "$1/$4/tsend" env LD_LIBRARY_PATH="$2" "$work/client" "$3" lat 8
	# shellcheck disable=SC2086
	for way in write read; do job "$1/$4/$way" "${run[@]}" "$3" $way $rma_sizes; done
	job "$1/$4/fetch_add" "${run[@]}" "$3" fetch_add 8
	for way in inject_write atomic_sum; do job "$1/$4/stream,$way" "${run[@]}" "$3" $way 8; done
	job "$1/$4/stream,inject_atomic" "${run[@]}" -i "$3" atomic_sum 8
}

# both WHO LIBRARY_PATH PROVIDER PAIR
both() {
	if part messages; then clients "$@"; fi
	if part onesided; then onesided "$@"; fi
}

limits() {
	# shellcheck disable=SC2086
	if part messages; then
		for way in copy cma; do job "limit/$way" "$work/limit" $way $sizes; done
	fi
	# shellcheck disable=SC2086
	if part onesided; then
		for way in vmwrite vmread; do job "limit/$way" "$work/limit" $way $rma_sizes; done
		job ours/plain/FI_SUM-double "$work/plain" library
		job limit/plain "$work/plain" hand
	fi
	if part messages || part onesided; then
		for way in line ring; do job limit/$way "$work/limit" $way; done
	fi
}

# netpipe SIZE MPIRUN_OPTION...: prints "SIZE MICROSECONDS"
netpipe() {
	local size=$1
	shift
	mpirun -n 2 --bind-to core "$@" NPopenmpi -p 0 -l "$size" -u "$size" -o "$work/netpipe" >&2 &&
		awk '{ printf "%d %.2f\n", $1, $3 * 1e6 }' "$work/netpipe"
}
export -f netpipe
export work

mpi() {
	local size mpi_reference=(--mca pml ob1 --mca btl self,vader)
	[ -z "${AGAINST-}" ] || mpi_reference=(-x LD_LIBRARY_PATH="$(dirname "$reference")" --mca pml cm --mca mtl ofi)
	for size in $mpi_sizes; do
		job ours/mpi/NetPIPE bash -c 'netpipe "$@"' - "$size" -x LD_LIBRARY_PATH="$build" --mca pml cm --mca mtl ofi
		[ -z "$reference" ] ||
			job reference/mpi/NetPIPE bash -c 'netpipe "$@"' - "$size" "${mpi_reference[@]}"
	done
}

# shellcheck source=tests/bench/network.sh
. tests/bench/network.sh
# shellcheck source=tests/bench/collectives.sh
. tests/bench/collectives.sh

for round in $(seq "$rounds"); do
	echo "bench: round $round of $rounds" >&2
	for pair in $pairs; do
		# What runs first has other caches and clocks: they take turns at that, too.
		[ $((round % 2)) -eq 0 ] || both ours "$build" "${pair%:*}" "$pair"
		[ -z "$reference" ] || both reference "$(dirname "$reference")" "${pair#*:}" "$pair"
		[ $((round % 2)) -eq 1 ] || both ours "$build" "${pair%:*}" "$pair"
	done
	limits
	if part network; then network "$round"; fi
	if part collectives; then collectives; fi
	if part messages && [ "${MPI-}" != no ] && command -v NPopenmpi >/dev/null; then mpi; fi
done

rm -f "$work/targets"
awk -v targets="$work/targets" -v against="${AGAINST-}" -f tests/bench/table.awk "$raw" >"$build/bench.tsv"
awk -F '\t' '{ printf "%-37s %8s %-5s %10s %10s %10s %15s %11s\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$build/bench.tsv"

if [ -n "${AGAINST-}" ]; then
	printf '\nChanged beyond noise (in each of %s rounds, by 3 %% or more), ours/AGAINST:\n' "$rounds"
	cat "$work/targets" 2>/dev/null || echo '    nothing'
	rm -f "$work/targets"
fi
# Low speed is never a failure, as the machine may be busy.
if [ -e "$work/targets" ]; then
	printf '\nMeant to be reached, and in this run:\n'
	sed 's/^/    /' "$work/targets"
	echo
fi

if part messages && command -v gnuplot >/dev/null; then
	timeout 30 gnuplot <<-END || failed=1
		set terminal svg size 900,600 background rgb "white"
		set output "$build/bench.svg"
		set title "one-way time of a tagged message between two processes"
		set xlabel "bytes"; set ylabel "microseconds"
		set logscale xy; set grid; set key left
		set datafile separator "\t"; set datafile missing "-"
		data = "< grep '/*tsend\t' '$build/bench.tsv'"
		plot data using 2:4 with linespoints title "ours", data using 2:5 with linespoints title "reference", \\
			data using 2:6 with linespoints title "limit of the machine"
	END
	echo "written: $build/bench.tsv, $build/bench.svg"
else
	echo "written: $build/bench.tsv (no picture: that takes gnuplot, and messages)"
fi
exit $failed
