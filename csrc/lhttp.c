// SPDX-License-Identifier: MIT
//
// What C needs while a request runs lies in the client's userdata or on the Lua stack, so that an
// error of Lua's, memory shortage above all, leaves nothing behind.
//
//   http.new{allow =, deny =, exempt =, timeout =, …} -> client, or nil, message, "invalid"
//   client:get(url [, {headers =, timeout =, cancel_fd =, exempt =}])
//     -> answer, or nil, message, hint, kind
//   client:post(url, {body =, …}): the same, with a body
//   client:close(), also __gc and __close
//   http.check_header(name, value) -> true, or nil, message, "invalid"
//   http.check_network(text) -> true, or nil, message, "invalid": what allow and deny may hold

#include "lhttp.h"

#include "compat.h"
#include "guard.h"
#include "http.h"
#include "lcharset.h"
#include "lhosts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define CLIENT "batch.http"

struct client {
    struct http *http;  // NULL: closed
    struct guard guard;
    struct http_answer answer;
    double timeout;  // seconds
    double connect_timeout;
    double max_body;
    double max_redirects;
    char user_agent[256];
};

// The options that are numbers. 0 and absence take the default.
static const struct option {
    const char *name;
    double fallback;
    double max;
    size_t offset;
    bool is_integral;
} options[] = {
    {"timeout", 30, 86400, offsetof(struct client, timeout), false},
    {"connect_timeout", 10, 86400, offsetof(struct client, connect_timeout), false},
    {"max_body", 16 << 20, 1 << 30, offsetof(struct client, max_body), true},
    {"max_redirects", 5, 100, offsetof(struct client, max_redirects), true},
};

enum { N_OPTIONS = sizeof options / sizeof *options };

static const char *const other_options[] = {"allow", "deny", "exempt", "user_agent"};

static int refuse(lua_State *L, const char *message) {
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, status_code(STATUS_INVALID));
    return 3;
}

static bool is_option(const char *name) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < sizeof other_options / sizeof *other_options; i++)
        if (strcmp(other_options[i], name) == 0)
            return true;
    return false;
}

static int check_names(lua_State *L, struct fault *fault) {
    int status = STATUS_OK;
    for (lua_pushnil(L); status == STATUS_OK && lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (!is_option(name))
            status = fault_set(fault, STATUS_INVALID, "unknown field '%.100s'", name);
    }
    return status;
}

static int read_number(lua_State *L, const struct option *option, struct client *client,
                       struct fault *fault) {
    double *place = (double *)(void *)((char *)client + option->offset);
    lua_getfield(L, 1, option->name);
    double value = lua_isnil(L, -1) ? 0 : lua_tonumber(L, -1);
    bool is_number = lua_isnil(L, -1) || lua_type(L, -1) == LUA_TNUMBER;
    bool is_whole = !option->is_integral || value == floor(value);
    if (!is_number || !is_whole || !(value >= 0 && value <= option->max))
        return fault_set(fault, STATUS_INVALID, "%s must be %s from 0 to %.0f, got %.100s",
                         option->name, option->is_integral ? "an integer" : "a number of seconds",
                         option->max, luaL_tolstring(L, -1, NULL));
    *place = value > 0 ? value : option->fallback;
    lua_pop(L, 1);
    return STATUS_OK;
}

static int read_networks(lua_State *L, const char *name, struct guard *guard, struct fault *fault) {
    struct fault why;
    lua_getfield(L, 1, name);
    if (lua_isnil(L, -1))
        return STATUS_OK;
    if (!lua_istable(L, -1))
        return fault_set(fault, STATUS_INVALID, "%s must be a list of networks, got a %s", name,
                         luaL_typename(L, -1));
    int status = STATUS_OK;
    size_t count = lua_rawlen(L, -1);
    for (size_t i = 1; i <= count && status == STATUS_OK; i++) {
        lua_rawgeti(L, -1, (int)i);
        const char *text = luaL_tolstring(L, -1, NULL);
        status = guard_add(guard, strcmp(name, "allow") == 0, text, &why);
        if (status != STATUS_OK)
            fault_set(fault, status, "%s: %.400s", name, why.text);
        lua_pop(L, 2);
    }
    return status;
}

