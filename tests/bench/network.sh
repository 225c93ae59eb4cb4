# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154 # variables of run.sh, which reads this file
# The network part of run.sh, over the loopback device: this library by name, the reference, and
# plain sockets. If the reference has several providers, all are measured and the best one counts.
tcp_sizes='8 64 512 4096 16384 65536 262144 1048576 4194304'

# turn ROW OURS REFERENCES PROGRAM ARGUMENT...: measures this library, then each provider of the
# reference
turn() {
	local row=$1 ours=$2 references=$3 provider
	local -a program
	read -ra program <<<"$4"
	shift 4
	program[0]=$work/${program[0]}
	job "ours/$row" env LD_LIBRARY_PATH="$build" "${program[@]}" "$ours" "$@"
	[ -n "$reference" ] || return
	for provider in $references; do
		job "reference/$row" env LD_LIBRARY_PATH="$(dirname "$reference")" "${program[@]}" "$provider" "$@"
	done
}

# Many short runs, as the machine's speed varies.
network_messages() {
	local size _
	for size in 8 8 8 $tcp_sizes; do
		turn tcp/tsend tcp "$tcp_references" 'client -n' lat "$size"
		job limit/tcp "$work/sockets" tcp "$size"
	done
	for size in 65536 1048576 65536 1048576 65536 1048576 65536 1048576 65536 65536; do
		turn tcp/bandwidth tcp "$tcp_references" 'client -n' bandwidth $size
		job limit/tcp-bandwidth "$work/sockets" stream $size
		job limit/tcp-framed "$work/sockets" framed $size
	done
	network_keyed
	job limit/uring "$work/sockets" uring 8
	job limit/zerocopy "$work/sockets" zerocopy 65536 1048576
	for _ in 1 2 3; do
		turn udp/send udp udp 'client -nd' lat 8
		job limit/udp "$work/sockets" udp 8
		turn udp/stream udp udp 'client -nm' rate 8 1024
	done
}

# Endpoints with a key, beside the same without one; encrypted ones, beside OpenSSL's own reads and writes over a socket.
network_keyed() {
	local size
	local plain=(env LD_LIBRARY_PATH="$build" "$work/client" -n tcp)
	local keyed=(env FI_WEFT_AUTH_KEY_FILE="$work/key" "${plain[@]}")
	local encrypted=(env FI_WEFT_AUTH=encrypt "${keyed[@]}")
	(umask 077 && head -c 32 /dev/urandom >"$work/key")
	for size in 8 4096 8 4096 8 4096; do
		job ours/keyed/tsend "${keyed[@]}" lat $size
		job limit/keyed "${plain[@]}" lat $size
		job ours/encrypted/tsend "${encrypted[@]}" lat $size
		job limit/tls "$work/tls" tcp $size
	done
	for size in 65536 1048576 65536 1048576 65536 1048576; do
		job ours/encrypted/bandwidth "${encrypted[@]}" bandwidth $size
		job limit/tls-bandwidth "$work/tls" stream $size
	done
}

# The reference's new provider reports delivery of writes too early, so there is no figure to
# compare with.
network_onesided() {
	local way
	for way in write read; do turn tcp/$way tcp tcp 'onesided -n' $way 8 65536 1048576; done
}

# The reference's layered provider does not connect so many endpoints within a minute.
network_peers() {
	turn tcp tcp "$tcp_references" connect addresses 100000
	turn tcp tcp "${tcp_references##* }" connect mesh 500 8
	turn tcp tcp "${tcp_references##* }" connect mesh 132 65
}

# network ROUND: thousands of connections come last, as closing them keeps the kernel busy for a
# minute
network() {
	network_messages
	network_onesided
	[ "$1" -lt "$rounds" ] || network_peers
}
