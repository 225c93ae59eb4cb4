/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_info: lists what fi_getinfo offers, and the settings read from the environment. */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "info_why.h"

#define OPT_VERSION  256
#define OPT_API      257
#define OPT_SECURITY 258
#define OPT_WHY      259

enum show {
	SHOW_SHORT,
	SHOW_VERBOSE,
	SHOW_PROVIDERS,
	SHOW_ENV,
	SHOW_VERSION,
	SHOW_WHY,
};

struct request {
	struct fi_info *hints;
	const char *node;
	const char *port;
	uint64_t flags;
	uint32_t api; /* API version to request */
	enum show show;
	bool security;      /* show each entry's level, too */
	const char *substr; /* part of a setting's name or of an entry's text; NULL: all */
};

static const struct option longopts[] = {
	{"help", no_argument, NULL, 'h'},
	{"src_addr", required_argument, NULL, 's'},
	{"node", required_argument, NULL, 'n'},
	{"port", required_argument, NULL, 'P'},
	{"caps", required_argument, NULL, 'c'},
	{"mode", required_argument, NULL, 'm'},
	{"ep_type", required_argument, NULL, 't'},
	{"domain", required_argument, NULL, 'd'},
	{"fabric", required_argument, NULL, 'f'},
	{"addr_format", required_argument, NULL, 'a'},
	{"provider", required_argument, NULL, 'p'},
	{"env", no_argument, NULL, 'e'},
	{"getenv", required_argument, NULL, 'g'},
	{"info", required_argument, NULL, 'i'},
	{"list", no_argument, NULL, 'l'},
	{"verbose", no_argument, NULL, 'v'},
	{"security", no_argument, NULL, OPT_SECURITY},
	{"why", required_argument, NULL, OPT_WHY},
	{"api", required_argument, NULL, OPT_API},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
	fputs("Usage: fi_info [OPTIONS]\n"
	      "  -h, --help              this text\n"
	      "  -s, --src_addr=ADDR     entries with this source name or address\n"
	      "  -n, --node=NAME         entries that reach this node\n"
	      "  -P, --port=PORT         port or service of the node\n"
	      "  -c, --caps=CAP|CAP..    entries with these capabilities: FI_MSG|FI_RMA..\n"
	      "  -m, --mode=MODE|MODE..  the modes accepted (all by default)\n"
	      "  -t, --ep_type=TYPE      FI_EP_MSG, FI_EP_DGRAM or FI_EP_RDM\n"
	      "  -d, --domain=NAME       entries of this domain\n"
	      "  -f, --fabric=NAME       entries of this fabric\n"
	      "  -a, --addr_format=FMT   FI_SOCKADDR_IN, FI_ADDR_STR..\n"
	      "  -p, --provider=NAME     entries of this provider\n"
	      "  -e, --env               settings read from the environment\n"
	      "  -g, --getenv=TEXT       those whose name contains TEXT\n"
	      "  -i, --info=TEXT         entries in full, those that contain TEXT\n"
	      "  -l, --list              names of the providers\n"
	      "  -v, --verbose           entries in full\n"
	      "      --security          who may connect to endpoints of an entry, too: open,\n"
	      "                          closed, keyed, encrypted; by the settings\n"
	      "      --why=ADDRESS       which transport reaches ADDRESS, and why not the others:\n"
	      "                          a host, or an endpoint: HOST:PORT, fi_sockaddr_in://..\n"
	      "      --api=MAJOR.MINOR   entries as a program of this version sees them\n"
	      "      --version           versions of this program and of the library\n",
	      out);
}

static void bad_word(const char *kind, const char *word)
{
	fprintf(stderr, "fi_info: \"%s\" is no %s\n", word, kind);
	exit(EXIT_FAILURE);
}

/* Returns the bit whose fi_tostr text is `word`. */
static uint64_t parse_bit(const char *word, enum fi_type type, const char *kind)
{
	for (int i = 0; i < 64; i++) {
		uint64_t bit = 1ULL << i;

		if (!strcmp(fi_tostr(&bit, type), word))
			return bit;
	}
	bad_word(kind, word);
	return 0;
}

static uint64_t parse_bits(char *list, enum fi_type type, const char *kind)
{
	uint64_t bits = 0;

	for (char *save, *word = strtok_r(list, "|", &save); word;
	     word = strtok_r(NULL, "|", &save))
		bits |= parse_bit(word, type, kind);
	return bits;
}

