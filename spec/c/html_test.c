// SPDX-License-Identifier: MIT
//
// The flat list of a document, and what a document cannot do to the parser.

#include "html.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

static const struct html_limits usual = {
    .max_bytes = 64 << 20,
    .max_nodes = 100000,
    .max_cpu_us = 5000000,
    .cancel_fd = -1,
};

static struct html *parsed(const char *text) {
    struct html *html;
    return html_parse(text, strlen(text), &usual, &html, NULL) == STATUS_OK ? html : NULL;
}

// The names and texts in order, with the index of the node behind each element.
static const char *shape(const struct html *html) {
    static char line[512];
    size_t len = 0;
    for (size_t i = 0; i < html->n_nodes; i++) {
        const struct html_node *node = &html->nodes[i];
        if (node->name)
            len += (size_t)snprintf(line + len, sizeof line - len, "%s:%u ", node->name, node->end);
        else
            len += (size_t)snprintf(line + len, sizeof line - len, "'%.*s' ", (int)node->len,
                                    node->text);
    }
    return line;
}

static void check_shape(const char *expected, const char *text) {
    struct html *html = parsed(text);
    CHECK_TEXT(expected, html ? shape(html) : "refused");
    html_free(html);
}

static void test_list(void) {
    check_shape("body:1 ", "");
    check_shape("body:5 p:3 'a' p:5 'b' ", "<p>a<p>b");
    check_shape("body:3 p:3 'a b c' ", "<p> a\n<span>b</span> <font>c</font>");
    check_shape("body:6 p:6 'a ' strong:5 'b ' 'c' ", "<p>a <b> b </b> c");
    check_shape("body:3 pre:3 'a\n b\nc' ", "<pre>\na\n&nbsp;b<br>c</pre>");
    check_shape("body:3 p:3 'ab' ", "<p>a<script>s</script><i hidden>h</i>b");
}

static void test_lengths(void) {
    struct html *html = parsed("<p>abc<a href=x>de</a>");
    CHECK("counts the text", html && html->nodes[0].len == 5);
    CHECK("counts the text in links", html && html->nodes[0].link_len == 2);
    html_free(html);
}

static void test_head(void) {
    struct html *html = parsed("<title>T &amp; t</title><base href=/b><meta property=og:title "
                               "content=O>");
    CHECK_TEXT("T & t", html->title);
    CHECK_TEXT("/b", html->base);
    CHECK_TEXT("O", html->og_title);
    html_free(html);
}

static void test_limits(void) {
    enum { N = 50000 };
    char *text = malloc(N * 5);
    struct html_limits limits = usual;
    struct html *html;
    struct fault fault;
    for (size_t i = 0; i < N; i++)
        memcpy(text + i * 5, "<div>", 5);
    limits.max_cpu_us = 20000;
    CHECK("refuses what takes too long",
          html_parse(text, N * 5, &limits, &html, &fault) == STATUS_INVALID && !html);
    limits = usual;
    limits.max_bytes = 1 << 20;
    CHECK("refuses what takes too much memory",
          html_parse(text, N * 5, &limits, &html, &fault) == STATUS_INVALID && !html);
    limits = usual;
    limits.max_nodes = 10;
    CHECK("refuses too many elements",
          html_parse(text, 500, &limits, &html, &fault) == STATUS_INVALID && !html);
    CHECK_TEXT("the document has too many elements", fault.text);
    free(text);
}

int main(void) {
    test_list();
    test_lengths();
    test_head();
    test_limits();
    return check_report();
}
