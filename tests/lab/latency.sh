#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How long 8 bytes take one way, beside what perftest's ib_send_lat needs for them, and how fast writes of 64 KiB are,
# beside its ib_write_bw: in the same boot, each side on a CPU of its own, in rounds. Each is compared with its neighbour of
# the round, and of the rounds' ratios the median counts. It wants a machine that has nothing else to do.
#     ROUNDS, TIMES, WRITES    runs of each (5), exchanges of a run (1000), writes of a run (500)
# Of the exchanges of a run the median is taken, after some that nobody times: whatever a machine is at besides spoils a
# mean, and that of fi_pingpong is from the first message on, which waits until two endpoints are connected.
# TIMEOUT=300
. "$(dirname "$0")/lab.bash"
need ib_send_lat ib_write_bw taskset rdma awk
times=${TIMES:-1000} rounds=${ROUNDS:-5} writes=${WRITES:-500}
depth=16 # writes under way

objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# perftest COLUMN PROGRAM OPTION...: sets $figure to that column of what the client says.
perftest() {
	next_port
	pair listening taskset -c 0 "${@:2}" -p $port -F -d "${device[0]}" -x "${gid[0]}" -- \
		taskset -c 1 "${@:2}" -p $port -F -d "${device[1]}" -x "${gid[1]}" "${address[0]}"
	figure=$(awk -v column="$1" '$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= column { print $column }' "$work/client")
	[ -n "$figure" ] || fail "$2: $(cat "$work/client")"
}

# ours TYPE WHAT SIZE COUNT: the same, of the provider verbs.
ours() {
	timeout 60 "$BUILD/t/lab_pace" "$@" "${address[@]}" >"$work/ours" 2>&1 || fail "lab_pace $*: $(cat "$work/ours")"
	read -r figure _ <"$work/ours"
}

# note NAME: the figure is this round's.
declare -A figures=()
note() {
	figures[$1]+="$figure "
	line+=", $1 $figure"
}

before=$(objects)
for ((round = 0; round < rounds; round++)); do
	line="round $round"
	perftest 5 ib_send_lat -s 8 -n $times && note ib_send_lat
	ours msg lat 8 $times && note MSG
	ours rdm lat 8 $times && note RDM
	perftest 4 ib_write_bw -s 65536 -n $writes -t $depth && note ib_write_bw
	ours msg write 65536 $writes && note 'MSG write'
	ours rdm write 65536 $writes && note 'RDM write'
	echo "$line"
done

# ratio NAME OTHER at-most|at-least BOUND: of the rounds' ratios the median.
status=0
ratio() {
	paste <(tr ' ' '\n' <<<"${figures[$1]% }") <(tr ' ' '\n' <<<"${figures[$2]% }") | awk '{ print $1 / $2 }' | sort -n |
		awk -v name="$1" -v other="$2" -v how="$3" -v bound="$4" '{ ratio[NR] = $1 } END {
			middle = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
			printf "%s: %.2f of %s, %s %s\n", name, middle, other, how, bound
			exit how == "at-most" ? middle > bound : middle < bound
		}' || status=1
}
ratio MSG ib_send_lat at-most 1.05
ratio RDM ib_send_lat at-most 1.25
ratio 'MSG write' ib_write_bw at-least 0.95
ratio 'RDM write' ib_write_bw at-least 0.95
[ "$(objects)" = "$before" ] || fail "left behind: $(objects), before: $before"
exit $status
