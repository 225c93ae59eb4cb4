#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One-way time of 8 bytes beside perftest's ib_send_lat, and bandwidth of writes of 64 KiB beside
# ib_write_bw: in one boot, each side on its own CPU, in rounds. Each figure is compared with its
# neighbour in the round; the median of the rounds' ratios counts. Needs an idle machine.
#     ROUNDS, TIMES, WRITES    runs of each (5), exchanges of a run (1000), writes of a run (500)
# The median of a run is taken, after untimed exchanges: other processes of a machine spoil a mean.
# fi_pingpong's mean includes the first message, which waits for the connection.
# TIMEOUT=300
. "$(dirname "$0")/lab.bash"
need ib_send_lat ib_write_bw taskset rdma awk
times=${TIMES:-1000} rounds=${ROUNDS:-5} writes=${WRITES:-500}
depth=16 # writes in flight

objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# perftest COLUMN PROGRAM OPTION...: sets $figure to that column of the client's output.
perftest() {
	next_port
	pair listening taskset -c 0 "${@:2}" -p $port -F -d "${device[0]}" -x "${gid[0]}" -- \
		taskset -c 1 "${@:2}" -p $port -F -d "${device[1]}" -x "${gid[1]}" "${address[0]}"
	figure=$(awk -v column="$1" '$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= column { print $column }' "$work/client")
	[ -n "$figure" ] || fail "$2: $(cat "$work/client")"
}

# ours TYPE WHAT SIZE COUNT: the same for the provider verbs.
ours() {
	timeout 60 "$BUILD/t/lab_pace" "$@" "${address[@]}" >"$work/ours" 2>&1 || fail "lab_pace $*: $(cat "$work/ours")"
	read -r figure _ <"$work/ours"
}

# note NAME: stores the figure for this round.
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

# ratio NAME OTHER at-most|at-least BOUND: checks the median of the rounds' ratios.
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
