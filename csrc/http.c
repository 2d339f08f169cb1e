// SPDX-License-Identifier: MIT
//
// One easy handle on one multi handle: the easy one holds the options, the multi one the
// connections, and only a multi handle can wait for a descriptor of the caller's as well.

#include "http.h"

#include "clock.h"
#include "coding.h"
#include "http_body.h"
#include "http_error.h"
#include "http_fields.h"
#include "http_url.h"

#include <curl/curl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    KEPT_CONNECTIONS = 16,
    POLL_MS = 1000,  // libcurl's own timers shorten it
};

struct http {
    CURL *easy;
    CURLM *multi;
    const struct guard *guard;
    struct http_url *exempt;
    size_t n_exempt;
    locale_t utf8;  // libidn2 reads host names in the thread's locale, and Lua's is mostly "C"
    char detail[CURL_ERROR_SIZE];
};

// One call of http_run, over all its hops.
struct transfer {
    struct http *http;
    const struct http_request *request;
    struct http_answer *answer;
    struct http_fault *fault;
    struct http_url url;
    struct curl_slist *headers;
    int64_t begun_us;
    unsigned n_admitted;  // addresses of this hop that the guard let through
    unsigned n_refused;
    bool is_post;  // of this hop, as is_exempt
    bool is_exempt;
    struct http_body body;  // of this hop
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int no_memory(struct http_fault *out_fault) {
    return http_fault_set(out_fault, HTTP_KIND_MEMORY, NULL, "out of memory");
}

static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address) {
    struct transfer *transfer = data;
    (void)purpose;
    if (!transfer->is_exempt && !guard_admits(transfer->http->guard, &address->addr)) {
        transfer->n_refused++;
        return CURL_SOCKET_BAD;
    }
    transfer->n_admitted++;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int set_options(struct http *http) {
    CURL *easy = http->easy;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        // Without it a cancelled request waits for its name to be resolved.
        {CURLOPT_QUICK_EXIT, 1},
        {CURLOPT_HTTP_CONTENT_DECODING, 0},
    };
    const struct {
        CURLoption option;
        const char *value;
    } texts[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_PROXY, ""},  // set and empty: the environment is not asked
        {CURLOPT_NOPROXY, "*"},
        {CURLOPT_ACCEPT_ENCODING, coding_names},
    };
    int failures = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        failures += curl_easy_setopt(easy, numbers[i].option, numbers[i].value) != CURLE_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        failures += curl_easy_setopt(easy, texts[i].option, texts[i].value) != CURLE_OK;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http->detail);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_body_take);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
    return failures ? STATUS_NO_MEMORY : STATUS_OK;
}

static bool is_readable(int fd) {
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&waited, 1, 0) > 0;
}

static int say_timeout(struct transfer *transfer) {
    return http_fault_set(transfer->fault, HTTP_KIND_TIMEOUT, "[fetch] timeout sets the limit",
                          "timed out after %g s", (double)transfer->request->timeout_ms / 1000);
}

static int64_t left_ms(const struct transfer *transfer) {
    int64_t spent_us = clock_mono_us(NULL) - transfer->begun_us;
    return transfer->request->timeout_ms - spent_us / 1000;
}

