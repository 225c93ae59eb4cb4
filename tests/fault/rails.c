/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * Messages over two wires while these go down, lead into the dark, lose their address, or have their connections reset. Arguments:
 * how many failures at each level, and a seed; a thousand in all: SLOWER=30 make t/fault_rails ARGS="340 77".
 */
#include "failing_wires.h"

static const struct ways these = {
	.way = {{"ip link set eth%u down", "ip link set eth%u up"},
		{"ip neigh replace 10.99.%u.2 lladdr 02:00:00:00:00:99 dev eth%u nud permanent",
		 "ip neigh del 10.99.%u.2 dev eth%u"},
		{"ip addr del 10.99.%u.1/24 dev eth%u", "ip addr add 10.99.%u.1/24 dev eth%u"},
		{"ss -K dst 10.99.%u.2 >/dev/null 2>&1", "true %u"}},
	.count = 4,
	.gentle = 3};

int main(int argc, char **argv)
{
	fail_wires(&these, argc, argv);
	return EXIT_SUCCESS;
}
