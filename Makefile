# SPDX-License-Identifier: MIT
#
# Builds batch for one Lua at a time: LUA=5.4 (the default), LUA=luajit or LUA=5.3, each in a folder
# of its own below build/; only make test, without LUA, sees to two. Paths are relative, so that the
# checkout may lie anywhere.
# What runs programs rather than builds them is a script in .ci/.

TESTED := $(if $(filter undefined,$(origin LUA)),5.4 luajit,$(LUA))
LUA ?= 5.4
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
SECONDS_EACH ?= 60

# 5.4, lua5.4 and /usr/bin/lua5.4 all name the same Lua.
FLAVOUR := $(patsubst lua%,%,$(notdir $(LUA)))
ifeq ($(filter $(FLAVOUR),5.4 5.3 jit),)
$(error LUA must be 5.4, luajit or 5.3, got "$(LUA)")
endif
LUA_NAME := lua$(FLAVOUR)
TESTED_NAMES := $(foreach lua,$(TESTED),lua$(patsubst lua%,%,$(notdir $(lua))))
LUA_VERSION := $(FLAVOUR:jit=5.1)
LUA_INCDIR ?=
LUA_CFLAGS = $(if $(LUA_INCDIR),-I$(LUA_INCDIR),$(shell pkg-config --cflags $(LUA_NAME)))

# VARIANT is asan, fuzz, tsan or cover for the builds that watch themselves; see the targets of that name.
VARIANT ?=
BUILD := build/$(VARIANT:%=%-)$(LUA_NAME)
asan_FLAGS := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
fuzz_FLAGS := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
tsan_FLAGS := -O1 -fsanitize=thread -fno-omit-frame-pointer
cover_FLAGS := -O0 --coverage -fprofile-update=atomic
VARIANT_FLAGS := $(if $(VARIANT),$($(VARIANT)_FLAGS))

WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wvla \
	$(if $(CI),-Werror)
C_FLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread $(WARNINGS) $(CFLAGS) \
	$(VARIANT_FLAGS)
# The core's own calls for memory pass by allocation.c, where a test may have them fail.
comma := ,
WRAPPED := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc strdup strndup realpath asprintf)
LIBS := $(WRAPPED) -lsqlite3 -lcrypto -lcurl -lgumbo -lpcre2-8 -lz -lbrotlidec -lzstd -lpthread -lm