/* The same for values of an enumeration, which start at 0. */
static uint32_t parse_value(const char *word, enum fi_type type, const char *kind)
{
	for (uint32_t value = 0; value < 64; value++)
		if (!strcmp(fi_tostr(&value, type), word))
			return value;
	bad_word(kind, word);
	return 0;
}

static uint32_t parse_api(const char *word)
{
	unsigned int major, minor;
	int end = 0;

	if (sscanf(word, "%u.%u%n", &major, &minor, &end) != 2 || word[end] || major > 0xffff ||
	    minor > 0xffff)
		bad_word("version of the interface", word);
	return FI_VERSION(major, minor);
}

static void parse_hint(struct request *req, int opt, char *arg)
{
	struct fi_info *hints = req->hints;

	switch (opt) {
	case 'c':
		hints->caps = parse_bits(arg, FI_TYPE_CAPS, "capability");
		break;
	case 'm':
		hints->mode = parse_bits(arg, FI_TYPE_MODE, "mode");
		break;
	case 't':
		hints->ep_attr->type =
			(enum fi_ep_type)parse_value(arg, FI_TYPE_EP_TYPE, "endpoint type");
		break;
	case 'a':
		hints->addr_format = parse_value(arg, FI_TYPE_ADDR_FORMAT, "address format");
		break;
	case 'd':
		hints->domain_attr->name = strdup(arg);
		break;
	case 'f':
		hints->fabric_attr->name = strdup(arg);
		break;
	case 'p':
		hints->fabric_attr->prov_name = strdup(arg);
		break;
	default:
		usage(opt == 'h' ? stdout : stderr);
		exit(opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE);
	}
}

static void parse(struct request *req, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "s:n:P:c:m:t:d:f:a:p:eg:i:lvh", longopts, NULL)) !=
	       -1) {
		switch (opt) {
		case 's':
			req->flags = FI_SOURCE;
			/* fallthrough */
		case 'n':
			req->node = optarg;
			break;
		case 'P':
			req->port = optarg;
			break;
		case 'e':
		case 'g':
			req->show = SHOW_ENV;
			req->substr = optarg;
			break;
		case 'i':
		case 'v':
			req->show = SHOW_VERBOSE;
			req->substr = opt == 'i' ? optarg : req->substr;
			break;
		case 'l':
			req->flags = FI_PROV_ATTR_ONLY;
			req->show = SHOW_PROVIDERS;
			break;
		case OPT_API:
			req->api = parse_api(optarg);
			break;
		case OPT_SECURITY:
			req->security = true;
			break;
		case OPT_WHY:
			req->show = SHOW_WHY;
			why_address(optarg, &req->node, &req->port);
			break;
		case OPT_VERSION:
			req->show = SHOW_VERSION;
			break;
		default:
			parse_hint(req, opt, optarg);
		}
	}
}

static int print_env(const char *substr)
{
	static const char *const types[] = {
		[FI_PARAM_STRING] = "String",
		[FI_PARAM_INT] = "Integer",
		[FI_PARAM_BOOL] = "Boolean (0/1, on/off, true/false, yes/no)",
		[FI_PARAM_SIZE_T] = "size_t",
	};
	struct fi_param *params;
	int count, ret = fi_getparams(&params, &count);

	if (ret)
		return ret;
	for (struct fi_param *p = params; p < params + count; p++) {
		if (substr && !strstr(p->name, substr))
			continue;
		printf("# %s: %s\n# %s\n", p->name, types[p->type], p->help_string);
		if (p->value)
			printf("%s=%s\n", p->name, p->value);
		putchar('\n');
	}
	fi_freeparams(params);
	return 0;
}

static void print_version(void)
{
	uint32_t api = fi_version();

	printf("fi_info: %d.%d.%d\n", FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_REVISION_VERSION);
	printf("libfabric: %s\n", fi_tostr("", FI_TYPE_VERSION));
	printf("libfabric api: %u.%u\n", FI_MAJOR(api), FI_MINOR(api));
}

