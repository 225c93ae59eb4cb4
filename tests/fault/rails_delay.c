/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * Messages over two wires that delay packets, or let them overtake each other, come twice, or come with a wrong bit.
 */
#include "failing_wires.h"

/* Slow enough for both wires to be used. */
#define SLOW        "tc qdisc add dev eth%u root handle 1: tbf rate 40mbit burst 64kb limit 512kb"
#define NETEM(what) "tc qdisc replace dev eth%u parent 1:1 netem " what
#define MENDS                                                                                      \
	"tc qdisc replace dev eth%u parent 1:1 bfifo limit 512kb" /* without a child all is lost */

static const struct ways these = {.prepare = SLOW,
				  .way = {{NETEM("delay 30ms"), MENDS},
					  {NETEM("delay 10ms 10ms"), MENDS},
					  {NETEM("delay 5ms reorder 50%% 50%%"), MENDS},
					  {NETEM("duplicate 20%%"), MENDS},
					  {NETEM("corrupt 5%%"), MENDS}},
				  .count = 5,
				  .gentle = 5};

int main(int argc, char **argv)
{
	need_lab();
	if (system("unshare -n tc qdisc add dev lo root netem delay 1ms >/dev/null 2>&1")) {
		printf("needs a kernel with netem, and tc\n");
		return 77;
	}
	fail_wires(&these, argc, argv);
	return EXIT_SUCCESS;
}