# Only the sources that begin with l know Lua. The others make a plain C library, against which the
# C tests are linked without any Lua.
OBJECTS := $(patsubst csrc/%.c,$(BUILD)/obj/%.o,$(wildcard csrc/*.c))
LUA_OBJECTS := $(filter $(BUILD)/obj/l%.o,$(OBJECTS))
C_OBJECTS := $(filter-out $(LUA_OBJECTS),$(OBJECTS))
C_TESTS := $(patsubst spec/c/%.c,$(BUILD)/spec/%,$(wildcard spec/c/*_test.c))
C_EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
C_FILES = $(wildcard csrc/*.[ch] spec/c/*.[ch] spec/fuzz/*.c spec/fuzz/host/*.[ch] bench/*.[ch] \
	examples/*.c)
LUA_FILES = $(shell find lua -name '*.lua')

CORE := $(BUILD)/batch/core.so
LAUNCHER := $(BUILD)/bin/luabatch
LIBRARY := $(BUILD)/libbatch.a
FLOOR := $(BUILD)/bench/floor
BENCH_PROGRAMS := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/*.c))
FUZZED_C := $(patsubst spec/fuzz/%.c,%,$(wildcard spec/fuzz/*.c))
FUZZED_LUA := $(patsubst spec/fuzz/%.lua,%,$(wildcard spec/fuzz/*.lua))
REPLAYS := $(FUZZED_C:%=$(BUILD)/spec/fuzz/%)
FUZZERS := $(addprefix $(BUILD)/fuzz/,$(FUZZED_C) $(FUZZED_LUA))
WATCHED_LUA := $(BUILD)/bin/$(LUA_NAME)

# lua-http is packaged for Lua 5.1 to 5.3 and some of its parts for 5.1 and 5.2 alone, but all are
# pure Lua and run on 5.4 as well.
ifneq ($(FLAVOUR),jit)
HTTP_PATH := /usr/share/lua/5.3/?.lua;/usr/share/lua/5.2/?.lua;/usr/share/lua/5.1/?.lua
endif
LUA_FIRST = $(CURDIR)/lua/?.lua
LUA_LAST = ;;$(HTTP_PATH)
C_FIRST = $(CURDIR)/$(BUILD)/?.so
BIN_FIRST = $(CURDIR)/$(BUILD)/bin
quote = '$(subst ','\'',$(1))'
HERE = LUA_PATH=$(call quote,$(LUA_FIRST)$(LUA_LAST)) LUA_CPATH=$(call quote,$(C_FIRST);;) \
	PATH=$(call quote,$(BIN_FIRST)):"$$PATH" LUA=$(LUA_NAME) BUILD=$(BUILD)

# The same for a shell that may have paths of its own, which are kept.
kept = "$${$(1):+;$$$(1)}"
ENV_LUA_PATH = LUA_PATH=$(call quote,$(LUA_FIRST))$(call kept,LUA_PATH)$(call quote,$(LUA_LAST))
ENV_LUA_CPATH = LUA_CPATH=$(call quote,$(C_FIRST))$(call kept,LUA_CPATH)';;'
ENV_PATH = PATH=$(call quote,$(BIN_FIRST)):"$$PATH"

LUADIR ?= $(PREFIX)/share/lua/$(LUA_VERSION)
LIBDIR ?= $(PREFIX)/lib/lua/$(LUA_VERSION)
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d

# Where luabatch will find its modules once it is installed. LuaRocks moves them from the rock's own
# folder, which is ROCK, to those of its tree, five folders up.
FOUND_LUADIR = $(if $(ROCK),$(ROCK)/../../../../../share/lua/$(LUA_VERSION),$(LUADIR))
FOUND_LIBDIR = $(if $(ROCK),$(ROCK)/../../../../../lib/lua/$(LUA_VERSION),$(LIBDIR))

# $(call launcher,FOLDER OF LUA FILES,FOLDER OF C MODULES): the program luabatch.
define launcher
printf '%s\n' '#!/usr/bin/env $(LUA_NAME)' '-- Written by make.' \
	$(call quote,package.path = [[$(1)/?.lua;]] .. package.path$(HTTP_PATH:%= .. [[;%]])) \
	$(call quote,package.cpath = [[$(2)/?.so;]] .. package.cpath) \
	'os.exit(require("batch.cli").main(arg))'
endef

# A line for each file that is made, or with V=1 the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '%-4s %s\n' $(1) $(2))

# $(call put_output,WORDS OF LUABATCH,FILE): what it prints becomes a file. Not in a rock, where neither
# man nor a shell would look.
define put_output
$(call say,PUT,"$(DESTDIR)$(2)")

$(Q)$(HERE) luabatch $(1) >$(BUILD)/output
$(Q)install -D -m 644 $(BUILD)/output "$(DESTDIR)$(2)"
endef

INSTALL_DEPS = @LUA=$(LUA_NAME) .ci/install
# Whichever Lua runs the specs, nginx runs LuaJIT.
INSTALL_TEST_DEPS = @LUA="$(LUA_NAME) luajit" .ci/install build run test openresty
MAKEFLAGS += --no-print-directory

.DELETE_ON_ERROR:
.PHONY: all library c-tests c-examples run test soak openresty env install uninstall layers lint \
	asan tsan valgrind cover fuzz fuzzers check-all bench bench-plot bench-instructions docs clean \
	help FORCE

all: $(CORE) $(LAUNCHER) ## build the module and luabatch (LUA=5.4, luajit or 5.3; V=1 shows the commands)

library: $(LIBRARY) ## build the C core alone, without Lua, as libbatch.a

c-tests: $(C_TESTS) $(REPLAYS)
	@:

c-examples: $(C_EXAMPLES)
	@:

$(CORE): $(OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-z,nodelete $(C_FLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LIBS)

$(LIBRARY): $(C_OBJECTS)
	@rm -f $@
	$(call say,AR,$@)
	$(Q)$(AR) rcs $@ $(C_OBJECTS)

$(BUILD)/obj/l%.o: csrc/l%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) $(LUA_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: csrc/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/spec/%: spec/c/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -Icsrc -MMD -MP -o $@ $< $(LIBRARY) $(LDFLAGS) $(LIBS)

$(BUILD)/spec/fuzz/%: spec/fuzz/%.c spec/fuzz/host/replay.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -Icsrc -MMD -MP -o $@ $(filter %.c,$^) $(LIBRARY) $(LDFLAGS) $(LIBS)

FUZZ_LINK = -fsanitize=fuzzer $(LDFLAGS) $(LIBS)

$(BUILD)/fuzz/%: spec/fuzz/%.c spec/fuzz/host/drive.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -Icsrc -MMD -MP -o $@ $(filter %.c,$^) $(LIBRARY) $(FUZZ_LINK)

$(BUILD)/fuzz/%: spec/fuzz/%.lua spec/fuzz/host/lua.c spec/fuzz/host/drive.c $(OBJECTS)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) $(LUA_CFLAGS) -Icsrc '-DFUZZ_LUA="$<"' -MMD -MP -rdynamic -o $@ \
		$(filter %.c %.o,$^) $(shell pkg-config --libs $(LUA_NAME)) $(FUZZ_LINK)

$(BUILD)/examples/%: examples/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -Icsrc -MMD -MP -o $@ $< $(LIBRARY) $(LDFLAGS) $(LIBS)

$(BUILD)/bench/%: bench/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -Icsrc -MMD -MP -o $@ $< $(LIBRARY) $(LDFLAGS) $(LIBS)

# Looked at each time, written when it differs: a copied checkout must not run the original's files.
$(LAUNCHER): FORCE
	@mkdir -p $(@D)
	@$(call launcher,$(CURDIR)/lua,$(CURDIR)/$(BUILD)) >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else chmod 755 $@.new && mv $@.new $@; fi

-include $(OBJECTS:.o=.d) $(addsuffix .d,$(C_TESTS) $(REPLAYS) $(FUZZERS) $(C_EXAMPLES) \
	$(BENCH_PROGRAMS))

run: ## fetch an example site served on loopback, or with URLS=FILE your own list
	$(INSTALL_DEPS) build run
	@$(MAKE) all >&2
	@$(HERE) .ci/example $(if $(URLS),$(call quote,$(URLS)))

test: ## run every test on 5.4 and LuaJIT, or on the LUA given (ONLY=WORD: files so named)
	@LUA="$(TESTED_NAMES) luajit" .ci/install build run test openresty
	@.ci/promtool
	@$(MAKE) -j2 c-tests LUA=$(LUA_NAME)
	@for lua in $(TESTED_NAMES); do $(MAKE) -j2 all c-examples LUA=$$lua || exit 1; done
	@$(MAKE) all LUA=luajit
	@$(HERE) LUAS="$(TESTED_NAMES)" .ci/test $(call quote,$(ONLY))

openresty: ## start the gateway of examples/openresty on 127.0.0.1:8080
ifeq ($(FLAVOUR),jit)
	$(INSTALL_DEPS) build run openresty
	@$(MAKE) all >&2
	@$(HERE) .ci/gateway
else
	@$(MAKE) openresty LUA=luajit
endif

env: ## print what puts this build on the paths of a shell: eval "$(make -s env)"
	@printf 'export %s\n' $(call quote,$(ENV_LUA_PATH)) $(call quote,$(ENV_LUA_CPATH)) \
		$(call quote,$(ENV_PATH))

install: all ## install below PREFIX (/usr/local), staged in DESTDIR if that is given
	$(call say,PUT,"$(DESTDIR)$(LUADIR)/batch.lua and batch/")
	@for file in $(LUA_FILES:lua/%=%); do \
		install -D -m 644 "lua/$$file" "$(DESTDIR)$(LUADIR)/$$file" || exit 1; \
	done
	$(call say,PUT,"$(DESTDIR)$(LIBDIR)/batch/core.so")
	$(Q)install -D -m 755 $(CORE) "$(DESTDIR)$(LIBDIR)/batch/core.so"
	@$(call launcher,$(FOUND_LUADIR),$(FOUND_LIBDIR)) >$(LAUNCHER).installed
	$(call say,PUT,"$(DESTDIR)$(BINDIR)/luabatch")
	$(Q)install -D -m 755 $(LAUNCHER).installed "$(DESTDIR)$(BINDIR)/luabatch"
ifndef ROCK
	$(call put_output,manual,$(MANDIR)/man1/luabatch.1)
	$(call put_output,completion bash,$(BASHDIR)/luabatch)
	$(call put_output,completion zsh,$(ZSHDIR)/_luabatch)
	$(call put_output,completion fish,$(FISHDIR)/luabatch.fish)
endif

uninstall: ## remove what install has put below PREFIX
	rm -rf "$(DESTDIR)$(LUADIR)/batch" "$(DESTDIR)$(LIBDIR)/batch"
	rm -f "$(DESTDIR)$(LUADIR)/batch.lua" "$(DESTDIR)$(BINDIR)/luabatch"
	rm -f "$(DESTDIR)$(MANDIR)/man1/luabatch.1" "$(DESTDIR)$(BASHDIR)/luabatch" \
		"$(DESTDIR)$(ZSHDIR)/_luabatch" "$(DESTDIR)$(FISHDIR)/luabatch.fish"

layers: ## check that no C file includes what its layer must never see
	$(INSTALL_DEPS) build
	@$(LUA_NAME) .ci/layers.lua csrc

# ctuuninitvar takes a variable that is handed over to be filled for one that is read.
CPPCHECK_FLAGS := --quiet --std=c11 -D_GNU_SOURCE -Icsrc --enable=warning,performance,portability \
	--suppress=missingIncludeSystem --suppress=ctuuninitvar --inline-suppr --error-exitcode=1

lint: layers ## check style and look for mistakes: luacheck, clang-format, cppcheck
	$(INSTALL_DEPS) build lint
	$(call say,LINT,luacheck)
	$(Q)luacheck --quiet --no-color lua spec examples $(wildcard bench) .ci rockspec/*.rockspec
	$(call say,LINT,clang-format)
	$(Q)clang-format --dry-run -Werror $(C_FILES)
	$(call say,LINT,cppcheck)
	$(Q)cppcheck $(CPPCHECK_FLAGS) $(filter %.c,$(C_FILES))

soak: ## run what takes an hour: kills in a loop, a failure at each single step (ONLY=WORD: so named)
	@LUA="$(LUA_NAME) luajit" .ci/install build run test openresty
	@$(MAKE) all
	@$(MAKE) all LUA=luajit
	@$(HERE) .ci/soak $(call quote,$(ONLY))
ifneq ($(if $(ONLY),$(findstring $(ONLY),ordeal),all),)
	@$(HERE) ORDEAL=all LIMIT_S=14400 .ci/test ordeal
endif

asan: ## run every test with AddressSanitizer, its leak check, and UBSan
	$(INSTALL_TEST_DEPS) watch
	@.ci/promtool
	@$(MAKE) sanitized VARIANT=asan CFLAGS=-g

tsan: ## run every test with ThreadSanitizer
	$(INSTALL_TEST_DEPS) watch
	@.ci/promtool
	@$(MAKE) sanitized VARIANT=tsan CFLAGS=-g

.PHONY: sanitized
sanitized: all c-tests c-examples $(WATCHED_LUA)
	@$(MAKE) all LUA=luajit
	@$(HERE) SANITIZER=$(VARIANT) .ci/test $(call quote,$(ONLY))

# The sanitizer's runtime has to be in the interpreter before libc is. Preloaded, it would get into
# the shells that specs start as well, and Debian's sh crashes under ThreadSanitizer.
$(WATCHED_LUA):
	@mkdir -p $(@D)
	patchelf --add-needed "$$($(CC) -print-file-name=lib$(VARIANT).so)" --output $@ \
		"$$(command -v $(LUA_NAME))"

valgrind: ## run the C tests and some specs under memcheck
	$(INSTALL_DEPS) build run test valgrind
	@$(MAKE) all c-tests
	@$(HERE) .ci/valgrind $(call quote,$(ONLY))

cover: ## measure which lines of C and Lua the tests reach: 90 % of each at least
	$(INSTALL_TEST_DEPS) cover
	@.ci/promtool
	@$(MAKE) covered VARIANT=cover CFLAGS=-g

# A line hook makes Lua slow, so tests with a limit of time may fail here: make test is what says
# whether they pass.
REACHED := $(BUILD)/reached

.PHONY: covered
covered: all c-tests c-examples
	@$(MAKE) all LUA=luajit VARIANT= CFLAGS="-O2 -g"
	@find $(BUILD) -name '*.gcda' -delete
	@rm -rf $(REACHED)
	@mkdir -p $(REACHED)
	@LUA_INIT_5_4=@$(CURDIR)/.ci/lua_cover.lua LUA_COVER=$(CURDIR)/$(REACHED) $(HERE) \
		.ci/test $(call quote,$(ONLY)) || echo "not all tests passed at this pace"
	@gcovr --root . --filter csrc/ --object-directory $(BUILD)/obj --fail-under-line 90 $(BUILD)/obj
	@$(LUA_NAME) .ci/lua_cover.lua $(REACHED) 90

fuzz: ## try made-up inputs on all that reads them, a minute each (SECONDS_EACH=N, ONLY=WORD)
	$(INSTALL_DEPS) build run fuzz
	@$(MAKE) all
	@$(MAKE) fuzzers VARIANT=fuzz CC=clang CFLAGS=-g
	@$(HERE) SECONDS_EACH=$(SECONDS_EACH) .ci/fuzz build/fuzz-$(LUA_NAME)/fuzz \
		$(call quote,$(ONLY))

fuzzers: $(FUZZERS)
	@:

# Before a release: each with its own build, one after the other. A failure ends it.
check-all: ## run all of lint, layers, asan, tsan, valgrind, cover, soak, fuzz (hours)
	@for check in lint layers asan tsan valgrind cover soak; do \
		echo "== $$check" && $(MAKE) $$check || exit 1; \
	done
	@echo "== fuzz" && $(MAKE) fuzz SECONDS_EACH=10

bench: ## measure speed and memory beside the bare floor of SQLite (BENCH_QUICK=1, BENCH_JSON=FILE)
	@LUA="$(LUA_NAME) luajit" .ci/install build run bench openresty
	@$(MAKE) all $(BENCH_PROGRAMS)
	@$(MAKE) all LUA=luajit # for the nginx of bench/nginx_sections.lua
	@$(HERE) FLOOR=$(FLOOR) $(LUA_NAME) bench/bench.lua

bench-plot: ## draw docs/performance.svg from what `make bench` wrote (BENCH_JSON="FILE...")
	@$(HERE) $(LUA_NAME) bench/plot.lua $(BENCH_JSON) >build/performance.svg
	@mv build/performance.svg docs/performance.svg

# What a target costs in user space, which does not depend on the machine's mood.
bench-instructions: ## count the instructions of draining, by callgrind
	@$(INSTALL_DEPS) build run valgrind
	@$(MAKE) all $(BENCH_PROGRAMS)
	@$(HERE) FLOOR=$(FLOOR) LUA=$(LUA_NAME) BUILD=$(BUILD) bench/instructions

docs: ## write docs/configuration.md, examples/luabatch.toml and the reference in build/docs
	$(INSTALL_DEPS) build run docs
	@$(MAKE) all
	@$(HERE) $(LUA_NAME) .ci/config_docs.lua
	ldoc --config .ldoc/config.ld .

clean: ## remove everything that was built
	rm -rf build

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile
