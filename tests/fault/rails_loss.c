/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * Messages over two wires that lose a part of the packets, or all in one direction.
 */
#include "failing_wires.h"

/* Drops packets of a wire at the hook `hook` of the first host, where `rule` says which. */
#define LOSES(hook, rule)                                                                          \
	"nft \"add table inet wire%1$u; add chain inet wire%1$u c { type filter hook " hook        \
	" priority 0; }; add rule inet wire%1$u c " rule " drop\""
#define MENDS "nft delete table inet wire%u"

static const struct ways these = {
	.way = {{LOSES("input", "iifname eth%1$u numgen random mod 100 < 5"), MENDS},
		{LOSES("input", "iifname eth%1$u numgen random mod 100 < 50"), MENDS},
		{LOSES("input", "iifname eth%1$u"), MENDS},
		{LOSES("output", "oifname eth%1$u"), MENDS},
		{LOSES("output", "oifname eth%1$u numgen random mod 100 < 20"), MENDS}},
	.count = 5,
	.gentle = 5};

int main(int argc, char **argv)
{
	if (system("nft --version >/dev/null 2>&1")) {
		printf("needs nft\n");
		return 77;
	}
	fail_wires(&these, argc, argv);
	return EXIT_SUCCESS;
}
