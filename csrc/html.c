// SPDX-License-Identifier: MIT
//
// Gumbo takes its memory here, from chunks that are released all at once: its own release would
// recurse as deep as the document. When a limit is reached the allocator jumps out of the parser,
// which holds nothing but that memory.

#include "html.h"

#include "html_flatten.h"
#include "html_source.h"

#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    FIRST_CHUNK = 64 * 1024,
    LAST_CHUNK = 1024 * 1024,
    LOOK_EVERY = 256,  // allocations between two looks at the clock
};

struct chunk {
    struct chunk *next;
    size_t size;
};

struct html_tree {
    struct chunk *chunks;
    char *free;  // in the newest chunk
    size_t n_free;
    size_t next_size;
    size_t n_taken;  // bytes, of all chunks
    unsigned n_allocations;
    int64_t due_at_us;  // by this thread's processor clock
    const struct html_limits *limits;
    jmp_buf give_up;
    struct buffer text;
    char *light;  // the source without what need not be seen, or NULL
};

static int64_t cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_cancelled(int fd) {
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&look, 1, 0) > 0;
}

static void look_around(struct html_tree *tree) {
    if (cpu_us() > tree->due_at_us)
        longjmp(tree->give_up, STATUS_TIMEOUT);
    if (is_cancelled(tree->limits->cancel_fd))
        longjmp(tree->give_up, STATUS_CLOSED);
}

static void add_chunk(struct html_tree *tree, size_t least) {
    size_t size = tree->next_size > least ? tree->next_size : least;
    if (size > tree->limits->max_bytes - tree->n_taken)
        longjmp(tree->give_up, STATUS_INVALID);
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        longjmp(tree->give_up, STATUS_NO_MEMORY);
    chunk->next = tree->chunks;
    chunk->size = size;
    tree->chunks = chunk;
    tree->n_taken += size;
    tree->free = (char *)(chunk + 1);
    tree->n_free = size;
    if (tree->next_size < LAST_CHUNK)
        tree->next_size *= 2;
}

static void *take(void *userdata, size_t size) {
    struct html_tree *tree = userdata;
    if (++tree->n_allocations % LOOK_EVERY == 0)
        look_around(tree);
    size = (size + 15) & ~(size_t)15;
    if (size > tree->n_free)
        add_chunk(tree, size);
    void *place = tree->free;
    tree->free += size;
    tree->n_free -= size;
    return place;
}

static void give_back(void *userdata, void *place) {
    (void)userdata;
    (void)place;
}

static const char *meta_content(const GumboNode *meta, const char *property) {
    const char *found = html_attribute_value(meta, "property");
    return found && strcasecmp(found, property) == 0 ? html_attribute_value(meta, "content") : NULL;
}

static const char *first_text(const GumboNode *element) {
    const GumboVector *children = &element->v.element.children;
    const GumboNode *child = children->length > 0 ? children->data[0] : NULL;
    return child && child->type == GUMBO_NODE_TEXT ? child->v.text.text : NULL;
}

static void read_head(struct html *html, const GumboNode *head) {
    const GumboVector *children = &head->v.element.children;
    for (unsigned i = 0; i < children->length; i++) {
        const GumboNode *child = children->data[i];
        if (child->type != GUMBO_NODE_ELEMENT)
            continue;
        if (child->v.element.tag == GUMBO_TAG_TITLE && !html->title)
            html->title = first_text(child);
        else if (child->v.element.tag == GUMBO_TAG_BASE && !html->base)
            html->base = html_attribute_value(child, "href");
        else if (child->v.element.tag == GUMBO_TAG_META && !html->og_title)
            html->og_title = meta_content(child, "og:title");
    }
}

static const GumboNode *child_of(const GumboNode *root, GumboTag tag) {
    const GumboVector *children = &root->v.element.children;
    for (unsigned i = 0; i < children->length; i++) {
        const GumboNode *child = children->data[i];
        if (child->type == GUMBO_NODE_ELEMENT && child->v.element.tag == tag)
            return child;
    }
    return NULL;
}

static int parse(struct html *html, const char *text, size_t len) {
    struct html_tree *tree = html->tree;
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = take;
    options.deallocator = give_back;
    options.userdata = tree;
    options.max_errors = 0;
    size_t light_len;
    int status = html_source_lighten(text, len, &tree->light, &light_len);
    if (status)
        return status;
    const GumboOutput *output = gumbo_parse_with_options(&options, tree->light ? tree->light : text,
                                                         tree->light ? light_len : len);
    const GumboNode *head = child_of(output->root, GUMBO_TAG_HEAD);
    const GumboNode *body = child_of(output->root, GUMBO_TAG_BODY);
    if (head)
        read_head(html, head);
    return html_flatten(html, body ? body : output->root, tree->limits, &tree->text);
}

static int parse_within_limits(struct html *html, const char *text, size_t len) {
    int status = setjmp(html->tree->give_up);
    return status ? status : parse(html, text, len);
}

static const char *sentence(int status) {
    if (status == STATUS_TIMEOUT)
        return "the document is too deeply nested or too malformed to be parsed in time";
    if (status == STATUS_INVALID)
        return "the document has too many elements";
    return status == STATUS_CLOSED ? "cancelled" : "out of memory";
}

int html_parse(const char *text, size_t len, const struct html_limits *limits,
               struct html **out_html, struct fault *fault) {
    struct html *html = calloc(1, sizeof *html);
    struct html_tree *tree = calloc(1, sizeof *tree);
    *out_html = NULL;
    if (!html || !tree) {
        free(html);
        free(tree);
        return fault_set(fault, STATUS_NO_MEMORY, "%s", sentence(STATUS_NO_MEMORY));
    }
    html->tree = tree;
    tree->limits = limits;
    tree->next_size = FIRST_CHUNK;
    tree->due_at_us = cpu_us() + limits->max_cpu_us;
    int status = parse_within_limits(html, text, len);
    if (status) {
        html_free(html);
        fault_set(fault, status, "%s", sentence(status));
        return status == STATUS_TIMEOUT ? STATUS_INVALID : status;
    }
    *out_html = html;
    return STATUS_OK;
}

void html_free(struct html *html) {
    if (!html)
        return;
    struct html_tree *tree = html->tree;
    for (struct chunk *chunk = tree->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    buffer_fini(&tree->text);
    free(tree->light);
    free(tree);
    free(html->nodes);
    free(html->attributes);
    free(html);
}
