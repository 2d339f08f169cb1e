// SPDX-License-Identifier: MIT
//
// Each rule is one function; http_url_set asks them in the order in which a user would want to
// know.

#include "http_url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Ports where a request could pass for a command of another protocol: the "bad ports" of the fetch
// standard, in rising order.
static const unsigned short bad_ports[] = {
    0,    1,    7,    9,    11,   13,   15,   17,   19,   20,   21,   22,   23,    25,
    37,   42,   43,   53,   69,   77,   79,   87,   95,   101,  102,  103,  104,   109,
    110,  111,  113,  115,  117,  119,  123,  135,  137,  139,  143,  161,  179,   389,
    427,  465,  512,  513,  514,  515,  526,  530,  531,  532,  540,  548,  554,   556,
    563,  587,  601,  636,  989,  990,  993,  995,  1719, 1720, 1723, 2049, 3659,  4045,
    4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
};

static int no_memory(struct http_fault *out_fault) {
    return http_fault_set(out_fault, HTTP_KIND_MEMORY, NULL, "out of memory");
}

static int check_text(const char *text, size_t len, struct http_fault *out_fault) {
    if (len > HTTP_MAX_URL)
        return http_fault_set(out_fault, HTTP_KIND_URL, NULL, "the URL is longer than %d KiB",
                              HTTP_MAX_URL / 1024);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return http_fault_set(out_fault, HTTP_KIND_URL, NULL,
                                  "control characters in URLs are not allowed");
    return STATUS_OK;
}

// Without the spaces around it, which are a slip of the pen in a list of URLs.
static char *trimmed(const char *text, size_t len) {
    for (; len > 0 && text[len - 1] == ' '; len--)
        ;
    for (; len > 0 && *text == ' '; len--)
        text++;
    return strndup(text, len);
}

// The length of a scheme such as "data" before a colon; 0 where there is none. A host with a port
// looks much the same.
static int scheme_len(const char *text) {
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-");
    bool is_scheme = len > 0 && len <= 40 && text[len] == ':' && isalpha((unsigned char)*text) &&
                     text[len + 1] && !isdigit((unsigned char)text[len + 1]);
    return is_scheme ? (int)len : 0;
}

static int say_scheme(const char *scheme, int len, struct http_fault *out_fault) {
    return http_fault_set(out_fault, HTTP_KIND_URL, "only http and https are fetched",
                          "scheme '%.*s' is not allowed", len, scheme);
}

static bool is_http(const char *scheme, int len) {
    return (len == 4 || len == 5) && strncasecmp(scheme, "https", (size_t)len) == 0;
}

static int say_no_url(const char *text, struct http_fault *out_fault) {
    int len = scheme_len(text);
    if (len > 0 && !is_http(text, len))
        return say_scheme(text, len, out_fault);
    return http_fault_set(out_fault, HTTP_KIND_URL,
                          "only http and https URLs are fetched, such as https://example.org/page",
                          "'%.200s' is no URL", text);
}

static int parse(struct http_url *url, const char *text, size_t len, struct http_fault *out_fault) {
    // Spaces and other bytes that a URL cannot hold are escaped, as browsers do. Other schemes pass
    // here, to be refused by name.
    const unsigned flags = CURLU_URLENCODE | CURLU_ALLOW_SPACE | CURLU_NON_SUPPORT_SCHEME;
    char *copy = trimmed(text, len);
    if (!copy)
        return no_memory(out_fault);
    int status = STATUS_OK;
    CURLUcode code = curl_url_set(url->parts, CURLUPART_URL, copy, flags);
    if (code == CURLUE_OUT_OF_MEMORY)
        status = no_memory(out_fault);
    else if (code != CURLUE_OK)
        status = say_no_url(copy, out_fault);
    free(copy);
    return status;
}

