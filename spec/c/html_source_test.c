// SPDX-License-Identifier: MIT
//
// What the parser need not see is left out, and nothing that a reader would see.

#include "html_source.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

// What the parser would see.
static const char *light(const char *text) {
    static char seen[8192];
    char *copy;
    size_t len;
    if (html_source_lighten(text, strlen(text), &copy, &len) != STATUS_OK)
        return NULL;
    snprintf(seen, sizeof seen, "%.*s", copy ? (int)len : (int)sizeof seen - 1, copy ? copy : text);
    free(copy);
    return seen;
}

static void check_light(const char *expected, const char *text) {
    CHECK_TEXT(expected, light(text));
}

static void check_as_it_is(const char *text) {
    CHECK_TEXT(text, light(text));
}

static void check_insides(void) {
    check_light("a<script></script>b", "a<script>if (1 < 2) f('</p>')</script>b");
    check_light("<SCRIPT src='x>y'></Script >b", "<SCRIPT src='x>y'>f()</Script >b");
    check_light("<style></style>x<script></script>", "<style>p{}</style>x<script>1</script>");
    check_light("<b a = '><title>'><style></style>", "<b a = '><title>'><style>p{}</style>");
    check_light("<!doctype html><style></style>", "<!doctype html><style>p{}</style>");
    check_light("<svg a='/'><g><!-- < --><title>x</title><path d=1 /></g></svg><script></script>",
                "<svg a='/'><g><!-- < --><title>x</title><path d=1 /></g></svg><script>1</script>");
}

static void check_doubts(void) {
    check_as_it_is("");
    check_as_it_is("a < b <");
    check_as_it_is("<script></script>");
    check_as_it_is("<script>no end");
    check_as_it_is("<script>no end either</scripted>");
    check_as_it_is("<scripted>text</scripted>");
    check_as_it_is("<script><!-- f('<script>x</script>') --></script>");
    check_as_it_is("<!-- > <script> --> text </script>");
    check_as_it_is("<!-- > <script> --!> text </script>");
    check_as_it_is("<title>About <script></title> text <script src=x></script>");
    check_as_it_is("<title>About <style></title> text");
    check_as_it_is("<p title=\"<script>\">text</p></script>");
    check_as_it_is("<xmp><script>f()</script></xmp>");
    check_as_it_is("<plaintext><style>p{}</style>");
    check_as_it_is("<b=\"><title>\"><script>text</script>");
    check_as_it_is("<b =\"><title>\"><script>text</script>");
    check_as_it_is("<b a=b=\"><title>\"><script>text</script>");
    check_as_it_is("</<style>text</style>");
    check_as_it_is("<!<style>text</style>");
    check_as_it_is("<?<script>text</script>");
    check_as_it_is("<svg><![CDATA[ > <style> ]]> text </style>");
    check_as_it_is("<svg><script/>text</svg><script></script>");
    check_as_it_is("<svg><title><!-- </title><style> -->text</style>");
    check_as_it_is("<math><mi><p>text</math><script/>text</script>");
}

static void check_excess_attributes(void) {
    char text[4096] = "<p";
    for (int i = 0; i < 1000; i++)
        strcat(text, " a");
    strcat(text, ">x y");
    const char *seen = light(text);
    CHECK("a tag keeps no more attributes than 511", seen && strlen(seen) == 2 + 2 * 511 + 4);
    CHECK_TEXT(" a a>x y", seen + strlen(seen) - 8);
}

int main(void) {
    check_insides();
    check_doubts();
    check_excess_attributes();
    return check_report();
}