static int read_user_agent(lua_State *L, struct client *client, struct fault *fault) {
    struct http_header header = {.name = "User-Agent", .name_len = strlen("User-Agent")};
    struct http_fault why;
    lua_getfield(L, 1, "user_agent");
    header.value = lua_isnil(L, -1) ? "luabatch" : lua_tolstring(L, -1, &header.value_len);
    if (lua_isnil(L, -1))
        header.value_len = strlen(header.value);
    if (!header.value || http_header_check(&header, &why) != STATUS_OK ||
        header.value_len >= sizeof client->user_agent)
        return fault_set(fault, STATUS_INVALID,
                         "user_agent must be a line of text of less than %zu bytes",
                         sizeof client->user_agent);
    memcpy(client->user_agent, header.value, header.value_len);
    client->user_agent[header.value_len] = '\0';
    return STATUS_OK;
}

static int configure(lua_State *L, struct client *client, struct fault *fault) {
    int status = check_names(L, fault);
    for (size_t i = 0; i < N_OPTIONS && status == STATUS_OK; i++)
        status = read_number(L, &options[i], client, fault);
    if (status == STATUS_OK)
        status = read_networks(L, "allow", &client->guard, fault);
    if (status == STATUS_OK)
        status = read_networks(L, "deny", &client->guard, fault);
    if (status == STATUS_OK)
        status = read_user_agent(L, client, fault);
    return status;
}

// The operator's own addresses, once there is something to add them to.
static int read_exempt(lua_State *L, struct client *client, struct fault *fault) {
    struct http_fault why;
    lua_getfield(L, 1, "exempt");
    if (lua_isnil(L, -1))
        return STATUS_OK;
    if (!lua_istable(L, -1))
        return fault_set(fault, STATUS_INVALID, "exempt must be a list of URLs, got a %s",
                         luaL_typename(L, -1));
    int status = STATUS_OK;
    size_t count = lua_rawlen(L, -1);
    for (size_t i = 1; i <= count && status == STATUS_OK; i++) {
        size_t len;
        lua_rawgeti(L, -1, (int)i);
        const char *url = luaL_tolstring(L, -1, &len);
        status = http_exempt(client->http, url, len, &why);
        if (status != STATUS_OK)
            fault_set(fault, status, "exempt: %.400s", why.fault.text);
        lua_pop(L, 2);
    }
    return status;
}

static int new_client(lua_State *L) {
    struct fault fault;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct client *client = lua_newuserdata(L, sizeof *client);
    memset(client, 0, sizeof *client);
    luaL_setmetatable(L, CLIENT);
    if (configure(L, client, &fault) != STATUS_OK)
        return refuse(L, fault.text);
    if (http_open(&client->guard, &client->http) != STATUS_OK)
        return luaL_error(L, "%s", status_message(STATUS_NO_MEMORY));
    if (read_exempt(L, client, &fault) != STATUS_OK)
        return refuse(L, fault.text);
    lua_settop(L, 2);
    return 1;
}

static int close_client(lua_State *L) {
    struct client *client = luaL_checkudata(L, 1, CLIENT);
    http_answer_fini(&client->answer);
    http_close(client->http);
    guard_fini(&client->guard);
    client->http = NULL;
    return 0;
}

static int describe_client(lua_State *L) {
    struct client *client = luaL_checkudata(L, 1, CLIENT);
    lua_pushfstring(L, client->http ? CLIENT ": %p" : CLIENT " (closed)", (void *)client);
    return 1;
}

static size_t count_fields(lua_State *L, int index) {
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    return count;
}

// Fills request->headers from the table at index. The strings stay anchored in that table, the
// array on the stack.
static void read_headers(lua_State *L, int index, struct http_request *request) {
    struct http_header *header = lua_newuserdata(L, count_fields(L, index) * sizeof *header + 1);
    request->headers = header;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1), header++) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "names and values of headers must be strings");
        header->name = lua_tolstring(L, -2, &header->name_len);
        header->value = lua_tolstring(L, -1, &header->value_len);
    }
    request->n_headers = (size_t)(header - request->headers);
}

static void read_options(lua_State *L, int index, struct http_request *request) {
    luaL_checktype(L, index, LUA_TTABLE);
    lua_getfield(L, index, "timeout");
    if (!lua_isnil(L, -1))
        request->timeout_ms = (int64_t)ceil(fmin(fmax(luaL_checknumber(L, -1), 0), 86400) * 1000);
    lua_getfield(L, index, "cancel_fd");
    if (!lua_isnil(L, -1))
        request->cancel_fd = (int)luaL_checkinteger(L, -1);
    lua_getfield(L, index, "exempt");
    request->is_exempt = lua_toboolean(L, -1);
    lua_getfield(L, index, "headers");
    if (!lua_isnil(L, -1)) {
        luaL_checktype(L, -1, LUA_TTABLE);
        read_headers(L, lua_gettop(L), request);
    }
}

