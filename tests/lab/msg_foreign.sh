#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Connected endpoints of the provider "verbs" interoperate with independent programs: rdma_peer,
# which uses librdmacm and libibverbs alone, in every step, and Debian's fi_pingpong. Private data
# of requests and answers arrives, a rejected process gets an error, and nothing is left on the
# device.
# TIMEOUT=200 KERNELS=all
. "$(dirname "$0")/lab.bash"
need rdma
ours=$BUILD/t/lab_msg_peer theirs=$BUILD/t/lab_rdma_peer patience=(-t $((10 * ${SLOWER:-1})))
export LD_LIBRARY_PATH=$BUILD

# objects: prints how many of each kind exist on all devices.
objects() {
	rdma resource show | sed 's/ctx [0-9]*//'
}

# talk SERVER CLIENT FROM TO [LISTEN-OPTION... -- CONNECT-OPTION...]
talk() {
	local server=$1 client=$2 from=$3 to=$4 options=()
	shift 4
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	next_port
	pair rdma_listening "$server" listen "${address[to]}" $port "${patience[@]}" "${options[@]}" -- \
		"$client" connect "${address[to]}" $port -b "${address[from]}" "${patience[@]}" "$@"
	tail -qn 1 "$work/server" "$work/client" | grep -vx 'all as it should be' && fail "$(cat "$work/server" "$work/client")"
	options=("${options[*]}" "$*")
	echo "${client##*_lab_} to ${server##*_lab_}: listen ${options[0]:0:20}, connect ${options[1]:0:20}: done"
}

# steps COUNT: each side has printed so many steps.
steps() {
	local file
	for file in "$work/server" "$work/client"; do
		[ "$(grep -cE '^(send|write|read|add|swap): (served|initiated)$' "$file")" -eq "$1" ] ||
			fail "not $1 steps: $(cat "$work/server" "$work/client")"
	done
}

before=$(objects)
request=0123456789abcdef0123456789abcdef0123456789abcdef01234567 # the maximum length
answer=$request$request$request
talk "$ours" "$theirs" 1 0 -d "$answer" -w "$request" -- -d "$request" -w "$answer" -e
steps 10
talk "$theirs" "$ours" 1 0 -d "$answer" -w "$request" -e -- -d "$request" -w "$answer"
steps 10
talk "$ours" "$theirs" 0 1 -l -e -s 1048576 -- -s 1048576
steps 10
talk "$theirs" "$ours" 0 1 -s 1048576 -- -l -e -s 1048576
steps 10
talk "$ours" "$ours" 0 0 -e -- -l
steps 10
talk "$ours" "$theirs" 1 0 -r -d 'no room' -w please -- -r -d please -w 'no room'
talk "$theirs" "$ours" 1 0 -r -d 'no room' -w please -- -r -d please -w 'no room'
steps 0
next_port
timeout 60 "$ours" connect "${address[0]}" $port -b "${address[1]}" "${patience[@]}" -n >"$work/client" 2>&1 ||
	fail "nobody listens: $(cat "$work/client")"

# A waiting process notices the death of the other side.
next_port
start timeout 60 "$ours" listen "${address[0]}" $port "${patience[@]}" -k none -l >"$work/server" 2>&1
server=$pid
within 30 rdma_listening $port || fail "$(cat "$work/server")"
start "$theirs" connect "${address[0]}" $port -b "${address[1]}" "${patience[@]}" -k none >"$work/client" 2>&1
client=$pid
within 30 grep -q '^connected' "$work/client" || fail "$(cat "$work/client")"
sleep 1
kill -KILL "$client"
wait "$server" || fail "a peer that dies: $(cat "$work/server")"
echo "a peer that dies: heard of"

for size in 64 65536; do
	next_port
	start timeout 60 fi_pingpong -p verbs -e msg -I 20 -S $size -c -B $port >"$work/server" 2>&1
	server=$pid
	within 20 listening $port || fail "fi_pingpong: $(cat "$work/server")"
	timeout 60 fi_pingpong -p verbs -e msg -I 20 -S $size -c -P $port "${address[0]}" >"$work/client" 2>&1 ||
		fail "fi_pingpong: $(cat "$work/client" "$work/server")"
	wait "$server" || fail "fi_pingpong: the server: $(cat "$work/server")"
	grep -qE '^[0-9]+k? +20 +=20 ' "$work/client" || fail "fi_pingpong: $(cat "$work/client")"
	echo "fi_pingpong: $size bytes: done"
done

gone() {
	[ "$(objects)" = "$before" ]
}
within 10 gone || fail "left behind: $(objects), before: $before"