// A time-out while the connection was not there yet is told apart: another try may help.
static int say_late(struct transfer *transfer) {
    curl_off_t connected_us = 0;
    curl_easy_getinfo(transfer->http->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    if (connected_us > 0 || left_ms(transfer) <= 0)
        return say_timeout(transfer);
    return http_fault_set(transfer->fault, HTTP_KIND_CONNECT,
                          "[fetch] connect_timeout sets the limit", "could not connect within %g s",
                          (double)transfer->request->connect_timeout_ms / 1000);
}

static int say_why(struct transfer *transfer, CURLcode code) {
    int status = http_body_say(&transfer->body, transfer->fault);
    if (status != STATUS_OK)
        return status;
    if (transfer->n_refused > 0 && transfer->n_admitted == 0)
        return http_fault_set(transfer->fault, HTTP_KIND_GUARD,
                              "only public addresses are fetched; --allow or [fetch] allow "
                              "names networks that are let through",
                              "address not allowed");
    if (code == CURLE_OPERATION_TIMEDOUT)
        return say_late(transfer);
    return http_error(transfer->http->easy, code, transfer->url.host, transfer->http->detail,
                      transfer->fault);
}

static bool append_line(struct transfer *transfer, const char *line) {
    struct curl_slist *grown = curl_slist_append(transfer->headers, line);
    if (grown)
        transfer->headers = grown;
    return grown != NULL;
}

// libcurl reads "Name:" as the wish to leave a header out, and "Name;" as a header without a value.
static bool append_header(struct transfer *transfer, const struct http_header *header) {
    size_t size = header->name_len + header->value_len + sizeof ": ";
    char *line = malloc(size);
    if (!line)
        return false;
    snprintf(line, size, header->value_len ? "%.*s: %.*s" : "%.*s;%.*s", (int)header->name_len,
             header->name, (int)header->value_len, header->value);
    bool is_appended = append_line(transfer, line);
    free(line);
    return is_appended;
}

// libcurl would wait for servers that never heard of Expect, and name the type of a form.
static bool leave_out_defaults(struct transfer *transfer) {
    const struct http_request *request = transfer->request;
    bool has_type = false;
    for (size_t i = 0; i < request->n_headers; i++)
        has_type |= http_header_is(&request->headers[i], "Content-Type");
    return append_line(transfer, "Expect:") && (has_type || append_line(transfer, "Content-Type:"));
}

static int write_headers(struct transfer *transfer) {
    const struct http_request *request = transfer->request;
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    for (size_t i = 0; i < request->n_headers; i++) {
        if (transfer->url.has_left && http_header_is_private(&request->headers[i]))
            continue;
        if (!append_header(transfer, &request->headers[i]))
            return no_memory(transfer->fault);
    }
    if (transfer->is_post && !leave_out_defaults(transfer))
        return no_memory(transfer->fault);
    return STATUS_OK;
}

static void set_method(const struct transfer *transfer) {
    CURL *easy = transfer->http->easy;
    if (!transfer->is_post) {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->request->body_len);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->request->body);
}

static void prepare(struct transfer *transfer, int64_t timeout_ms) {
    const struct http_request *request = transfer->request;
    CURL *easy = transfer->http->easy;
    long total = timeout_ms < LONG_MAX ? (long)timeout_ms : LONG_MAX;
    transfer->n_admitted = 0;
    transfer->n_refused = 0;
    transfer->body = (struct http_body){
        .easy = easy, .bytes = &transfer->answer->body, .max_len = request->max_body};
    transfer->answer->body.len = 0;
    set_method(transfer);
    // An exempt connection must not serve a later request that is not exempt: that one would find
    // it open, and the guard would not be asked.
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, (long)transfer->is_exempt);
    transfer->http->detail[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_CURLU, transfer->url.parts);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, request->user_agent);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, total);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer->body);
}

// Moves bytes until the transfer has ended. Returns 0 with libcurl's verdict, or STATUS_CLOSED.
static int drive(struct transfer *transfer, CURLcode *out_code) {
    CURLM *multi = transfer->http->multi;
    struct curl_waitfd cancel = {.fd = transfer->request->cancel_fd, .events = CURL_WAIT_POLLIN};
    for (;;) {
        int n_running = 0;
        int n_messages;
        if (is_readable(cancel.fd))
            return http_fault_set(transfer->fault, HTTP_KIND_CANCELLED, NULL, "cancelled");
        if (curl_multi_perform(multi, &n_running) != CURLM_OK)
            return no_memory(transfer->fault);
        CURLMsg *message = curl_multi_info_read(multi, &n_messages);
        if (message) {
            *out_code = message->data.result;
            return STATUS_OK;
        }
        cancel.revents = 0;
        curl_multi_poll(multi, &cancel, cancel.fd >= 0 ? 1 : 0, POLL_MS, NULL);
    }
}

static int run_once(struct transfer *transfer) {
    struct http *http = transfer->http;
    int64_t timeout_ms = left_ms(transfer);
    int status = write_headers(transfer);
    if (status != STATUS_OK)
        return status;
    if (timeout_ms <= 0)
        return say_timeout(transfer);
    prepare(transfer, timeout_ms);
    if (curl_multi_add_handle(http->multi, http->easy) != CURLM_OK)
        return no_memory(transfer->fault);
    CURLcode code = CURLE_OK;
    status = drive(transfer, &code);
    curl_multi_remove_handle(http->multi, http->easy);
    if (status == STATUS_OK)
        status = code == CURLE_OK ? http_body_end(&transfer->body, transfer->fault)
                                  : say_why(transfer, code);
    http_body_fini(&transfer->body);
    return status;
}

static int follow(struct transfer *transfer) {
    const char *location = NULL;
    unsigned n_left = transfer->request->max_redirects;
    int status = run_once(transfer);
    while (status == STATUS_OK && (location = http_fields_redirect(transfer->http->easy))) {
        if (n_left-- == 0)
            return http_fault_set(transfer->fault, HTTP_KIND_REDIRECTS,
                                  "[fetch] max_redirects sets the limit", "too many redirects (%u)",
                                  transfer->request->max_redirects);
        transfer->is_post = transfer->is_post && http_fields_keeps_method(transfer->http->easy);
        transfer->is_exempt = false;
        status = http_url_set(&transfer->url, location, strlen(location), transfer->fault);
        if (status == STATUS_OK)
            status = run_once(transfer);
    }
    return status;
}

