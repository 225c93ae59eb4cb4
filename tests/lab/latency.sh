#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How long 8 bytes take one way, beside what perftest's ib_send_lat needs for them, in the same boot, each side on a CPU of
# its own. The best of several runs of each in turn. It wants a machine that has nothing else to do.
#     ROUNDS    runs of each (5)
#     TIMES     exchanges of a run (1000)
# TIMEOUT=240
. "$(dirname "$0")/lab.bash"
need ib_send_lat fi_pingpong taskset rdma ip awk
times=${TIMES:-1000} rounds=${ROUNDS:-5}
objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# interface ADDRESS: whose it is.
interface() {
	ip -o -4 addr show | awk -v address="$1" '{ split($4, a, "/") } a[1] == address { print $2 }'
}

# least OLD NEW
least() {
	awk -v a="$1" -v b="$2" 'BEGIN { print a == "" || b < a ? b : a }'
}

# theirs: sets $figure, microseconds: the mean, as ours is.
theirs() {
	next_port
	pair listening taskset -c 0 ib_send_lat -p $port -s 8 -n $times -F -d "${device[0]}" -x "${gid[0]}" -- \
		taskset -c 1 ib_send_lat -p $port -s 8 -n $times -F -d "${device[1]}" -x "${gid[1]}" "${address[0]}"
	figure=$(awk -v n=$times '$1 == 8 && $2 == n { print $6 }' "$work/client")
	[ -n "$figure" ] || fail "ib_send_lat: $(cat "$work/client")"
}

# ours PROVIDER TYPE: the same.
ours() {
	local options=(-p "$1" -e "$2" -I $times -S 8)
	next_port
	export LD_LIBRARY_PATH=$BUILD
	pair listening taskset -c 0 fi_pingpong "${options[@]}" -d "$(interface "${address[0]}")" -B $port -- \
		taskset -c 1 fi_pingpong "${options[@]}" -d "$(interface "${address[1]}")" -P $port "${address[0]}"
	unset LD_LIBRARY_PATH
	figure=$(awk '$1 == 8 { print $7 }' "$work/client")
	[ -n "$figure" ] || fail "fi_pingpong: $(cat "$work/client")"
}

before=$(objects)
perftest='' msg='' rdm=''
for ((round = 0; round < rounds; round++)); do
	theirs && perftest=$(least "$perftest" "$figure")
	ours verbs msg && msg=$(least "$msg" "$figure")
	ours 'verbs;ofi_rxm' rdm && rdm=$(least "$rdm" "$figure")
done
echo "8 bytes one way, us: ib_send_lat $perftest, MSG $msg, RDM $rdm"

# within_ratio NAME FIGURE MOST
within_ratio() {
	awk -v name="$1" -v a="$2" -v b="$perftest" -v most="$3" 'BEGIN {
		printf "%s: %.2f of ib_send_lat, at most %s\n", name, a / b, most
		exit a / b > most
	}'
}
status=0
within_ratio MSG "$msg" 1.05 || status=1
within_ratio RDM "$rdm" 1.25 || status=1
[ "$(objects)" = "$before" ] || fail "left behind: $(objects), before: $before"
exit $status
