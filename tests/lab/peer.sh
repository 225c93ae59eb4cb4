#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two rdma_peer, the independent partner of connected endpoints, interoperate, and detect
# deviations.
# TIMEOUT=120
. "$(dirname "$0")/lab.bash"
need rdma
peer=$BUILD/t/lab_rdma_peer patience=(-t $((10 * ${SLOWER:-1})))

# talk FROM TO [LISTEN-OPTION... -- CONNECT-OPTION...]
talk() {
	local from=$1 to=$2 options=()
	shift 2
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	next_port
	pair rdma_listening "$peer" listen "${address[to]}" $port "${patience[@]}" "${options[@]}" -- \
		"$peer" connect "${address[to]}" $port -b "${address[from]}" "${patience[@]}" "$@"
	grep -q "device ${device[from]}," "$work/client" || fail "not from ${device[from]}: $(cat "$work/client")"
	tail -qn 1 "$work/server" "$work/client" | grep -vx 'all as it should be' && fail "$(cat "$work/server" "$work/client")"
	options=("${options[*]}" "$*")
	echo "from ${device[from]} to ${device[to]}: listen ${options[0]:0:20}, connect ${options[1]:0:20}: done"
}

# steps FILE: prints the lines of steps in it.
steps() {
	grep -cE '^(send|write|read|add|swap): (served|initiated)$' "$1"
}

all_steps() {
	[ "$(steps "$work/server") $(steps "$work/client")" = "10 10" ] ||
		fail "not all steps: $(cat "$work/server" "$work/client")"
}

request=0123456789abcdef0123456789abcdef0123456789abcdef01234567 # the maximum length
answer=$request$request$request
for way in '0 1' '1 0' '0 0'; do
	# shellcheck disable=SC2086 # two numbers
	talk $way -d "$answer" -w "$request" -- -d "$request" -w "$answer" -e
	all_steps
done
talk 0 1 -s 1048576 -e -- -s 1048576
all_steps
talk 0 1 -k read,add -- -k read,add -e
[ "$(steps "$work/client")" -eq 4 ] || fail "$(cat "$work/client")"
talk 0 1 -r -d 'no room' -w please -- -r -d please -w 'no room'
[ "$(steps "$work/client")" -eq 0 ] || fail "$(cat "$work/client")"

# refuses PATTERN OPTION...: connecting fails with this reason.
refuses() {
	! timeout 60 "$peer" connect "${address[1]}" $port -b "${address[0]}" "${patience[@]}" "${@:2}" >"$work/client" 2>&1 ||
		fail "${*:2}: succeeded: $(cat "$work/client")"
	grep -q "^rdma_peer: .*$1" "$work/client" || fail "${*:2}: nothing like '$1': $(cat "$work/client")"
}

next_port
refuses 'RDMA_CM_EVENT_REJECTED .*instead of RDMA_CM_EVENT_ESTABLISHED'
for case in 'private data -w other' 'instead of RDMA_CM_EVENT_REJECTED -r' 'has 4096 bytes -s 64' \
	'half .* of step .*, not -k swap'; do
	next_port
	start timeout 60 "$peer" listen "${address[1]}" $port "${patience[@]}" >"$work/server" 2>&1
	within 30 rdma_listening $port || fail "$(cat "$work/server")"
	# shellcheck disable=SC2086 # options
	refuses "${case% -*}" -${case##* -}
	! wait "$pid" || fail "$case: the other side noticed nothing: $(cat "$work/server")"
done
