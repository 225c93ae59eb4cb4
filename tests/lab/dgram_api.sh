#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The API's tests of datagrams over a device's. Left out are those of IP addresses (dgram_raw, the IPv6 ones, a name given
# back at once), of multicast, and of what only the kernel's sockets promise.
# TIMEOUT=150
. "$(dirname "$0")/api.bash"

run dgram forms late sizes truncate source source-map unknown unknown-error refuse refuse-objects region
run dgram_flow stream-one stream-many stream-two stream-unlocked stream-more more multi-recv cancel count selective
run dgram_wait sread fd cond undisturbed undisturbed-auto threads alias
