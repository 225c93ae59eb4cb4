#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Datagram endpoints of the provider "verbs" whose link goes down and up, and whose device is
# removed.
# TIMEOUT=120 KERNELS=all
. "$(dirname "$0")/faults.bash"

busy 1 dgram_fault go-on "${address[@]}"
down
sleep 1
up
kill -USR1 "$talk"
over "the link down for a second" 'goes on' 'closed'
clean "the link down for a second"

for wish in gone sleep; do
	busy 1 dgram_fault $wish "${address[@]}"
	remove
	over "the device taken away, $wish" 'was told: No such device' 'is refused: No such device' 'the other goes on' 'closed'
	bring_back
	clean "the device taken away, $wish"
done
