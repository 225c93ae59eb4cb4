/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_strerror: prints the text of an error number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

static int usage(FILE *out, int status)
{
	fputs("Usage: fi_strerror FI_ERROR_CODE\n\n"
	      "Prints the text of an error code. The code may be decimal, octal (017) or\n"
	      "hexadecimal (0x101); its sign is ignored.\n",
	      out);
	return status;
}

int main(int argc, char **argv)
{
	char *end;
	long code;

	if (argc != 2)
		return usage(stderr, EXIT_FAILURE);
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))
		return usage(stdout, EXIT_SUCCESS);
	code = strtol(argv[1], &end, 0);
	if (end == argv[1] || *end) {
		fprintf(stderr, "fi_strerror: \"%s\" is not a number\n\n", argv[1]);
		return usage(stderr, EXIT_FAILURE);
	}
	puts(fi_strerror((int)labs(code)));
	return EXIT_SUCCESS;
}
