// SPDX-License-Identifier: MIT
//
// Which URLs lie below another, and how a host is named.

#include "http_url.h"

#include "check.h"

#include <stdlib.h>

static const struct {
    const char *url;
    const char *other;
    bool is_below;
} pairs[] = {
    {"http://a.example/v1", "http://a.example/v1", true},
    {"http://a.example/v1/chat", "http://a.example/v1", true},
    {"http://a.example/v1/chat", "http://a.example/v1/", true},
    {"http://A.example:80/v1?q", "http://a.example/v1", true},
    {"http://a.example/x", "http://a.example", true},
    {"http://a.example/web/2id_/http://b.example/?q=1", "http://a.example/web/2id_/", true},
    {"http://a.example/v1/x/../chat", "http://a.example/v1", true},
    {"http://a.example/v1/x..y/...", "http://a.example/v1", true},
    {"http://a.example/v1evil", "http://a.example/v1", false},
    {"http://a.example/V1", "http://a.example/v1", false},
    {"http://a.example/v", "http://a.example/v1", false},
    {"http://a.example/", "http://a.example/v1", false},
    {"https://a.example/v1", "http://a.example/v1", false},
    {"http://a.example:81/v1", "http://a.example/v1", false},
    {"http://b.a.example/v1", "http://a.example/v1", false},
    {"http://a.example.evil/v1", "http://a.example/v1", false},
    {"http://a.example/v1/../admin", "http://a.example/v1", false},
    {"http://a.example/v1/%2e%2e/admin", "http://a.example/v1", false},
    {"http://a.example/v1/.%2E/admin", "http://a.example/v1", false},
    {"http://a.example/v1/..%2fadmin", "http://a.example/v1", false},
    {"http://a.example/v1/x%2F..%2F..%2Fadmin", "http://a.example/v1", false},
    {"http://a.example/v1/..\\admin", "http://a.example/v1", false},
    {"http://a.example/v1/..%5cadmin", "http://a.example/v1", false},
};

static void set(struct http_url *url, const char *text) {
    struct http_fault fault;
    http_url_init(url);
    CHECK(text, http_url_set(url, text, strlen(text), &fault) == STATUS_OK);
}

static void test_below(void) {
    char claim[200];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct http_url url, other;
        set(&url, pairs[i].url);
        set(&other, pairs[i].other);
        snprintf(claim, sizeof claim, "%s %s below %s", pairs[i].url,
                 pairs[i].is_below ? "is" : "is not", pairs[i].other);
        CHECK(claim, http_url_is_below(&url, &other) == pairs[i].is_below);
        http_url_fini(&url);
        http_url_fini(&other);
    }
}

static const struct {
    const char *url;
    const char *host;
} hosts[] = {
    {"http://Example.ORG/x", "example.org:80"},
    {"https://example.org.:444/", "example.org:444"},
    {"https://[2001:DB8::1]/", "[2001:db8::1]:443"},
    {"http://127.1/", "127.0.0.1:80"},
};

static void test_hosts(void) {
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct http_url url;
        set(&url, hosts[i].url);
        char *host = http_url_host(&url);
        CHECK_TEXT(hosts[i].host, host);
        free(host);
        http_url_fini(&url);
    }
}

int main(void) {
    test_below();
    test_hosts();
    return check_report();
}