static int push_answer(lua_State *L, struct http_answer *answer) {
    lua_createtable(L, 0, 7);
    lua_pushinteger(L, answer->status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, answer->url);
    lua_setfield(L, -2, "url");
    lua_pushstring(L, answer->content_type);  // nil for NULL
    lua_setfield(L, -2, "content_type");
    lua_pushlstring(L, answer->body.len ? answer->body.bytes : "", answer->body.len);
    lua_setfield(L, -2, "body");
    lua_pushinteger(L, (lua_Integer)answer->bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushnumber(L, answer->seconds);
    lua_setfield(L, -2, "seconds");
    if (answer->retry_after_s >= 0) {
        lua_pushinteger(L, (lua_Integer)answer->retry_after_s);
        lua_setfield(L, -2, "retry_after");
    }
    http_answer_fini(answer);
    return 1;
}

static int run(lua_State *L, struct http_request *request) {
    struct client *client = luaL_checkudata(L, 1, CLIENT);
    struct http_fault fault;
    request->user_agent = client->user_agent;
    request->timeout_ms = (int64_t)ceil(client->timeout * 1000);
    request->connect_timeout_ms = (int64_t)ceil(client->connect_timeout * 1000);
    request->max_body = (size_t)client->max_body;
    request->max_redirects = (unsigned)client->max_redirects;
    request->cancel_fd = -1;
    if (!client->http)
        return luaL_error(L, "attempt to use a closed http client");
    luaL_checktype(L, 2, LUA_TSTRING);
    request->url = lua_tolstring(L, 2, &request->url_len);
    if (!lua_isnoneornil(L, 3))
        read_options(L, 3, request);
    http_answer_fini(&client->answer);  // of a call whose answer could not be pushed
    if (http_run(client->http, request, &client->answer, &fault) != STATUS_OK)
        return lhosts_refuse(L, &fault);
    return push_answer(L, &client->answer);
}

static int get(lua_State *L) {
    struct http_request request = {0};
    return run(L, &request);
}

static int post(lua_State *L) {
    struct http_request request = {.is_post = true};
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_getfield(L, 3, "body");
    luaL_checktype(L, -1, LUA_TSTRING);  // which the table keeps
    request.body = lua_tolstring(L, -1, &request.body_len);
    return run(L, &request);
}

static int check_header(lua_State *L) {
    struct http_fault fault;
    struct http_header header;
    header.name = luaL_checklstring(L, 1, &header.name_len);
    header.value = luaL_checklstring(L, 2, &header.value_len);
    if (http_header_check(&header, &fault) != STATUS_OK)
        return refuse(L, fault.fault.text);
    lua_pushboolean(L, true);
    return 1;
}

// check_network(text) → true, or nil, message, "invalid"
static int check_network(lua_State *L) {
    struct guard guard;
    struct fault fault;
    size_t len;
    if (lua_type(L, 1) != LUA_TSTRING)
        return refuse(L, "a network must be text");
    const char *text = lua_tolstring(L, 1, &len);
    if (strlen(text) != len)
        return refuse(L, "a network must not hold NUL");
    guard_init(&guard);
    int status = guard_add(&guard, true, text, &fault);
    guard_fini(&guard);
    if (status != STATUS_OK)
        return refuse(L, fault.text);
    lua_pushboolean(L, true);
    return 1;
}

static const luaL_Reg methods[] = {
    {"get", get},
    {"post", post},
    {"close", close_client},
    {NULL, NULL},
};

static const luaL_Reg metamethods[] = {
    {"__gc", close_client},
    {"__close", close_client},
    {"__tostring", describe_client},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"new", new_client},
    {"check_header", check_header},
    {"check_network", check_network},
    {NULL, NULL},
};

int lhttp_open(lua_State *L) {
    if (luaL_newmetatable(L, CLIENT)) {
        luaL_setfuncs(L, metamethods, 0);
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
        lua_pushliteral(L, CLIENT);
        lua_setfield(L, -2, "__name");
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lcharset_add(L);
    lhosts_add(L);
    return 1;
}
