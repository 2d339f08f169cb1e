// SPDX-License-Identifier: MIT
//
// Tables from libcurl's, OpenSSL's and the system's numbers to sentences.

#include "http_error.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
    TOO_LARGE = 100,          // CURLE_TOO_LARGE of later releases
    MAX_HEADER = 300 * 1024,  // libcurl's own limit
};

struct sentence {
    long number;
    enum http_kind kind;
    const char *text;
    const char *hint;
};

static const struct sentence curl_sentences[] = {
    {CURLE_GOT_NOTHING, HTTP_KIND_CONNECT, "the server closed the connection without an answer",
     NULL},
    {CURLE_RECV_ERROR, HTTP_KIND_CONNECT, "the connection broke while receiving", NULL},
    {CURLE_SEND_ERROR, HTTP_KIND_CONNECT, "the connection broke while sending", NULL},
    {CURLE_PARTIAL_FILE, HTTP_KIND_CONNECT, "the connection ended before the body was complete",
     NULL},
    {CURLE_HTTP2, HTTP_KIND_CONNECT, "the HTTP/2 connection failed", NULL},
    {CURLE_HTTP2_STREAM, HTTP_KIND_CONNECT, "the HTTP/2 stream was reset", NULL},
    {CURLE_UNSUPPORTED_PROTOCOL, HTTP_KIND_PROTOCOL, "the answer is not HTTP", NULL},
    {CURLE_WEIRD_SERVER_REPLY, HTTP_KIND_PROTOCOL, "the answer is not valid HTTP", NULL},
    {CURLE_BAD_CONTENT_ENCODING, HTTP_KIND_PROTOCOL, "the body cannot be decompressed", NULL},
    {TOO_LARGE, HTTP_KIND_PROTOCOL, "the headers of the answer are too large", NULL},
    {CURLE_URL_MALFORMAT, HTTP_KIND_URL, "the URL has no usable host", NULL},
    {CURLE_OUT_OF_MEMORY, HTTP_KIND_MEMORY, "out of memory", NULL},
};

static const struct sentence connect_sentences[] = {
    {ECONNREFUSED, HTTP_KIND_CONNECT, "connection refused", "nothing listens on that port"},
    {ENETUNREACH, HTTP_KIND_CONNECT, "network unreachable", NULL},
    {EHOSTUNREACH, HTTP_KIND_CONNECT, "host unreachable", NULL},
    {ECONNRESET, HTTP_KIND_CONNECT, "connection reset", NULL},
    {ETIMEDOUT, HTTP_KIND_CONNECT, "the host does not answer", NULL},
    {EMFILE, HTTP_KIND_CONNECT, "too many open files", "raise the limit: ulimit -n"},
    {0, HTTP_KIND_CONNECT, "could not connect", NULL},
};

// By the verification results of OpenSSL, X509_V_ERR_….
static const struct sentence certificate_sentences[] = {
    {0, HTTP_KIND_TLS, "the certificate is for another host", NULL},
    {9, HTTP_KIND_TLS, "the certificate is not yet valid", "is this machine's clock right?"},
    {10, HTTP_KIND_TLS, "the certificate has expired", NULL},
    {18, HTTP_KIND_TLS, "the certificate is self-signed",
     "add its issuer to the system's certificates"},
    {19, HTTP_KIND_TLS, "the certificate is signed by an unknown authority",
     "add the authority to the system's certificates"},
    {20, HTTP_KIND_TLS, "the certificate is signed by an unknown authority",
     "add the authority to the system's certificates"},
    {62, HTTP_KIND_TLS, "the certificate is for another host", NULL},
};

static const struct sentence *find(const struct sentence *sentences, size_t count, long number) {
    for (size_t i = 0; i < count; i++)
        if (sentences[i].number == number)
            return &sentences[i];
    return NULL;
}

#define FIND(sentences, number) find(sentences, sizeof(sentences) / sizeof *(sentences), number)

static int say(const struct sentence *sentence, struct http_fault *out_fault) {
    return http_fault_set(out_fault, sentence->kind, sentence->hint, "%s", sentence->text);
}

static int say_connect(CURL *easy, struct http_fault *out_fault) {
    long number = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    const struct sentence *sentence = FIND(connect_sentences, number);
    return say(sentence ? sentence : FIND(connect_sentences, 0), out_fault);
}

static int say_certificate(CURL *easy, const char *detail, struct http_fault *out_fault) {
    long number = 0;
    curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &number);
    const struct sentence *sentence = FIND(certificate_sentences, number);
    if (sentence)
        return say(sentence, out_fault);
    return http_fault_set(out_fault, HTTP_KIND_TLS, NULL, "the certificate is not valid: %s",
                          detail);
}

// libcurl takes a line of a header that is longer than its buffer for a shortage of memory, and a
// header that is longer than it may be for a broken connection.
static bool is_header_too_large(CURL *easy, CURLcode code) {
    long header_len = 0;
    curl_off_t body_len = 0;
    curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &header_len);
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &body_len);
    return body_len == 0 && ((code == CURLE_OUT_OF_MEMORY && header_len > 0) ||
                             (code == CURLE_RECV_ERROR && header_len > MAX_HEADER));
}

int http_error(CURL *easy, CURLcode code, const char *host, const char *detail,
               struct http_fault *out_fault) {
    long number = is_header_too_large(easy, code) ? TOO_LARGE : (long)code;
    const struct sentence *sentence = FIND(curl_sentences, number);
    if (sentence)
        return say(sentence, out_fault);
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return http_fault_set(out_fault, HTTP_KIND_RESOLVE, NULL, "could not resolve host %.253s",
                              host);
    if (code == CURLE_COULDNT_CONNECT)
        return say_connect(easy, out_fault);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return say_certificate(easy, detail, out_fault);
    if (code == CURLE_SSL_CONNECT_ERROR)
        return http_fault_set(out_fault, HTTP_KIND_TLS, "does the server speak TLS on this port?",
                              "the TLS handshake failed");
    return http_fault_set(out_fault, HTTP_KIND_PROTOCOL, NULL, "the request failed: %s",
                          *detail ? detail : curl_easy_strerror(code));
}
