# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # what lab.bash sets
# Sourced by tests that take down links and remove devices: only in the lab's virtual machine.
. "$(dirname "${BASH_SOURCE[0]}")/lab.bash"
need rdma ip
[ -n "${LAB_GUEST-}" ] || skip "devices and links are taken away only in the lab's guest"
interface=()
for n in 0 1; do interface+=("$(ip -o -4 addr show to "${address[n]}" | awk '{ print $2; exit }')"); done
patience=$((10 * ${SLOWER:-1})) # seconds; the device fails a send after 7 tries of 0.27 s
export LD_LIBRARY_PATH=$BUILD FI_WEFT_PEER_TIMEOUT=$((3000 * ${SLOWER:-1}))
ulimit -l unlimited

objects() {
	rdma resource show | sed 's/ctx [0-9]*//; s/^[0-9]*: //' | sort
}

# Routes lost with a link that goes down: $work/routes and $work/routes6 are batches for ip that
# restore them.
for n in 0 1; do
	echo 1 >"/proc/sys/net/ipv6/conf/${interface[n]}/keep_addr_on_down"
done
for family in -4 -6; do
	batch=$work/routes${family#-4}
	ip "$family" neigh show dev "${interface[0]}" nud permanent |
		awk -v dev="${interface[0]}" '$2 == "lladdr" { print "neigh replace", $1, "lladdr", $3, "dev", dev, "nud permanent" }' >"$batch"
	ip "$family" route show table 100 | sed 's/^/route replace /; s/ *$/ table 100/' >>"$batch"
done

# down: takes down the link of host 0; host 1 loses its carrier.
down() {
	ip link set "${interface[0]}" down || fail "the link is not to be set down"
}

up() {
	ip link set "${interface[0]}" up && ip -4 -batch "$work/routes" && ip -6 -batch "$work/routes-6" ||
		fail "the link does not come back"
}

# flap: takes the link down and up again.
flap() {
	{ echo "link set ${interface[0]} down" && echo "link set ${interface[0]} up" && cat "$work/routes"; } >"$work/flap"
	ip -4 -batch "$work/flap" && ip -6 -batch "$work/routes-6" || fail "the link does not come back"
}

# dark: silently drops all packets between the hosts until `light`.
dark() {
	local family n
	for family in -4 -6; do
		for n in 0 1; do
			ip $family rule add pref 5 iif "${interface[n]}" blackhole || fail "the wire does not go dark"
		done
	done
}

light() {
	ip -4 rule flush pref 5 && ip -6 rule flush pref 5 || fail "the wire stays dark"
}

# apart: TCP from root to host 1, and from nobody to host 0, takes the wire or is dropped, as
# between two hosts.
apart() {
	local n who=(0 65534)
	for n in 0 1; do
		set -- uidrange ${who[n]}-${who[n]} to "${address[1 - n]}" ipproto tcp
		ip rule add pref 15 "$@" lookup $((100 + n)) && ip rule add pref 16 "$@" unreachable ||
			fail "the hosts cannot be set apart"
	done
}

# Runs after a failed test too: the next one needs the device.
restore() {
	for n in 5 15 16; do ip -4 rule flush pref $n; ip -6 rule flush pref $n; done 2>/dev/null
	end_all
	[ -z "${removal-}" ] || within "$patience" ended "$removal"
	present || rdma link add "${device[0]}" type rxe netdev "${interface[0]}"
}
trap restore EXIT

# remove: removes the device of host 0. $removal is the process that waits for that, as the kernel
# waits for the device's users.
remove() {
	start rdma link del "${device[0]}"
	removal=$pid
}

bring_back() {
	within "$patience" ended "$removal" || fail "the device is still in use: $(rdma resource show)"
	wait "$removal" || fail "the device cannot be taken away"
	rdma link add "${device[0]}" type rxe netdev "${interface[0]}" || fail "no new device"
	within "$patience" present || fail "the new device has no address"
}

present() {
	gid_of "/sys/class/infiniband/${device[0]}/ports/1" >/dev/null
}

ended() {
	! kill -0 "$1" 2>/dev/null
}

going() {
	[ "$(grep -c '^going$' "$work/out")" -eq "$1" ]
}

# busy SIDES PROGRAM OPTION...: starts the program and waits until SIDES sides print "going"; $talk
# is its process.
busy() {
	start timeout 100 "$BUILD/t/lab_$2" "${@:3}" >"$work/out" 2>&1
	program=$pid
	within $((2 * patience)) going "$1" || fail "$*: nothing moves: $(cat "$work/out")"
	talk=$(pgrep -P "$program")
	sleep 0.3
}

# said LINE: the program has printed a line like this.
said() {
	grep -qE "$1" "$work/out"
}

# told SECONDS WHY: within SECONDS one of the sides prints that WHY ended its operations. The other
# side may only get, and earlier, that the peer's operations ended.
told() {
	within "$1" said "was told: $2" || fail "nobody is told '$2' within $1 s: $(cat "$work/out")"
}

# over WHAT LINE...: the program succeeds, and its output has such lines.
over() {
	local what=$1 start=$SECONDS line
	within $((3 * patience)) ended "$program" || fail "$what: it does not end: $(cat "$work/out")"
	wait "$program" || fail "$what: $(cat "$work/out")"
	shift
	for line; do said "$line" || fail "$what: nothing like '$line': $(cat "$work/out")"; done
	echo "$what: within $((SECONDS - start)) s, $(grep -v -e '^going$' -e closed "$work/out" | paste -sd';')"
}

before=$(objects)
same_objects() {
	[ "$(objects)" = "$before" ]
}

# clean WHAT: nothing is left behind.
clean() {
	within "$patience" same_objects || fail "$1: left behind: $(objects), before: $before"
}
