// SPDX-License-Identifier: MIT
//
// What is cut out of a page before it is parsed changes nothing that a reader would see: the parser
// makes the same of the page and of its lighter copy, but for the insides of scripts and styles.

#include "buffer.h"
#include "host/fuzz.h"
#include "html_source.h"

#include <gumbo.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_GAPS = 500,  // from about as many on, attributes may go
    MAX_DEPTH = 3000,
};

static bool has_attributes;  // whether they are compared

static void add_text(struct buffer *out, char mark, const char *text) {
    buffer_add_byte(out, mark);
    buffer_add(out, text, strlen(text) + 1);
}

static void add_node(struct buffer *out, const GumboNode *node, int depth);

static void add_children(struct buffer *out, const GumboVector *children, int depth) {
    for (unsigned i = 0; i < children->length && depth < MAX_DEPTH; i++)
        add_node(out, children->data[i], depth);
    buffer_add_byte(out, '/');
}

static bool is_cut(const GumboElement *element) {
    return element->tag == GUMBO_TAG_SCRIPT || element->tag == GUMBO_TAG_STYLE;
}

static void add_element(struct buffer *out, const GumboElement *element, int depth) {
    char tag[16];
    tag[0] = (char)element->tag;
    tag[1] = '\0';
    add_text(out, '<', element->tag == GUMBO_TAG_UNKNOWN ? "?" : tag);
    for (unsigned i = 0; has_attributes && i < element->attributes.length; i++) {
        const GumboAttribute *attribute = element->attributes.data[i];
        add_text(out, '@', attribute->name);
        add_text(out, '=', attribute->value);
    }
    if (!is_cut(element))
        add_children(out, &element->children, depth + 1);
}

static void add_node(struct buffer *out, const GumboNode *node, int depth) {
    if (node->type == GUMBO_NODE_DOCUMENT)
        add_children(out, &node->v.document.children, depth + 1);
    else if (node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE)
        add_element(out, &node->v.element, depth);
    else
        add_text(out, '"', node->v.text.text);
}

static void read_page(const char *text, size_t len, struct buffer *out) {
    GumboOutput *output = gumbo_parse_with_options(&kGumboDefaultOptions, text, len);
    buffer_init(out);
    add_node(out, output->document, 0);
    gumbo_destroy_output(&kGumboDefaultOptions, output);
}

// There a style is no style, and what stands in it a text, which no reader will miss.
static bool has_select(const char *bytes, size_t len) {
    static const char word[] = "<select";
    for (size_t i = 0; i + sizeof word - 1 <= len; i++)
        if (strncasecmp(bytes + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}

void fuzz_one(const char *bytes, size_t len) {
    struct buffer seen, seen_light;
    char *copy;
    size_t light_len;
    FUZZ_CHECK("a page can be lightened",
               html_source_lighten(bytes, len, &copy, &light_len) == STATUS_OK);
    if (!copy)
        return;
    if (has_select(bytes, len)) {
        free(copy);
        return;
    }
    size_t n_gaps = 0;
    for (size_t i = 0; i < len; i++)
        n_gaps += memchr(" \t\n\f\r/", bytes[i], 6) != NULL;
    has_attributes = n_gaps < MAX_GAPS;
    FUZZ_CHECK("a lighter copy is no longer", light_len <= len);
    read_page(bytes, len, &seen);
    read_page(copy, light_len, &seen_light);
    FUZZ_CHECK("a lighter copy says the same",
               seen.len == seen_light.len && memcmp(seen.bytes, seen_light.bytes, seen.len) == 0);
    buffer_fini(&seen);
    buffer_fini(&seen_light);
    free(copy);
}