static void print_short(const struct fi_info *info)
{
	uint32_t version = info->fabric_attr->prov_version, api = info->fabric_attr->api_version;

	printf("provider: %s\n", info->fabric_attr->prov_name);
	printf("    fabric: %s\n", info->fabric_attr->name);
	printf("    domain: %s\n", info->domain_attr->name);
	printf("    version: %u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	printf("    type: %s\n", fi_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE));
	printf("    protocol: %s\n", fi_tostr(&info->ep_attr->protocol, FI_TYPE_PROTOCOL));
	printf("    api: %u.%u\n", FI_MAJOR(api), FI_MINOR(api));
}

/* False: the entry does not contain `substr`. */
static bool print_verbose(const struct fi_info *info, const char *substr)
{
	const char *text = fi_tostr(info, FI_TYPE_INFO);
	bool shown = !substr || strstr(text, substr);

	if (shown)
		printf("---\n%s", text);
	return shown;
}

static void print_provider(const struct fi_info *info)
{
	uint32_t version = info->fabric_attr->prov_version;

	printf("%s:\n    version: %u.%u\n", info->fabric_attr->prov_name, FI_MAJOR(version),
	       FI_MINOR(version));
}

/* Opens an endpoint, which shows whether the key can be used. 0 or a negative error. */
static int try_endpoint(struct fi_info *info)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	int ret = fi_fabric(info->fabric_attr, &fabric, NULL);

	if (ret)
		return ret;
	ret = fi_domain(fabric, info, &domain, NULL);
	if (!ret) {
		ret = fi_endpoint(domain, info, &ep, NULL);
		if (!ret)
			fi_close(&ep->fid);
		fi_close(&domain->fid);
	}
	fi_close(&fabric->fid);
	return ret;
}

/* The level of endpoints without a key of the application's own. docs/SECURITY.md */
static void print_security(struct fi_info *info)
{
	struct fi_provider settings = {.name = "weft"}; /* FI_WEFT_... */
	bool connects = info->ep_attr->type != FI_EP_DGRAM &&
			info->ep_attr->protocol != FI_PROTO_RDMA_CM_IB_RC;
	bool leaves = info->addr_format != FI_ADDR_STR; /* the host */
	char *path = NULL, *auth = NULL;
	int closed = 0, ret = 0;
	bool keyed, encrypts;

	fi_param_get(&settings, "closed", &closed);
	fi_param_get(&settings, "auth_key_file", &path);
	fi_param_get(&settings, "auth", &auth);
	keyed = path && *path;
	encrypts = auth && !strcmp(auth, "encrypt") && leaves;
	if (keyed || encrypts)
		ret = try_endpoint(info);
	if (ret)
		printf("    security: no endpoint opens with FI_WEFT_AUTH_KEY_FILE and "
		       "FI_WEFT_AUTH as they are: %s\n",
		       fi_strerror(-ret));
	else
		printf("    security: %s%s%s\n",
		       keyed                ? "keyed"
		       : closed && connects ? ""
					    : "open",
		       encrypts ? ", encrypted" : "",
		       !closed || !connects ? ""
		       : keyed              ? ", closed"
					    : "closed");
}

static void print_entry(const struct request *req, struct fi_info *info)
{
	switch (req->show) {
	case SHOW_PROVIDERS:
		print_provider(info);
		break;
	case SHOW_VERBOSE:
		if (!print_verbose(info, req->substr))
			return;
		break;
	default:
		print_short(info);
	}
	if (req->security && req->show != SHOW_PROVIDERS)
		print_security(info);
}

static int print_entries(const struct request *req)
{
	struct fi_info *list;
	int ret = fi_getinfo(req->api, req->node, req->port, req->flags, req->hints, &list);

	if (ret)
		return ret;
	if (req->show == SHOW_WHY)
		ret = why_answer(list, req->node);
	else
		for (struct fi_info *info = list; info; info = info->next)
			print_entry(req, info);
	fi_freeinfo(list);
	return ret;
}

int main(int argc, char **argv)
{
	struct request req = {.hints = fi_allocinfo(), .api = fi_version()};
	int ret = 0;

	if (!req.hints)
		return EXIT_FAILURE;
	/* Accepts all mode bits, so that no entry is hidden. Bits 0 and 1 are modes of 1.x, to
	 * be set alone or not at all. */
	req.hints->mode = ~0ULL;
	req.hints->domain_attr->mode = ~0ULL;
	req.hints->domain_attr->mr_mode = ~0x3;
	parse(&req, argc, argv);
	if (req.show == SHOW_WHY)
		why_type(&req.hints->ep_attr->type);

	if (req.show == SHOW_VERSION)
		print_version();
	else
		ret = req.show == SHOW_ENV ? print_env(req.substr) : print_entries(&req);
	if (ret)
		fprintf(stderr, "fi_info: %s (%d)\n", fi_strerror(-ret), ret);
	fi_freeinfo(req.hints);
	return -ret;
}
