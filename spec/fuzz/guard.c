// SPDX-License-Identifier: MIT
//
// The guard: any lines as networks, any address. Deny wins, an address is judged the same in all
// its spellings. The input is 17 bytes, a choice and an address, and then networks, one a line; of
// those that begin with '-' the rest is denied.

#include "guard.h"
#include "host/fuzz.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

static bool admits_v4(const struct guard *guard, const void *bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    memcpy(&address.sin_addr, bytes, 4);
    return guard_admits(guard, (const struct sockaddr *)&address);
}

static bool admits_v6(const struct guard *guard, const void *bytes) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    memcpy(&address.sin6_addr, bytes, 16);
    return guard_admits(guard, (const struct sockaddr *)&address);
}

static void add_networks(struct guard *guard, const char *bytes, size_t len) {
    const char *end = bytes + len;
    while (bytes < end) {
        char line[80];
        struct fault fault = {""};
        const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t line_len = (size_t)((stop ? stop : end) - bytes);
        size_t kept = line_len < sizeof line ? line_len : sizeof line - 1;
        memcpy(line, bytes, kept);
        line[kept] = '\0';
        bool is_deny = line[0] == '-';
        int status = guard_add(guard, !is_deny, line + is_deny, &fault);
        FUZZ_CHECK("a network is taken or refused by a sentence",
                   status == STATUS_OK || (status == STATUS_INVALID && fault.text[0]));
        bytes += line_len + 1;
    }
}

// Whoever lets nothing through but what is public, needs no list: those that all agree on.
static void check_always_refused(void) {
    static const char *const texts[] = {"127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0"};
    struct guard guard;
    guard_init(&guard);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct in_addr address;
        inet_pton(AF_INET, texts[i], &address);
        FUZZ_CHECK("an address of this machine or network is refused",
                   !admits_v4(&guard, &address));
    }
    guard_fini(&guard);
}

void fuzz_one(const char *bytes, size_t len) {
    unsigned char address[16] = {0};
    struct guard guard;
    struct fault fault;
    bool is_ipv4 = fuzz_take(&bytes, &len) & 1;
    size_t n_bytes = is_ipv4 ? 4 : 16;
    for (size_t i = 0; i < n_bytes; i++)
        address[16 - n_bytes + i] = (unsigned char)fuzz_take(&bytes, &len);
    if (is_ipv4)
        address[10] = address[11] = 0xff;
    guard_init(&guard);
    add_networks(&guard, bytes, len);
    if (is_ipv4)
        FUZZ_CHECK("an IPv4 address is judged alike as IPv6",
                   admits_v4(&guard, address + 12) == admits_v6(&guard, address));
    admits_v6(&guard, address);
    guard_add(&guard, false, "0.0.0.0/0", &fault);
    guard_add(&guard, false, "::/0", &fault);
    FUZZ_CHECK("what is denied is refused whatever is allowed", !admits_v6(&guard, address));
    guard_fini(&guard);
    check_always_refused();
}
