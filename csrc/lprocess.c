// SPDX-License-Identifier: MIT
//
// Small calls into the system. Signals are caught only for a program that asks for it (luabatch):
// a library has no business with its host's signals.

#include "lprocess.h"

#include "largs.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_TYPE "batch.clock"

static volatile sig_atomic_t caught;

struct clock *lprocess_check_clock(lua_State *L, int index) {
    struct clock **box = luaL_checkudata(L, index, CLOCK_TYPE);
    return *box;
}

// now() → seconds since the epoch
static int function_now(lua_State *L) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    lua_pushnumber(L, (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    return 1;
}

// monotime() → seconds since some moment, whatever becomes of the wall clock: for waiting
static int function_monotime(lua_State *L) {
    lua_pushnumber(L, (double)clock_mono_us(NULL) / 1e6);
    return 1;
}

// poll_fd(fd, seconds) → whether it is readable; false, "interrupted" after a caught signal
static int function_poll_fd(lua_State *L) {
    struct pollfd poll_fd = {.fd = (int)luaL_checkinteger(L, 1), .events = POLLIN};
    double seconds = fmin(luaL_checknumber(L, 2), 1e6);
    struct timespec span = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    sigset_t blocked, before;
    // Blocked up to the wait itself: a signal that comes just before it ends it, too.
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int n = caught ? -1 : ppoll(&poll_fd, 1, &span, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    lua_pushboolean(L, n > 0);
    if (n > 0 || !caught)
        return 1;
    lua_pushliteral(L, "interrupted");
    return 2;
}

static void on_signal(int number) {
    caught = number;
}

// catch_signals(): the first SIGINT or SIGTERM is noted, the second one kills
static int function_catch_signals(lua_State *L) {
    (void)L;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return 0;
}

// caught() → the number of the signal, or nil
static int function_caught(lua_State *L) {
    if (!caught)
        return 0;
    lua_pushinteger(L, caught);
    return 1;
}

static int function_is_terminal(lua_State *L) {
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

// terminal_width() → columns of standard error, or nil
static int function_terminal_width(lua_State *L) {
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 0;
    lua_pushinteger(L, size.ws_col);
    return 1;
}

// raise_files() → how many files this process may have open: as many as the system lets it
static int function_raise_files(lua_State *L) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    lua_pushnumber(L, (double)limit.rlim_cur);
    return 1;
}

static int function_pid(lua_State *L) {
    lua_pushinteger(L, getpid());
    return 1;
}

// Seconds of a virtual clock, far from where its microseconds would overflow.
static int64_t ms_arg(lua_State *L, int index) {
    double seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, fabs(seconds) <= 1e11, index, "seconds must be within 1e11");
    return llround(seconds * 1e3);
}

// clock([now]) → a virtual clock that stands still, or nil, message, code
static int function_clock(lua_State *L) {
    int64_t now_ms = lua_isnoneornil(L, 1) ? clock_wall_ms(NULL) : ms_arg(L, 1);
    struct clock **box = lua_newuserdata(L, sizeof *box);
    *box = NULL;
    luaL_getmetatable(L, CLOCK_TYPE);
    lua_setmetatable(L, -2);
    *box = clock_new(now_ms);
    return *box ? 1 : largs_refuse(L, STATUS_NO_MEMORY, "out of memory");
}

static int clock_gc(lua_State *L) {
    clock_drop(lprocess_check_clock(L, 1));
    return 0;
}

static int clock_method_advance(lua_State *L) {
    struct clock *clock = lprocess_check_clock(L, 1);
    int64_t span_ms = ms_arg(L, 2);
    luaL_argcheck(L, span_ms >= 0, 2, "a clock does not run backwards");
    clock_advance(clock, span_ms);
    return 0;
}

// set(now): the wall clock alone
static int clock_method_set(lua_State *L) {
    struct clock *clock = lprocess_check_clock(L, 1);
    clock_set_wall(clock, ms_arg(L, 2));
    return 0;
}

static int clock_method_now(lua_State *L) {
    lua_pushnumber(L, (double)clock_wall_ms(lprocess_check_clock(L, 1)) / 1e3);
    return 1;
}

const luaL_Reg lprocess_functions[] = {
    {"now", function_now},
    {"monotime", function_monotime},
    {"poll_fd", function_poll_fd},
    {"catch_signals", function_catch_signals},
    {"caught", function_caught},
    {"is_terminal", function_is_terminal},
    {"terminal_width", function_terminal_width},
    {"raise_files", function_raise_files},
    {"pid", function_pid},
    {"clock", function_clock},
    {NULL, NULL},
};

static const luaL_Reg clock_methods[] = {
    {"advance", clock_method_advance},
    {"set", clock_method_set},
    {"now", clock_method_now},
    {NULL, NULL},
};

void lprocess_register(lua_State *L) {
    luaL_newmetatable(L, CLOCK_TYPE);
    lua_pushcfunction(L, clock_gc);
    lua_setfield(L, -2, "__gc");
    lua_newtable(L);
    luaL_setfuncs(L, clock_methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
