// SPDX-License-Identifier: MIT
//
// Gumbo takes its memory here, from chunks that are released all at once: its own release would
// recurse as deep as the document. When a limit is reached the allocator jumps out of the parser,
// which holds nothing but that memory.

#include "html.h"

#include "html_flatten.h"

#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    FIRST_CHUNK = 64 * 1024,
    LAST_CHUNK = 1024 * 1024,
    LOOK_EVERY = 256,      // allocations between two looks at the clock
    MAX_ATTRIBUTES = 512,  // of one tag: gumbo compares each with all before it
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
    char *trimmed;  // the source without excess attributes, or NULL
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

// Returns the place behind the tag that begins at text, and where its attributes become too many,
// or NULL. No parser: an attribute is what follows white space outside of quotes.
static const char *skip_tag(const char *text, const char *stop, const char **out_excess) {
    unsigned n_attributes = 0;
    char quote = 0;
    *out_excess = NULL;
    for (; text < stop; text++) {
        if (quote)
            quote = *text == quote ? 0 : quote;
        else if (*text == '>')
            return text;
        else if ((*text == '"' || *text == '\'') && text[-1] == '=')
            quote = *text;
        else if ((*text == ' ' || *text == '\n' || *text == '\t' || *text == '/') &&
                 ++n_attributes == MAX_ATTRIBUTES)
            *out_excess = text;
    }
    return text;
}

// Blanks, in a copy, the attributes that are too many.
static const char *trim_attributes(struct html_tree *tree, const char *text, size_t len) {
    const char *excess;
    for (size_t at = 0; at < len; at++) {
        const char *tag = memchr(text + at, '<', len - at);
        if (!tag)
            break;
        at = (size_t)(skip_tag(tag + 1, text + len, &excess) - text);
        if (!excess)
            continue;
        if (!tree->trimmed) {
            tree->trimmed = malloc(len);
            if (!tree->trimmed)
                longjmp(tree->give_up, STATUS_NO_MEMORY);
            memcpy(tree->trimmed, text, len);
        }
        size_t first = (size_t)(excess - text);
        memset(tree->trimmed + first, ' ', at - first);
        text = tree->trimmed;
    }
    return text;
}

static int parse(struct html *html, const char *text, size_t len) {
    struct html_tree *tree = html->tree;
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = take;
    options.deallocator = give_back;
    options.userdata = tree;
    options.max_errors = 0;
    text = trim_attributes(tree, text, len);
    const GumboOutput *output = gumbo_parse_with_options(&options, text, len);
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
    free(tree->trimmed);
    free(tree);
    free(html->nodes);
    free(html->attributes);
    free(html);
}
