rockspec_format = "3.0"
package = "batch"
version = "scm-1"

-- `luarocks make rockspec/batch-scm-1.rockspec` builds the checkout that it is run in.
source = { url = "." }

description = {
    summary = "A durable batch runner",
    detailed = [[
        Fetches lists of targets, one at a time per job, and commits every outcome to SQLite before
        the next. Jobs survive crashes, exist once however often they are submitted, and are shared
        by the processes on one store.]],
    license = "MIT",
    labels = { "batch", "queue", "sqlite", "http" },
}

-- Lua 5.3, 5.4 and LuaJIT, which calls itself 5.1.
supported_platforms = { "linux" }
dependencies = {
    "lua >= 5.1, ~= 5.2, < 5.5",
    "lua-cjson >= 2.1",
    "lpeg >= 1.0",
    "luaossl",
    "argparse >= 0.7",
}
external_dependencies = {
    SQLITE3 = { header = "sqlite3.h" },
    CRYPTO = { header = "openssl/evp.h" },
    CURL = { library = "curl" },
    PCRE2 = { header = "pcre2.h" },
    GUMBO = { library = "gumbo" },
}

build = {
    type = "make",
    build_variables = {
        LUA = "$(LUA)",
        LUA_INCDIR = "$(LUA_INCDIR)",
        CFLAGS = "$(CFLAGS)",
    },
    install_variables = {
        LUA = "$(LUA)",
        LUA_INCDIR = "$(LUA_INCDIR)",
        CFLAGS = "$(CFLAGS)",
        LUADIR = "$(LUADIR)",
        LIBDIR = "$(LIBDIR)",
        BINDIR = "$(BINDIR)",
        ROCK = "$(PREFIX)",
    },
}

test = {
    type = "command",
    command = "make test",
}