static int fill_answer(struct transfer *transfer) {
    CURL *easy = transfer->http->easy;
    struct http_answer *answer = transfer->answer;
    const char *content_type = NULL;
    curl_off_t bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &content_type);
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    answer->bytes = bytes;
    answer->retry_after_s = http_fields_retry_after(easy);
    answer->seconds = (double)(clock_mono_us(NULL) - transfer->begun_us) / 1e6;
    answer->url = http_url_text(&transfer->url);
    answer->content_type = content_type ? strdup(content_type) : NULL;
    if (!answer->url || (content_type && !answer->content_type))
        return no_memory(transfer->fault);
    return STATUS_OK;
}

static int check_headers(const struct http_request *request, struct http_fault *out_fault) {
    int status = STATUS_OK;
    for (size_t i = 0; i < request->n_headers && status == STATUS_OK; i++)
        status = http_header_check(&request->headers[i], out_fault);
    return status;
}

static void forget(struct transfer *transfer) {
    CURL *easy = transfer->http->easy;
    curl_easy_setopt(easy, CURLOPT_CURLU, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_slist_free_all(transfer->headers);
    http_url_fini(&transfer->url);
}

int http_open(const struct guard *guard, struct http **out_http) {
    pthread_once(&once, init_curl);
    *out_http = NULL;
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return STATUS_NO_MEMORY;
    http->guard = guard;
    http->easy = curl_easy_init();
    http->multi = curl_multi_init();
    http->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    if (!http->easy || !http->multi || set_options(http) != STATUS_OK) {
        http_close(http);
        return STATUS_NO_MEMORY;
    }
    *out_http = http;
    return STATUS_OK;
}

int http_exempt(struct http *http, const char *url, size_t len, struct http_fault *out_fault) {
    struct http_url *grown = realloc(http->exempt, (http->n_exempt + 1) * sizeof *grown);
    if (!grown)
        return no_memory(out_fault);
    http->exempt = grown;
    http_url_init(&grown[http->n_exempt]);
    int status = http_url_set(&grown[http->n_exempt], url, len, out_fault);
    if (status == STATUS_OK)
        http->n_exempt++;
    else
        http_url_fini(&grown[http->n_exempt]);
    return status;
}

void http_close(struct http *http) {
    if (!http)
        return;
    for (size_t i = 0; i < http->n_exempt; i++)
        http_url_fini(&http->exempt[i]);
    free(http->exempt);
    curl_easy_cleanup(http->easy);
    curl_multi_cleanup(http->multi);
    if (http->utf8)
        freelocale(http->utf8);
    free(http);
}

static bool is_exempt(const struct transfer *transfer) {
    const struct http *http = transfer->http;
    for (size_t i = 0; transfer->request->is_exempt && i < http->n_exempt; i++)
        if (http_url_is_below(&transfer->url, &http->exempt[i]))
            return true;
    return false;
}

int http_run(struct http *http, const struct http_request *request, struct http_answer *out_answer,
             struct http_fault *out_fault) {
    struct transfer transfer = {.http = http,
                                .request = request,
                                .answer = out_answer,
                                .fault = out_fault,
                                .is_post = request->is_post,
                                .begun_us = clock_mono_us(NULL)};
    memset(out_answer, 0, sizeof *out_answer);
    memset(out_fault, 0, sizeof *out_fault);
    // Without that locale a name outside ASCII cannot be resolved; the others can.
    locale_t before = http->utf8 ? uselocale(http->utf8) : (locale_t)0;
    http_url_init(&transfer.url);
    int status = check_headers(request, out_fault);
    if (status == STATUS_OK)
        status = http_url_set(&transfer.url, request->url, request->url_len, out_fault);
    transfer.is_exempt = status == STATUS_OK && is_exempt(&transfer);
    if (status == STATUS_OK)
        status = follow(&transfer);
    if (status == STATUS_OK)
        status = fill_answer(&transfer);
    if (before)
        uselocale(before);
    forget(&transfer);
    if (status != STATUS_OK)
        http_answer_fini(out_answer);
    return status;
}

void http_answer_fini(struct http_answer *answer) {
    buffer_fini(&answer->body);
    curl_free(answer->url);
    free(answer->content_type);
    memset(answer, 0, sizeof *answer);
}
