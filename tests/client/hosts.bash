# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # what is set here is used by those who source it
# Sourced instead of ours.bash by tests with several hosts. A host is a process with its own
# network, name, /sys and /dev/shm, and with its own process ids where permitted; a bridge joins all
# hosts. The test runs in namespaces of its own, so it does not touch the real network, and
# everything ends with its first process.
#
#     make_hosts 4; on 1 ping h2; start_on 2 sleep 5; drop 2; restore 2

# enter_lab: restarts the test in namespaces of its own, as root or as a user who may become root
# there.
enter_lab() {
	local command user reason
	for command in ip unshare nsenter hostname; do
		command -v $command >/dev/null || { echo "$command is not installed"; exit 77; }
	done
	for user in -nmpf -rnmpf; do
		reason=$(unshare $user --kill-child --mount-proc sh -ec '
			ip link add one type bridge
			ip link add two type veth peer name three
			mount -t sysfs none /sys
			unshare -num true' 2>&1) || continue
		# exec does not return
		HOSTS_LAB=1 exec unshare $user --kill-child --mount-proc bash "$0" "$@"
	done
	echo "no network of our own: ${reason##*$'\n'}"
	exit 77
}

[ -n "${HOSTS_LAB-}" ] || enter_lab "$@"
unset HOSTS_LAB
. "$(dirname "${BASH_SOURCE[0]}")/ours.bash"
ip link set lo up || fail "no loopback"
declare -a holder=() # by host: the process that holds its namespaces
apart=-p             # empty: hosts made from now on share the test's process ids

ip4() {
	echo "10.77.0.$1"
}

ip6() {
	echo "fd77::$1"
}

# host_life FILE NAMES: run by a host; writes its process id, as the test sees it, when ready.
host_life() {
	read -r pid _ </proc/self/stat
	[ $$ -eq "$pid" ] || mount -t proc none /proc
	mount -t sysfs none /sys && mount -t tmpfs none /dev/shm && mount --bind "$2" /etc/hosts && ip link set lo up &&
		echo "$pid" >"$1.new" && mv "$1.new" "$1" && exec sleep infinity
}

# add_host HOST NAME
add_host() {
	local h=$1 ready=$work/host.$1
	start unshare -num ${apart:+$apart} -f --kill-child bash -c "$(declare -f host_life); hostname '$2';
		host_life '$ready' '$work/names.$2'" >"$ready.log" 2>&1
	disown # it is killed, not waited for
	within 10 test -e "$ready" || fail "host $h: $(cat "$ready.log")"
	holder[h]=$(cat "$ready")
	# Like an idle container bridge: up, without carrier, with the same address on every host.
	on "$h" ip link add docker0 type veth peer name unused && on "$h" ip addr add 172.17.0.1/16 dev docker0 &&
		on "$h" ip link set docker0 up &&
		ip link add "port$h" type veth peer name eth0 netns "${holder[h]}" &&
		ip link set "port$h" master switch up &&
		on "$h" ip addr add "$(ip4 "$h")/24" dev eth0 && on "$h" ip addr add "$(ip6 "$h")/64" dev eth0 nodad &&
		on "$h" ip link set eth0 up || fail "host $h can not be joined to the others"
}

# make_hosts N [NAME]: makes hosts 1 to N with addresses 10.77.0.1, fd77::1 and so on, known to all
# as h1 to hN. Their own names are these, or NAME for all, which each resolves to its loopback, as
# Debian does.
make_hosts() {
	local h name
	ip link add switch type bridge stp_state 0 forward_delay 0 && ip link set switch up || fail "no bridge"
	for ((h = 1; h <= $1; h++)); do
		name=${2:-h$h}
		{
			printf '127.0.0.1 localhost\n::1 localhost\n%s' "${2:+127.0.1.1 $2$'\n'}"
			for ((other = 1; other <= $1; other++)); do
				printf '%s h%d\n' "$(ip4 $other)" $other "$(ip6 $other)" $other
			done
		} >"$work/names.$name"
		add_host $h "$name"
	done
	for ((h = 1; h <= $1; h++)); do within 10 wired $h || fail "host $h has no wire"; done
}

# The state of a new interface is available a moment later.
wired() {
	[ "$(on "$1" cat /sys/class/net/{eth0,docker0}/operstate)" = up$'\n'lowerlayerdown ]
}

# remove_hosts: ends all hosts at once, as a power failure would.
remove_hosts() {
	local h
	for h in "${!holder[@]}"; do kill -KILL "${holder[h]}"; done
	within 10 no_port || fail "the hosts stay"
	ip link del switch
	rm -f "$work"/host.*
	holder=()
}

no_port() {
	! ip -o link show | grep -q ': port[0-9]'
}

# entry HOST: sets $enter, the words that run a command on that host.
entry() {
	# shellcheck disable=SC2016 # for the shell inside
	enter=(nsenter -t "${holder[$1]}" -n -u -m ${apart:+$apart} sh -c 'cd "$0" && exec "$@"' "$PWD")
}

# on HOST COMMAND...: runs the command there.
on() {
	local enter
	entry "$1"
	"${enter[@]}" "${@:2}"
}

# start_on HOST COMMAND...: in the background; $pid is a process outside that ends with it.
start_on() {
	local enter
	entry "$1"
	start "${enter[@]}" "${@:2}"
}

# drop HOST: silently drops all packets from and to the host.
drop() {
	ip link set "port$1" nomaster || fail "drop $1"
}

restore() {
	ip link set "port$1" master switch || fail "restore $1"
}

# received HOST INTERFACE: prints the bytes received since the host was made.
received() {
	on "$1" cat "/sys/class/net/$2/statistics/rx_bytes"
}

# listening_on HOST PORT: succeeds if a process there listens on this TCP port.
listening_on() {
	on "$1" cat /proc/net/tcp /proc/net/tcp6 | grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$2") [0-9A-F:]* 0A"
}

# mpi_hosts EACH: sets $mpirun, the command that runs EACH ranks on each host, the first ones on the
# first. Hosts must share the test's process ids. An agent replaces ssh: it makes a command line of
# its words for a shell on that host. All hosts share few processors, so waiting ranks must yield.
mpi_hosts() {
	local h enter
	for h in "${!holder[@]}"; do echo "h$h slots=$1"; done >"$work/hostfile"
	{
		echo '#!/bin/sh'
		echo 'host=$1; shift; case $host in'
		for h in "${!holder[@]}"; do
			entry "$h"
			printf 'h%d) exec %s sh -c "$*" ;;\n' "$h" "${enter[*]@Q}"
		done
		echo 'esac; echo "no host $host" >&2; exit 1'
	} >"$work/agent.sh"
	chmod +x "$work/agent.sh"
	mpirun=(mpirun -n $((${#holder[@]} * $1)) --hostfile "$work/hostfile" --mca plm_rsh_agent "$work/agent.sh"
		--mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1)
}
