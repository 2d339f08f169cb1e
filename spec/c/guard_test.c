// SPDX-License-Identifier: MIT
//
// The address policy, cell by cell: both ends of every range, and the neighbours beyond.

#include "guard.h"

#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static bool admits(const struct guard *guard, const char *text) {
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(80)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1)
        return guard_admits(guard, (const struct sockaddr *)&ipv4);
    if (inet_pton(AF_INET6, text, &ipv6.sin6_addr) != 1)
        printf("the test itself is wrong: '%s' is no address\n", text);
    return guard_admits(guard, (const struct sockaddr *)&ipv6);
}

static const char *const refused[] = {
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.0",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.255",
    "192.0.2.0",
    "192.0.2.255",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.255",
    "224.0.0.0",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",  // IPv4-compatible, private or not
    "::808:808",
    "::ffff:0.0.0.0",  // IPv4-mapped
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:224.0.0.1",
    "::ffff:0:8.8.8.8",  // IPv4-translated
    "64:ff9b::7f00:1",   // NAT64
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:0:0:0:1:808:808",
    "64:ff9b:1::",
    "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
    "100::1",  // discard
    "1fff:ffff::",
    "2001::",  // Teredo
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:1ff:ffff::",
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2002::",  // 6to4
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::",
    "3fff::",
    "3fff:fff:ffff::",
    "4000::",
    "5f00::1",
    "fc00::",
    "fdff:ffff::1",
    "fe80::1",
    "febf:ffff::",
    "fec0::1",
    "feff:ffff::",
    "ff00::",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
};

static const char *const admitted[] = {
    "1.0.0.0",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2000::1",
    "2001:200::",
    "2001:4860:4860::8888",
    "2001:db7:ffff::",
    "2001:db9::",
    "2002:808:808::1",
    "2003::1",
    "2606:4700::1111",
    "3ffe:ffff::",
    "3fff:1000::",
};

static void check_defaults(void) {
    struct guard guard;
    char claim[128];
    guard_init(&guard);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(claim, sizeof claim, "refuses %s", refused[i]);
        CHECK(claim, !admits(&guard, refused[i]));
    }
    for (size_t i = 0; i < sizeof admitted / sizeof *admitted; i++) {
        snprintf(claim, sizeof claim, "admits %s", admitted[i]);
        CHECK(claim, admits(&guard, admitted[i]));
    }
    guard_fini(&guard);
}

static void check_families(void) {
    struct guard guard;
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    guard_init(&guard);
    CHECK("allows all of IPv4", guard_add(&guard, true, "0.0.0.0/0", NULL) == STATUS_OK);
    CHECK("refuses a unix socket", !guard_admits(&guard, (const struct sockaddr *)&local));
    CHECK("leaves IPv6 closed when all of IPv4 is open", !admits(&guard, "::1"));
    guard_fini(&guard);
    guard_init(&guard);
    CHECK("allows all of IPv6", guard_add(&guard, true, "::/0", NULL) == STATUS_OK);
    CHECK("leaves IPv4 closed when all of IPv6 is open", !admits(&guard, "127.0.0.1"));
    CHECK("takes a mapped address for IPv4", !admits(&guard, "::ffff:127.0.0.1"));
    guard_fini(&guard);
}

static const struct {
    const char *allow;
    const char *deny;
    const char *address;
    bool is_admitted;
} rules[] = {
    {"127.0.0.0/8", NULL, "127.0.0.1", true},
    {"127.0.0.0/8", NULL, "127.255.255.255", true},
    {"127.0.0.0/8", NULL, "::ffff:127.0.0.1", true},
    {"::ffff:127.0.0.0/104", NULL, "127.0.0.1", true},
    {"127.0.0.0/8", NULL, "::1", false},
    {"127.0.0.0/8", NULL, "10.0.0.1", false},
    {"127.0.0.0/8", NULL, "64:ff9b::7f00:1", false},
    {"64:ff9b::/96", NULL, "64:ff9b::7f00:1", true},
    {"127.0.0.1", NULL, "127.0.0.1", true},
    {"127.0.0.1", NULL, "127.0.0.2", false},
    {"::1", NULL, "::1", true},
    {"::1", NULL, "::2", false},
    {"10.0.0.0/9", NULL, "10.127.255.255", true},
    {"10.0.0.0/9", NULL, "10.128.0.0", false},
    {"fd00::/8", NULL, "fd12:3456::1", true},
    {"fd00::/8", NULL, "fc00::1", false},
    {NULL, "8.8.8.0/24", "8.8.8.8", false},
    {NULL, "8.8.8.0/24", "8.8.9.8", true},
    {NULL, "8.8.8.0/24", "::ffff:8.8.8.8", false},
    {NULL, "8.8.8.0/24", "64:ff9b::8.8.8.8", false},
    {NULL, "8.8.8.0/24", "2002:808:808::1", false},
    {NULL, "0.0.0.0/0", "8.8.8.8", false},
    {NULL, "::/0", "2606:4700::1111", false},
    {NULL, "::/0", "8.8.8.8", true},
    {"10.0.0.0/8", "10.0.0.0/16", "10.0.0.1", false},
    {"10.0.0.0/8", "10.0.0.0/16", "10.1.0.1", true},
    {"10.0.0.0/16", "10.0.0.0/8", "10.0.0.1", false},
};

static void check_rules(void) {
    char claim[160];
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct guard guard;
        const char *allow = rules[i].allow;
        const char *deny = rules[i].deny;
        guard_init(&guard);
        snprintf(claim, sizeof claim, "allow %s, deny %s: %s %s", allow ? allow : "none",
                 deny ? deny : "none", rules[i].is_admitted ? "admits" : "refuses",
                 rules[i].address);
        bool is_set = (!allow || guard_add(&guard, true, allow, NULL) == STATUS_OK) &&
                      (!deny || guard_add(&guard, false, deny, NULL) == STATUS_OK);
        CHECK(claim, is_set && admits(&guard, rules[i].address) == rules[i].is_admitted);
        guard_fini(&guard);
    }
}

static const char *const no_networks[] = {
    "",
    "/",
    "/8",
    "example.org",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "10.0.0.0/08",
    "10.0.0.0/8 ",
    " 10.0.0.0/8",
    "10.0.0.0/8/8",
    "10.0.0.0/8x",
    "10.0.0/8",
    "10/8",
    "010.0.0.0/8",
    "0x0a.0.0.0/8",
    "10.0.0.1/8",
    "256.0.0.0/8",
    "fd00::/129",
    "fd00::1/8",
    "fd00:::/8",
    "[fd00::]/8",
    "fe80::1%lo",
    "10.0.0.0/4294967304",
    "10.0.0.0/255.0.0.0",
};

static void check_no_networks(void) {
    struct guard guard;
    char claim[160];
    guard_init(&guard);
    for (size_t i = 0; i < sizeof no_networks / sizeof *no_networks; i++) {
        struct fault fault = {.text = ""};
        snprintf(claim, sizeof claim, "shows that \"%s\" is no network", no_networks[i]);
        int status = guard_add(&guard, true, no_networks[i], &fault);
        CHECK(claim, status == STATUS_INVALID && strstr(fault.text, no_networks[i]));
    }
    CHECK("keeps nothing of what it refused", guard.n_networks == 0);
    guard_fini(&guard);
}

int main(void) {
    check_defaults();
    check_families();
    check_rules();
    check_no_networks();
    return check_report();
}
