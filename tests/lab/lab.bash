# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source it
# Sourced by the tests of this folder, which need RDMA devices. For each of two hosts, 0 and 1, sets
# $device, $address (IPv4), $gid (the index of that address's GID). A machine with one device uses
# it for both hosts.
. "$(dirname "${BASH_SOURCE[0]}")/../client/ours.bash"
device=() address=() gid=()

# address_of GID: prints the IPv4 address in it, or nothing.
address_of() {
	local word
	IFS=: read -ra word <<<"$1"
	[ "${word[*]:0:6}" = "0000 0000 0000 0000 0000 ffff" ] || return
	printf '%d.%d.%d.%d' 0x"${word[6]:0:2}" 0x"${word[6]:2}" 0x"${word[7]:0:2}" 0x"${word[7]:2}"
}

# gid_of PORT: prints index and IPv4 address of its first such RoCE v2 GID, or nothing.
gid_of() {
	local type index found
	for type in "$1"/gid_attrs/types/*; do
		index=${type##*/}
		[ "$(cat "$type" 2>/dev/null)" = 'RoCE v2' ] || continue # most indexes are empty: reading them fails
		found=$(address_of "$(cat "$1/gids/$index")") || continue
		echo "$index $found"
		return
	done
}

# find_devices: devices whose first port is active and has an IPv4 address.
find_devices() {
	local port index found
	for port in /sys/class/infiniband/*/ports/1; do
		grep -qs ACTIVE "$port/state" || continue
		read -r index found < <(gid_of "$port") || continue
		device+=("$(basename "${port%/ports/1}")") address+=("$found") gid+=("$index")
	done
}

find_devices
if [ ${#device[@]} -eq 0 ]; then ${LAB_GUEST:+fail} skip "no RDMA device with an IPv4 address here"; fi
if [ ${#device[@]} -eq 1 ]; then device+=("${device[0]}") address+=("${address[0]}") gid+=("${gid[0]}"); fi

# rdma_listening PORT: succeeds if the RDMA connection manager listens on this port. It says so a
# moment before it listens on each device, and would reject a request until then.
rdma_listening() {
	rdma resource show cm_id | grep -q "state LISTEN .*:$1 " && sleep 0.2
}

# pair READY SERVER... -- CLIENT...: starts the client once "READY $port" succeeds; both must
# succeed. Their output is in $work/server and $work/client.
pair() {
	local ready=$1 one command=()
	shift
	while [ "$1" != -- ]; do command+=("$1") && shift; done
	shift
	start timeout 60 "${command[@]}" >"$work/server" 2>&1
	one=$pid
	within 30 "$ready" "$port" || fail "${command[*]}: not ready: $(cat "$work/server")"
	timeout 60 "$@" >"$work/client" 2>&1 ||
		fail "$*: $(cat "$work/client"; echo "the other side, ${command[*]}:"; cat "$work/server")"
	wait "$one" || fail "${command[*]}: $(cat "$work/server"; echo "the other side, $*:"; cat "$work/client")"
}