static int check_scheme(const struct http_url *url, struct http_fault *out_fault) {
    char *scheme = NULL;
    if (curl_url_get(url->parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
        return no_memory(out_fault);
    int len = (int)strnlen(scheme, 40);
    int status = is_http(scheme, len) ? STATUS_OK : say_scheme(scheme, len, out_fault);
    curl_free(scheme);
    return status;
}

static bool has_part(const struct http_url *url, CURLUPart part) {
    char *text = NULL;
    CURLUcode code = curl_url_get(url->parts, part, &text, 0);
    curl_free(text);
    return code == CURLUE_OK;
}

static int check_user(const struct http_url *url, struct http_fault *out_fault) {
    if (!has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD))
        return STATUS_OK;
    return http_fault_set(out_fault, HTTP_KIND_URL, "send them as a header, Authorization",
                          "user names in URLs are not allowed");
}

static int check_port(const char *port, struct http_fault *out_fault) {
    long number = strtol(port, NULL, 10);
    for (size_t i = 0; i < sizeof bad_ports / sizeof *bad_ports; i++)
        if (bad_ports[i] == number)
            return http_fault_set(out_fault, HTTP_KIND_URL, "it belongs to another protocol",
                                  "port %ld is not allowed", number);
    return STATUS_OK;
}

static char *join_origin(const char *scheme, const char *host, const char *port) {
    size_t size = strlen(scheme) + strlen(host) + strlen(port) + sizeof "://:";
    char *origin = malloc(size);
    if (origin)
        snprintf(origin, size, "%s://%s:%s", scheme, host, port);
    return origin;
}

static int read_origin(struct http_url *url, struct http_fault *out_fault) {
    char *scheme = NULL;
    char *port = NULL;
    int status;
    if (curl_url_get(url->parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url->parts, CURLUPART_HOST, &url->host, 0) != CURLUE_OK ||
        curl_url_get(url->parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        !(url->origin = join_origin(scheme, url->host, port)))
        status = no_memory(out_fault);
    else
        status = check_port(port, out_fault);
    curl_free(scheme);
    curl_free(port);
    return status;
}

static int check(struct http_url *url, const char *text, size_t len, struct http_fault *out_fault) {
    if (!url->parts && !(url->parts = curl_url()))
        return no_memory(out_fault);
    int status = check_text(text, len, out_fault);
    if (status == STATUS_OK)
        status = parse(url, text, len, out_fault);
    if (status == STATUS_OK)
        status = check_scheme(url, out_fault);
    if (status == STATUS_OK)
        status = check_user(url, out_fault);
    if (status == STATUS_OK)
        status = read_origin(url, out_fault);
    return status;
}

void http_url_init(struct http_url *url) {
    memset(url, 0, sizeof *url);
}

void http_url_fini(struct http_url *url) {
    curl_free(url->host);
    free(url->origin);
    curl_url_cleanup(url->parts);
    http_url_init(url);
}

int http_url_set(struct http_url *url, const char *text, size_t len, struct http_fault *out_fault) {
    char *before = url->origin;
    curl_free(url->host);
    url->host = NULL;
    url->origin = NULL;
    int status = check(url, text, len, out_fault);
    if (status == STATUS_OK && before && strcasecmp(before, url->origin) != 0)
        url->has_left = true;
    free(before);
    return status;
}

// Whether the segment means "one up" to a server that decodes it.
static bool is_dots(const char *segment, size_t len) {
    size_t n_dots = 0;
    while (len > 0) {
        size_t step = *segment == '.' ? 1 : len >= 3 && strncasecmp(segment, "%2e", 3) == 0 ? 3 : 0;
        if (step == 0)
            return false;
        segment += step;
        len -= step;
        n_dots++;
    }
    return n_dots == 1 || n_dots == 2;
}

// Some servers take the backslash, or an escaped slash, for a slash.
static size_t segment_len(const char *path) {
    size_t len = 0;
    while (path[len] && !strchr("/\\", path[len]) && strncasecmp(path + len, "%2f", 3) != 0 &&
           strncasecmp(path + len, "%5c", 3) != 0)
        len++;
    return len;
}

static bool has_dots(const char *path) {
    while (*path) {
        size_t len = segment_len(path);
        if (is_dots(path, len))
            return true;
        path += len;
        path += *path == '%' ? 3 : *path != '\0';
    }
    return false;
}

static bool is_path_below(const char *path, const char *other) {
    size_t len = strlen(other);
    if (strncmp(path, other, len) != 0 || has_dots(path))
        return false;
    return other[len - 1] == '/' || path[len] == '/' || path[len] == '\0';
}

bool http_url_is_below(const struct http_url *url, const struct http_url *other) {
    char *path = NULL;
    char *other_path = NULL;
    curl_url_get(url->parts, CURLUPART_PATH, &path, 0);
    curl_url_get(other->parts, CURLUPART_PATH, &other_path, 0);
    bool is_below = path && other_path && *other_path &&
                    strcasecmp(url->origin, other->origin) == 0 && is_path_below(path, other_path);
    curl_free(path);
    curl_free(other_path);
    return is_below;
}

char *http_url_text(const struct http_url *url) {
    char *text = NULL;
    curl_url_get(url->parts, CURLUPART_URL, &text, 0);
    return text;
}

char *http_url_host(const struct http_url *url) {
    char *host = strdup(strstr(url->origin, "://") + 3);
    char *port = host ? strrchr(host, ':') : NULL;
    if (port && port > host && port[-1] == '.')
        memmove(port - 1, port, strlen(port) + 1);
    for (char *place = host; place && *place; place++)
        *place = (char)tolower((unsigned char)*place);
    return host;
}
