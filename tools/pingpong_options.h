/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of fi_pingpong, and its ways to end with an error. */
#ifndef PINGPONG_OPTIONS_H
#define PINGPONG_OPTIONS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#define CONTROL_PORT "47592"

enum form { FORM_TABLE, FORM_CSV, FORM_JSON };

static struct {
	const char *server; /* NULL: this process is the server */
	const char *src_port;
	const char *dst_port;
	const char *source; /* local address of the endpoint; NULL: any */
	int family;
	long iterations;
	size_t size; /* message size; 0: all default sizes */
	bool check;
	bool verbose;
	bool latency; /* time each message, for quantiles */
	enum form form;
	struct fi_info *hints;
} want = {.dst_port = CONTROL_PORT, .family = AF_INET, .iterations = 10};

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("fi_pingpong: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(EXIT_FAILURE);
}

static void must(ssize_t ret, const char *what)
{
	if (ret < 0)
		die("%s: %s (%zd)", what, fi_strerror((int)-ret), ret);
}

static void usage(int status)
{
	fputs("Usage: fi_pingpong [OPTIONS]              the server\n"
	      "       fi_pingpong [OPTIONS] SERVER       the client\n\n"
	      " -B PORT  own control port (server: " CONTROL_PORT ", client: any)\n"
	      " -P PORT  control port of the server (" CONTROL_PORT ")\n"
	      " -d NAME  domain\n"
	      " -p NAME  provider\n"
	      " -s ADDR  own address of the endpoint\n"
	      " -e TYPE  endpoint: msg, rdm or dgram (dgram)\n"
	      " -I N     messages each way (10)\n"
	      " -S SIZE  bytes of a message, or all (all)\n"
	      " -c       check the data\n"
	      " -m MODE  msg or tagged (msg)\n"
	      " -L       with the times that half and 99 % of the messages do not exceed\n"
	      " -o FORM  csv or json, with those times, instead of a table\n"
	      " -6       control socket over IPv6\n"
	      " -v       tell what is done\n"
	      " -h       this text\n",
	      status ? stderr : stdout);
	exit(status);
}

/* Returns the index of the word that is the value of an option. */
static int choice(const char *word, const char *const words[], char option)
{
	for (int i = 0; words[i]; i++)
		if (!strcasecmp(word, words[i]))
			return i;
	die("-%c %s: no such choice", option, word);
}

static long number(const char *word, char option)
{
	char *end;
	long value = strtol(word, &end, 0);

	if (*end || end == word || value <= 0)
		die("-%c %s: a number above 0 is expected", option, word);
	return value;
}

static void parse_fabric(int opt, struct fi_info *hints)
{
	static const char *const types[] = {"unspec", "msg", "dgram", "rdm", NULL};
	static const char *const modes[] = {"msg", "tagged", NULL};

	switch (opt) {
	case 'd':
		hints->domain_attr->name = strdup(optarg);
		break;
	case 'p':
		hints->fabric_attr->prov_name = strdup(optarg);
		break;
	case 'e':
		hints->ep_attr->type = (enum fi_ep_type)choice(optarg, types, 'e');
		break;
	case 'm':
		hints->caps = choice(optarg, modes, 'm') ? FI_TAGGED : FI_MSG;
		break;
	default:
		usage(opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE);
	}
}

static void parse(int argc, char **argv)
{
	static const char *const forms[] = {"csv", "json", NULL};
	int opt;

	while ((opt = getopt(argc, argv, "B:P:d:p:s:e:I:S:m:o:Lc6vh")) != -1) {
		switch (opt) {
		case 'B':
			want.src_port = optarg;
			break;
		case 'P':
			want.dst_port = optarg;
			break;
		case 's':
			want.source = optarg;
			break;
		case 'I':
			want.iterations = number(optarg, 'I');
			break;
		case 'S':
			want.size = strcmp(optarg, "all") ? (size_t)number(optarg, 'S') : 0;
			break;
		case 'c':
			want.check = true;
			break;
		case 'L':
			want.latency = true;
			break;
		case 'o':
			want.form = choice(optarg, forms, 'o') ? FORM_JSON : FORM_CSV;
			want.latency = true;
			break;
		case '6':
			want.family = AF_INET6;
			break;
		case 'v':
			want.verbose = true;
			break;
		default:
			parse_fabric(opt, want.hints);
		}
	}
	want.server = argv[optind];
}

#endif /* PINGPONG_OPTIONS_H */
