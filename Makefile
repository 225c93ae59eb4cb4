# SPDX-License-Identifier: BSD-2-Clause
# Sources are found by folder: adding a file is creating it.  V=1 shows the commands.

BUILD = build
VER   = 1.30.0
CONFIG = config.mk
HW   ?= shm tcp weft
export BUILD HW CC

# These goals work where nothing is installed or configured yet.
BARE = help check check-verbs check-aarch64 check-packages check-clients check-field bench-verbs lab-shell demo bench deb html clean distclean
ifneq ($(filter-out $(BARE),$(or $(MAKECMDGOALS),all)),)
include $(CONFIG)
endif

SRC  := $(filter-out $(SKIP),$(sort $(wildcard src/*/*.c src/*/*/*.c src/*/*/*/*.c)))
OBJ  := $(SRC:%.c=$(BUILD)/%.o)
SO   := $(BUILD)/libfabric.so
LIB  := $(BUILD)/libfabric.a
TOOL := $(patsubst tools/%.c,%,$(wildcard tools/*.c))
BIN  := $(TOOL:%=$(BUILD)/bin/%) $(patsubst examples/%.c,$(BUILD)/bin/%,$(wildcard examples/*.c))

# tests/unit/base_pool.c is the test base_pool, tests/api/tags.c api_tags, tests/abi/old.sh abi_old
tests = $(patsubst unit_%,%,$(subst /,_,$(basename $(patsubst tests/%,%,$(wildcard $1)))))
# Those of a transport need the transport.
FAST := $(filter-out $(patsubst src/hw/verbs/%,hw_verbs_%,$(SKIP)),$(call tests,tests/unit/*.c tests/api/*.c))
PROG := $(FAST) $(call tests,tests/fault/*.c)
# These build the library several times, or install a system: check-packages runs them.
PACK := $(addprefix package_,reproducible bare without_rails deb deb_install rpm)
TEST := $(PROG) $(filter-out bench_% lab_% aarch64_% field_% $(PACK),$(call tests,tests/*/*.sh tests/*/*.py))
LAB  := $(call tests,tests/lab/*.c tests/api/*.c) fault_accepted fault_eavesdrop fault_rails_delay hw_tcp_rails_tls hw_tcp_tls_member

# The library has the structures of the development line; a program that uses its headers has those of 2.6.
INC   = -Isrc -Iinclude -I. -DWEFT_API_2_7
FLAGS = -std=gnu11 -D_GNU_SOURCE -DWEFT_NO_DEPRECATED -fPIC -fvisibility=hidden -Wall -Wextra $(WERROR) -pthread $(CFLAGS) $(HERE)
# Debugging information that does not name the folder: the bytes are the same wherever they are built.
HERE  = -fdebug-prefix-map=$(CURDIR)=.
say   = $(if $(filter 1,$V),,@printf '  %-4s %s\n' $1 $@;)
cc    = $(call say,CC)mkdir -p $(@D) && $(CC) $(FLAGS) $(INC) $(CPPFLAGS) -MMD -MP -c -o $@ $<
ld    = $(call say,LD)mkdir -p $(@D) && $(CC) -pthread $(CFLAGS) $(LDFLAGS) -o $@ $^ $(RPATH)
RPATH = -Wl,-rpath,'$$ORIGIN/..'
sub   = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc))

all: $(SO) $(SO).1 $(LIB) $(BIN)	## the library, its archive, the tools and the examples

# With -z now, for where the dynamic linker finds a name at its first call, it saves all registers on the stack, and some may hold
# a part of a key.
$(SO).$(VER): $(OBJ) libfabric.map
	$(call say,LD)$(CC) -shared -Wl,-z,now -Wl,-soname,libfabric.so.1 -Wl,--version-script=libfabric.map \
		-Wl,-z,defs -Wl,--as-needed -pthread $(CFLAGS) $(PACK_RELOCATIONS) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(SO) $(SO).1: $(SO).$(VER)
	@ln -sf $(<F) $@

# The archive has no symbol versions, and is in no folder of its own: WEFT_STATIC leaves out what needs them.
APART := $(filter %/compat.o %/external_files.o,$(OBJ))
$(LIB): $(filter-out $(APART),$(OBJ)) $(APART:.o=.static.o)
	$(call say,AR)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.static.o: CPPFLAGS += -DWEFT_STATIC
$(BUILD)/%.static.o: %.c $(CONFIG); $(cc)
$(BUILD)/%.o:        %.c $(CONFIG); $(cc)

# Unit tests see every hidden symbol; all other programs only what an application sees.
$(BUILD)/tests/unit/%.o: CPPFLAGS += $(CHECK_CFLAGS)
$(BUILD)/tests/api/%.o $(BUILD)/tests/fault/%.o $(BUILD)/tests/lab/%.o: INC = -Iinclude
$(BUILD)/tools/%.o $(BUILD)/examples/%.o: INC = -Iinclude
$(BUILD)/t/%:       $(BUILD)/tests/unit/%.o  $(LIB); $(ld) $(CHECK_LIBS) $(LIBS)
$(BUILD)/t/api_%:   $(BUILD)/tests/api/%.o   $(SO) | $(SO).1;  $(ld)
$(BUILD)/t/fault_%: $(BUILD)/tests/fault/%.o $(SO) | $(SO).1;  $(ld)
$(BUILD)/t/lab_%:   $(BUILD)/tests/lab/%.o   $(SO) | $(SO).1;  $(ld)
$(BUILD)/t/fault_key_wiped: RPATH += -Wl,-z,now
$(BUILD)/t/lab_rdma_peer: $(BUILD)/tests/lab/rdma_peer.o;      $(ld) -lrdmacm -libverbs
$(BUILD)/t/lab_msg_memory: $(BUILD)/tests/lab/msg_memory.o $(SO) | $(SO).1;  $(ld) -libverbs
$(BUILD)/bin/%:     $(BUILD)/tools/%.o       $(SO);  $(ld)
$(BUILD)/bin/%:     $(BUILD)/examples/%.o    $(SO);  $(ld)

demo:		## install what is missing, build, show it at work
	@tests/setup.sh build
	$(sub) all
	@examples/demo.sh

check:		## install what is missing, build, run the tests
	@tests/setup.sh build test
	$(sub) test

check-verbs:	## the same for the tests that need RDMA, in a guest that has some: KERNEL=6.1, TESTS=lab_p*, MORE=1
	@tests/setup.sh build test lab
	$(sub) verbs

# Where the library had to do without RDMA so have they: what the script says then is why nothing runs.
verbs: all $(if $(filter src/hw/verbs/%,$(SKIP)),,$(LAB:%=$(BUILD)/t/%))
	@tests/lab/vm/check.sh

check-aarch64:	## build for 64-bit Arm, run a part of the tests under qemu: SHORT=1
	@tests/setup.sh build test aarch64
	@tests/aarch64/check.sh

check-packages:	## build all packages and install them into a fresh system: ten minutes
	@tests/setup.sh build test package
	$(sub) packages

packages: all
	@tests/run.sh $(PACK)

check-clients:	## clients' own suites over the library, an hour or two; SUITES="mpich hpcc", TESTS=, AGAIN=fail
	@tests/setup.sh build test clients
	$(sub) all
	@python3 tests/client/suites/run.py

check-field:	## the same, and a short check of the library, in trees of Debian's later suites: FIELD="trixie sid"
	@tests/field/check.sh

bench-verbs:	## measure beside perftest, in a guest or on RDMA devices: KERNEL=6.1
	@tests/setup.sh build test lab
	$(sub) all $(BUILD)/t/lab_pace
	@NAMES=lab_latency KERNEL=$${KERNEL:-6.1} tests/lab/vm/check.sh

lab-shell:	## a shell in such a guest
	@tests/setup.sh build test lab
	$(sub) all
	@tests/lab/vm/shell.sh

test: all $(PROG:%=$(BUILD)/t/%)	## run every test
	@tests/run.sh $(TEST)

fast: all $(FAST:%=$(BUILD)/t/%)	## run the unit and api tests
	@tests/run.sh $(FAST)

t/%: $(BUILD)/t/%	## run one test: make t/base_pool, HW=shm make t/api_tags
	@tests/run.sh $*
t/%: all
	@tests/run.sh $*
t/api_hooked: $(patsubst %,$(BUILD)/t/%,$(filter api_%,$(PROG))) # which it runs

asan: SAN = address,undefined -fno-sanitize-recover=undefined -DENABLE_DEBUG=1
tsan: SAN = thread -Wno-error
asan tsan:	## the unit and api tests under a sanitizer
	$(sub) fast BUILD=build-$@ LDFLAGS=-Wl,-z,undefs SLOWER=4 \
		CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=$(SAN)'

valgrind: LEAKS = --leak-check=full --errors-for-leak-kinds=definite
valgrind:	## the unit and api tests under valgrind
	$(sub) fast SLOWER=10 FEWER=10 RUN='valgrind -q --fair-sched=try --error-exitcode=9 $(LEAKS)'

coverage:	## the share of the lines of src/ that the unit and api tests run
	@mkdir -p build-$@ && find build-$@ -name '*.gcda' -delete
	$(sub) fast BUILD=build-$@ CFLAGS='-O0 -g --coverage -fprofile-update=atomic'
	@tests/coverage.sh build-$@

bench:		## install what is missing, build, measure
	@tests/setup.sh build test bench
	$(sub) all
	@tests/bench/run.py

CODE = $(shell find src tools examples tests -name '*.[ch]' 2>/dev/null)
lint: config.mk	## clang-format, cppcheck and clang-tidy
	@tests/setup.sh lint
	clang-format --dry-run -Werror $(CODE)
	cppcheck -q --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--std=c11 $(INC) src
	clang-tidy --quiet $(SRC) -- $(filter -std=% -D%,$(FLAGS)) $(INC) $(CPPFLAGS)

format:		## lay the code out
	clang-format -i $(CODE)

html:		## the manual pages as HTML: build/man/html/index.html
	@tests/setup.sh doc
	$(call say,HTML)man/html.sh $(abspath $(BUILD))/man/html

D   = $(DESTDIR)
MAN = $(wildcard man/*.[1-9])
# The further names of pages, as "NAME.SECTION PAGE".
LINKS = awk -f man/links.awk $(MAN)
CMAKE = $(notdir $(wildcard packaging/cmake/*.cmake))
RUNPATH = -Wl,-rpath,$(libdir)
install: all	## honours DESTDIR, prefix, bindir, libdir, includedir and mandir; RUNPATH= leaves libdir out of the tools
	install -d $D$(bindir) $D$(libdir)/pkgconfig $D$(libdir)/cmake/libfabric
	install -m 644 $(LIB) $D$(libdir)
	install -m 755 $(SO).$(VER) $D$(libdir)
	cp -P $(SO) $(SO).1 $D$(libdir)
	cd include && find rdma -name '*.h' -exec install -D -m 644 {} $D$(includedir)/{} ';'
	for t in $(TOOL); do $(CC) -pthread $(CFLAGS) $(LDFLAGS) -o $D$(bindir)/$$t \
		$(BUILD)/tools/$$t.o $(SO) $(RUNPATH) || exit; done
	sed $(foreach v,prefix exec_prefix libdir includedir,-e 's|^$v=.*|$v=$($v)|') \
		pkgconfig/libfabric.pc > $D$(libdir)/pkgconfig/libfabric.pc
	for c in $(CMAKE); do sed -e 's|@VERSION@|$(VERSION)|' \
		-e "s|@INCLUDE@|$$(realpath -m --relative-to=$(libdir)/cmake/libfabric $(includedir))|" \
		packaging/cmake/$$c > $D$(libdir)/cmake/libfabric/$$c || exit; done
	for p in $(MAN); do install -D -m 644 -t $D$(mandir)/man$${p##*.} $$p || exit; done
	$(LINKS) | while read -r l p; do echo ".so man$${p##*.}/$$p" >$D$(mandir)/man$${l##*.}/$$l || exit; done

uninstall:	## what install put there
	rm -f $(TOOL:%=$D$(bindir)/%) $D$(libdir)/pkgconfig/libfabric.pc
	rm -f $(addprefix $D$(libdir)/libfabric.,a so so.1 so.$(VER)) $(CMAKE:%=$D$(libdir)/cmake/libfabric/%)
	-rmdir $D$(libdir)/cmake/libfabric
	for p in $(MAN:man/%=%) $$($(LINKS) | cut -d' ' -f1); do rm -f $D$(mandir)/man$${p##*.}/$$p; done
	cd include && find rdma -name '*.h' -exec rm -f $D$(includedir)/{} ';'
	-find $D$(includedir)/rdma -type d -empty -delete

# The files of git and configure, with the time of the last commit: the same bytes for the same commit.
DIST = $(BUILD)/weft-$(VERSION).tar.gz
dist: configure	## what is built with nothing but a compiler and make: build/weft-VERSION.tar.gz
	@mkdir -p $(BUILD)
	$(call say,DIST)(git ls-files && ls configure config.h.in) | LC_ALL=C sort | tar -c -f $(DIST) -I 'gzip -9n' \
		--owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct) --mode=u=rwX,go=rX \
		--transform='s|^|weft-$(VERSION)/|' --no-recursion -T -

deb:		## install what is missing, build Debian's packages into build/deb
	@tests/setup.sh build package
	$(sub) dist
	@packaging/deb.sh

rpm: dist	## build packages for rpm into build/rpm; RPMBUILD=--nodeps where rpm does not know what is installed
	$(call say,RPM)env -u MAKEFLAGS -u CC rpmbuild -bb --quiet $(RPMBUILD) --define '_topdir $(abspath $(BUILD))/rpm' \
		--define '_sourcedir $(abspath $(BUILD))' --define 'weft_version $(VERSION)' packaging/rpm/weft.spec

configure: configure.ac
	$(call say,CONF)autoheader && autoconf
config.mk: configure config.mk.in pkgconfig/libfabric.pc.in
	$(call say,CONF)if test -x config.status; \
		then ./config.status -q --recheck && ./config.status -q; else ./configure -q; fi

clean:		## remove what was built
	rm -rf build build-*
distclean: clean	## remove what was built and configured
	rm -rf autom4te.cache configure config.h config.h.in config.log config.mk config.status
	rm -f pkgconfig/libfabric.pc

help:		## this list
	@sed -n 's/^\([a-z][^:]*\):.*## /make \1\t/p' Makefile | expand -t 20

.PHONY: all demo check test check-verbs check-aarch64 check-packages packages check-clients check-field bench-verbs verbs lab-shell fast asan tsan valgrind coverage
.PHONY: bench lint format html install uninstall dist deb rpm clean distclean help
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(BUILD) -path $(BUILD)/field -prune -o -name '*.d' -print 2>/dev/null)
