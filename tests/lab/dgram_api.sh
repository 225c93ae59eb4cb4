#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# API tests of datagrams over a device. Leaves out tests of IP addresses (dgram_raw, the IPv6 cases,
# a name freed at once), of multicast, and of promises of kernel sockets only.
# TIMEOUT=150
. "$(dirname "$0")/api.bash"

run dgram forms late sizes truncate source source-map unknown unknown-error refuse refuse-objects region
run dgram_flow stream-one stream-many stream-two stream-unlocked stream-more more multi-recv cancel count selective
run dgram_wait sread fd cond undisturbed undisturbed-auto threads alias
