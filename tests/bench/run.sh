#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The measurements on one page: ours, the reference (Debian's libfabric 1.17), and what the machine itself can do.
# Ours, the reference and the limits take turns, so that whatever else the machine does hits all of them; of
# ROUNDS rounds the best counts. Writes $BUILD/bench.tsv and, where gnuplot is, $BUILD/bench.svg.
#   BUILD (build)      ROUNDS (3)      PAIRS (weft:shm): providers compared, ours:reference
#   MPI=no leaves NetPIPE over Open MPI out: its reference is Open MPI's own shared memory (ob1, vader)
set -u
cd "$(dirname "$0")/../.." || exit
build=$(realpath "${BUILD:-build}")
work=$build/bench
rounds=${ROUNDS:-3}
pairs=${PAIRS:-weft:shm}
sizes='8 64 512 4096 16384 65536 262144 1048576 4194304'
mpi_sizes='8 64 512 4096 16384 65536 262144 1048576 4194304'
failed=0
mkdir -p "$work"
raw=$work/raw
: >"$raw"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

[ -e "$build/libfabric.so.1" ] || { echo "bench: no libfabric.so.1 in $build" >&2; exit 1; }
reference=$(ldconfig -p | awk '$1 == "libfabric.so.1" { print $NF; exit }')
for program in client limit; do
	library=
	[ $program = limit ] || library=${reference:-$build/libfabric.so.1}
	# shellcheck disable=SC2086 # no library, no argument
	${CC:-cc} -std=gnu11 -O2 -Wall -Iinclude -o "$work/$program" tests/bench/$program.c $library || exit
done

# job NAME COMMAND...: adds its lines "SIZE VALUE" to the raw figures as "NAME SIZE VALUE".
job() {
	local name=$1
	shift
	if timeout 90 "$@" >"$work/out" 2>"$work/err"; then
		awk -v name="$name" '{ print name, $1, $2 }' "$work/out" >>"$raw"
	else
		echo "bench: $name: failed (status $?): $*" >&2
		tail -n 3 "$work/err" >&2
		case $name in ours*) failed=1 ;; esac
	fi
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

limits() {
	# shellcheck disable=SC2086
	for way in copy cma tcp; do job "limit/$way" "$work/limit" $way $sizes; done
	job limit/line "$work/limit" line
	job limit/ring "$work/limit" ring
}

# netpipe SIZE MPIRUN_OPTION...: "SIZE MICROSECONDS"
netpipe() {
	local size=$1
	shift
	mpirun -n 2 --bind-to core "$@" NPopenmpi -p 0 -l "$size" -u "$size" -o "$work/netpipe" >&2 &&
		awk '{ printf "%d %.2f\n", $1, $3 * 1e6 }' "$work/netpipe"
}
export -f netpipe
export work

mpi() {
	local size
	for size in $mpi_sizes; do
		job ours/mpi/NetPIPE bash -c 'netpipe "$@"' - "$size" -x LD_LIBRARY_PATH="$build" --mca pml cm --mca mtl ofi
		[ -z "$reference" ] ||
			job reference/mpi/NetPIPE bash -c 'netpipe "$@"' - "$size" --mca pml ob1 --mca btl self,vader
	done
}

for round in $(seq "$rounds"); do
	echo "bench: round $round of $rounds" >&2
	for pair in $pairs; do
		clients ours "$build" "${pair%:*}" "$pair"
		[ -z "$reference" ] || clients reference "$(dirname "$reference")" "${pair#*:}" "$pair"
	done
	limits
	if [ "${MPI-}" != no ] && command -v NPopenmpi >/dev/null; then mpi; fi
done

# What bounds a row: inside a host the better of two copies and one fetch, over tcp a bare socket; for streams a bare
# ring of cache lines. Times: less is better; streams: more is. The ratios are quotients of the figures as they stand.
awk -v OFS='\t' '
	function better(kind, a, b) { return a == "" ? b : (kind ~ /stream|ring/) == (b + 0 > a + 0) ? b : a }
	function least(a, b) { return a == "" || (b != "" && b + 0 < a + 0) ? b : a }
	function figure(value) { return value == "" ? "-" : sprintf("%.3f", value) }
	function ratio(a, b) { return a == "" || b == "" || !b ? "-" : sprintf("%.2f", a / b) }
	{
		best[$1, $2] = better($1, best[$1, $2], $3)
		if ($1 !~ /^limit/) {
			row = substr($1, index($1, "/") + 1)
			if (!seen[row, $2]++) { rows[++count] = row; at[count] = $2 }
		}
	}
	END {
		print "what", "bytes", "unit", "ours", "reference", "limit", "ours/reference", "ours/limit"
		for (i = 1; i <= count; i++) {
			row = rows[i]; size = at[i]
			limit = least(best["limit/copy", size], best["limit/cma", size])
			if (row ~ /:(tcp|net|sockets)/) limit = best["limit/tcp", size]
			if (row ~ /stream/) limit = size == 8 ? best["limit/ring", 8] : ""
			ours = best["ours/" row, size]; reference = best["reference/" row, size]
			print row, size, row ~ /stream/ ? "M/s" : "us", figure(ours), figure(reference), figure(limit),
				ratio(ours, reference), ratio(ours, limit)
		}
		print "a cache line handed over", 64, "us", "-", "-", figure(best["limit/line", 8]), "-", "-"
		print "TCP socket, spinning", 8, "us", "-", "-", figure(best["limit/tcp", 8]), "-", "-"
	}' "$raw" >"$build/bench.tsv"

awk -F '\t' '{ printf "%-30s %8s %-4s %10s %10s %10s %15s %11s\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$build/bench.tsv"

if command -v gnuplot >/dev/null; then
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
	echo "written: $build/bench.tsv (no gnuplot here: no picture)"
fi
exit $failed
