#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The distribution's fi_pingpong between two hosts, by IPv4 and IPv6, with each type of endpoint,
# with and without a provider name; data is checked.
#     OTHER=/path/libfabric.so.1 bash tests/client/hosts_pingpong.sh    tests the test, on another library
# TIMEOUT=180
# shellcheck disable=SC2154 # what hosts.bash sets
. "$(dirname "$0")/hosts.bash"
pingpong=/usr/bin/fi_pingpong
need $pingpong pgrep
lib=${OTHER:-$lib}

# play_hosts ADDRESS OPTION...: runs a server on host 1 and a client on host 2.
play_hosts() {
	local address=$1 server start=("env" LD_LIBRARY_PATH="$(dirname "$lib")" timeout 30 "$pingpong" "${@:2}")
	start_on 1 "${start[@]}" >"$work/server" 2>&1
	server=$pid
	within 10 listening_on 1 47592 || fail "$*: the server does not listen: $(cat "$work/server")"
	assert_ours "$(pgrep -x fi_pingpong)"
	on 2 "${start[@]}" "$address" >"$work/client" 2>&1 ||
		fail "$*: client: $(cat "$work/client") server: $(cat "$work/server")"
	wait "$server" || fail "$*: server: $(cat "$work/server")"
	echo "$*: $(tail -n 1 "$work/client")"
}

# sizes ADDRESS OPTION...: all messages of all sizes must have been answered.
sizes() {
	play_hosts "$@" -I 5 -c -S all
	[ "$(grep -c '=5 ' "$work/client")" -ge 3 ] && [ "$(grep -c ' 5 *=5 ' "$work/client")" -eq \
		"$(($(wc -l <"$work/client") - 1))" ] || fail "$*: $(cat "$work/client")"
}

make_hosts 2 pair
named=('-p weft -e rdm -m msg' '-p weft -e rdm -m tagged' '-p weft -e msg' '-p tcp -e rdm' '-p tcp -e msg'
	'-p tcp;ofi_rxm -e rdm -m tagged' '-p udp -e dgram' '-e rdm' '-e msg' '')
[ -z "${OTHER-}" ] || named=('-p tcp -e rdm' '-p tcp -e msg' '-p tcp;ofi_rxm -e rdm -m tagged' '-p udp -e dgram')
for options in "${named[@]}"; do
	for address in h1 'fd77::1 -6'; do
		# shellcheck disable=SC2086 # words
		sizes $address $options
	done
done
for options in "${named[@]}"; do
	# shellcheck disable=SC2086
	play_hosts 10.77.0.1 $options -S 1024 -I 1000
done
