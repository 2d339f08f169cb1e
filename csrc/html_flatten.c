// SPDX-License-Identifier: MIT
//
// Walks the tree with a stack of its own, for documents may be as deep as they are long. Text is
// folded as CSS folds it: a run of white space is one space, and none at a block's beginning.
// Elements that only tint their text vanish, so that what they part becomes one text again.

#include "html_flatten.h"

#include "html_rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// An element on the way down, and what was so outside of it.
struct frame {
    const GumboNode *node;
    unsigned next_child;
    uint32_t index;  // of its node in the list, or that of the one around it
    bool is_listed;
    bool is_block;
    bool was_in_link;
    bool was_in_pre;
};

struct walk {
    struct html *html;
    const struct html_limits *limits;
    struct buffer *text;
    struct frame *frames;
    size_t n_frames;
    size_t max_frames;
    size_t max_nodes;  // that there is room for
    size_t max_attributes;
    bool has_space;  // the text before ends in white space, or there is none in this block
    bool in_text;    // the last node is a text that may go on
    bool in_pre;
    bool in_link;
    bool is_broken;  // memory ran out
};

const char *html_attribute_value(const GumboNode *element, const char *name) {
    const GumboAttribute *found = gumbo_get_attribute(&element->v.element.attributes, name);
    return found ? found->value : NULL;
}

// Makes room for one more in the array that *place points to.
static bool grow(struct walk *walk, void **place, size_t n, size_t *max, size_t size) {
    if (n < *max)
        return true;
    size_t wanted = *max ? *max * 2 : 64;
    void *grown = realloc(*place, wanted * size);
    if (!grown) {
        walk->is_broken = true;
        return false;
    }
    *place = grown;
    *max = wanted;
    return true;
}

static struct html_node *add_node(struct walk *walk, const char *name) {
    struct html *html = walk->html;
    void *nodes = html->nodes;
    if (!grow(walk, &nodes, html->n_nodes, &walk->max_nodes, sizeof *html->nodes))
        return NULL;
    html->nodes = nodes;
    struct html_node *node = &html->nodes[html->n_nodes++];
    memset(node, 0, sizeof *node);
    node->name = name;
    node->end = (uint32_t)html->n_nodes;
    node->first_attribute = (uint32_t)html->n_attributes;
    walk->in_text = !name;
    return node;
}

static void add_attribute(struct walk *walk, uint32_t index, const char *name, const char *value) {
    struct html *html = walk->html;
    void *attributes = html->attributes;
    if (!grow(walk, &attributes, html->n_attributes, &walk->max_attributes,
              sizeof *html->attributes))
        return;
    html->attributes = attributes;
    html->attributes[html->n_attributes++] = (struct html_attribute){name, value};
    html->nodes[index].n_attributes++;
}

static void add_attributes(struct walk *walk, uint32_t index, const GumboNode *element,
                           unsigned keeps) {
    const GumboVector *attributes = &element->v.element.attributes;
    for (unsigned i = 0; keeps && i < attributes->length; i++) {
        const GumboAttribute *attribute = attributes->data[i];
        for (const struct html_kept *kept = html_kept; kept->name; kept++)
            if ((kept->of & keeps) && strcmp(kept->name, attribute->name) == 0)
                add_attribute(walk, index, kept->name, attribute->value);
    }
}

// What need not be looked at when text is folded.
static bool is_plain(unsigned char byte) {
    return byte > ' ' && byte != 0xc2 && byte != 0xe2 && byte != 0xef;
}

// The length of the white space at text: what HTML folds, and the no-break space, for readers of
// plain text look for words. 0: none.
static size_t space_len(const unsigned char *text) {
    if (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        return 1;
    return *text == 0xc2 && text[1] == 0xa0 ? 2 : 0;
}

// The length of the character at text if nobody would see it. 0: it can be seen.
static size_t nothing_len(const unsigned char *text) {
    if (*text < ' ')
        return 1;
    if (*text == 0xc2 && text[1] == 0xad)  // soft hyphen
        return 2;
    if (*text == 0xe2 && text[1] == 0x80 && text[2] == 0x8b)  // zero width space
        return 3;
    return *text == 0xef && text[1] == 0xbb && text[2] == 0xbf ? 3 : 0;  // byte order mark
}

static void add_folded(struct walk *walk, const char *source) {
    const unsigned char *at = (const unsigned char *)source;
    char *start = buffer_reserve(walk->text, strlen(source)), *to = start;
    bool has_space = walk->has_space;
    size_t skipped;
    while (start && *at) {
        if (is_plain(*at)) {
            *to++ = (char)*at++;
            has_space = false;
        } else if ((skipped = space_len(at))) {
            if (!has_space)
                *to++ = ' ';
            has_space = true;
            at += skipped;
        } else if ((skipped = nothing_len(at))) {
            at += skipped;
        } else {
            *to++ = (char)*at++;
            has_space = false;
        }
    }
    walk->has_space = has_space;
    walk->text->len += start ? (size_t)(to - start) : 0;
}

// In preformatted text the no-break space becomes a common one, and that is all.
static void add_as_is(struct walk *walk, const char *source) {
    for (const char *space; (space = strstr(source, "\xc2\xa0")); source = space + 2) {
        buffer_add(walk->text, source, (size_t)(space - source));
        buffer_add_byte(walk->text, ' ');
    }
    buffer_add(walk->text, source, strlen(source));
}

static bool has_signs(const char *text, size_t len) {
    static const bool is_sign[256] = {
        ['\\'] = true, ['`'] = true, ['*'] = true, ['_'] = true, ['<'] = true,
        ['&'] = true,  ['~'] = true, ['['] = true, [']'] = true};
    for (size_t i = 0; i < len; i++)
        if (is_sign[(unsigned char)text[i]])
            return true;
    return false;
}

static void add_text(struct walk *walk, const char *source) {
    struct html *html = walk->html;
    uint32_t around = walk->frames[walk->n_frames - 1].index;
    size_t before = walk->text->len;
    if (walk->in_pre)
        add_as_is(walk, source);
    else
        add_folded(walk, source);
    uint32_t len = (uint32_t)(walk->text->len - before);
    if (len == 0 || (!walk->in_text && !add_node(walk, NULL)))
        return;
    html->nodes[html->n_nodes - 1].len += len;
    html->nodes[html->n_nodes - 1].has_signs |= has_signs(walk->text->bytes + before, len);
    html->nodes[around].len += len;
    html->nodes[around].link_len += walk->in_link ? len : 0;
}

static void end_line_of_pre(struct walk *walk) {
    if (walk->in_text && walk->text->bytes[walk->text->len - 1] != '\n')
        add_text(walk, "\n");
}

static bool is_hiding_style(const char *style) {
    const char *display = strcasestr(style, "display"), *end = display ? display + 7 : "";
    while (*end == ' ' || *end == ':')
        end++;
    return strncasecmp(end, "none", 4) == 0 || strcasestr(style, "visibility:hidden") ||
           strcasestr(style, "visibility: hidden");
}

static bool is_hiding(const GumboAttribute *attribute) {
    if (strcmp(attribute->name, "hidden") == 0)
        return strcasecmp(attribute->value, "until-found") != 0;
    if (strcmp(attribute->name, "aria-hidden") == 0)
        return strcasecmp(attribute->value, "true") == 0;
    return strcmp(attribute->name, "style") == 0 && is_hiding_style(attribute->value);
}

// Numbers of lines beside code are no part of it.
static bool is_gutter(const char *class) {
    return strstr(class, "lineno") || strstr(class, "line-number") || strstr(class, "gutter");
}

// Gumbo is older than that element.
static bool is_dialog(const GumboNode *element) {
    const GumboStringPiece *tag = &element->v.element.original_tag;
    return element->v.element.tag == GUMBO_TAG_UNKNOWN && tag->length > 7 &&
           strncasecmp(tag->data, "<dialog", 7) == 0;
}

static bool is_hidden(const struct walk *walk, const GumboNode *element) {
    const GumboVector *attributes = &element->v.element.attributes;
    for (unsigned i = 0; i < attributes->length; i++) {
        const GumboAttribute *attribute = attributes->data[i];
        if (is_hiding(attribute) ||
            (walk->in_pre && strcmp(attribute->name, "class") == 0 && is_gutter(attribute->value)))
            return true;
    }
    return is_dialog(element) && !html_attribute_value(element, "open");
}

static const GumboNode *child_at(const GumboNode *element, unsigned i) {
    const GumboVector *children = &element->v.element.children;
    const GumboNode *child = i < children->length ? children->data[i] : NULL;
    return child && child->type == GUMBO_NODE_ELEMENT ? child : NULL;
}

// The source of a formula in TeX, where its author has left it. NULL: only its parts are there.
static const char *tex_of(const GumboNode *math) {
    const char *source = html_attribute_value(math, "alttext");
    const GumboNode *semantics = child_at(math, 0);
    for (unsigned i = 0; !source && semantics && i < semantics->v.element.children.length; i++) {
        const GumboNode *child = child_at(semantics, i);
        const char *encoding = child ? html_attribute_value(child, "encoding") : NULL;
        if (!encoding || strcmp(encoding, "application/x-tex") != 0)
            continue;
        const GumboVector *texts = &child->v.element.children;
        const GumboNode *text = texts->length > 0 ? texts->data[0] : NULL;
        source = text && text->type == GUMBO_NODE_TEXT ? text->v.text.text : NULL;
    }
    return source;
}

static bool push(struct walk *walk, const GumboNode *element, uint32_t index) {
    void *frames = walk->frames;
    if (!grow(walk, &frames, walk->n_frames, &walk->max_frames, sizeof *walk->frames))
        return false;
    walk->frames = frames;
    walk->frames[walk->n_frames++] = (struct frame){
        .node = element,
        .index = index,
        .was_in_link = walk->in_link,
        .was_in_pre = walk->in_pre,
    };
    return true;
}

// Adds the element's own node and goes into it.
static void open_listed(struct walk *walk, const GumboNode *element, const struct html_rule *rule) {
    uint32_t index = (uint32_t)walk->html->n_nodes;
    if (!add_node(walk, rule->name) || !push(walk, element, index))
        return;
    add_attributes(walk, index, element, rule->keeps);
    struct frame *frame = &walk->frames[walk->n_frames - 1];
    frame->is_listed = true;
    frame->is_block = rule->role == BLOCK;
    walk->has_space = rule->role == BLOCK || walk->has_space;
    walk->in_pre = walk->in_pre || strcmp(rule->name, "pre") == 0;
    walk->in_link = walk->in_link || strcmp(rule->name, "a") == 0;
}

static void open_in_pre(struct walk *walk, const GumboNode *element, const struct html_rule *rule) {
    uint32_t index = walk->frames[walk->n_frames - 1].index;
    const char *class = html_attribute_value(element, "class");
    struct html_node *pre = &walk->html->nodes[index];
    if (element->v.element.tag == GUMBO_TAG_BR)
        add_text(walk, "\n");
    else if (rule->role == BLOCK)
        end_line_of_pre(walk);
    // The attributes of a node lie in a row: only while they are the last ones, more can follow.
    if (element->v.element.tag == GUMBO_TAG_CODE && class &&
        pre->first_attribute + pre->n_attributes == walk->html->n_attributes)
        add_attribute(walk, index, "code-class", class);
    if (push(walk, element, index))
        walk->frames[walk->n_frames - 1].is_block = rule->role == BLOCK;
}

static void open_formula(struct walk *walk, const GumboNode *element) {
    static const struct html_rule formula = {"code", INLINE, 0};
    const char *source = tex_of(element);
    if (!source) {
        push(walk, element, walk->frames[walk->n_frames - 1].index);
        return;
    }
    // Preformatted text is one text, without elements in it.
    if (walk->in_pre)
        push(walk, element, walk->frames[walk->n_frames - 1].index);
    else
        open_listed(walk, element, &formula);
    if (walk->is_broken)
        return;
    add_text(walk, source);
    walk->frames[walk->n_frames - 1].next_child = element->v.element.children.length;
}

static void open_element(struct walk *walk, const GumboNode *element) {
    static const struct html_rule unwrapped = {NULL, UNWRAPPED, 0};
    const struct html_rule *rule = &html_rules[element->v.element.tag];
    bool has_hidden = walk->limits->has_hidden;
    if (has_hidden && element->v.element.tag == GUMBO_TAG_NOSCRIPT)
        rule = &unwrapped;
    if (rule->role == DROPPED || (!has_hidden && is_hidden(walk, element)))
        return;
    if (element->v.element.tag_namespace == GUMBO_NAMESPACE_MATHML)
        rule = &unwrapped;
    if (element->v.element.tag == GUMBO_TAG_MATH)
        open_formula(walk, element);
    else if (walk->in_pre)
        open_in_pre(walk, element, rule);
    else if (rule->role == UNWRAPPED)
        push(walk, element, walk->frames[walk->n_frames - 1].index);
    else
        open_listed(walk, element, rule);
}

static void close_listed(struct walk *walk, const struct frame *frame) {
    struct html_node *node = &walk->html->nodes[frame->index];
    node->end = (uint32_t)walk->html->n_nodes;
    walk->in_text = false;
    if (frame->is_block || strcmp(node->name, "br") == 0)
        walk->has_space = true;
    else if (strcmp(node->name, "img") == 0)
        walk->has_space = false;
    if (walk->n_frames > 0) {
        struct html_node *around = &walk->html->nodes[walk->frames[walk->n_frames - 1].index];
        around->len += node->len;
        around->link_len += node->link_len;
    }
}

static void close_element(struct walk *walk) {
    struct frame frame = walk->frames[--walk->n_frames];
    if (frame.is_listed)
        close_listed(walk, &frame);
    else if (frame.is_block)
        end_line_of_pre(walk);
    walk->in_link = frame.was_in_link;
    walk->in_pre = frame.was_in_pre;
}

static void visit(struct walk *walk, const GumboNode *node) {
    switch (node->type) {
    case GUMBO_NODE_TEXT:
    case GUMBO_NODE_CDATA:
    case GUMBO_NODE_WHITESPACE:
        add_text(walk, node->v.text.text);
        break;
    case GUMBO_NODE_ELEMENT:
        open_element(walk, node);
        break;
    default:
        break;
    }
}

// Texts lie one behind the other in the buffer, which has stopped moving now.
static void place_texts(const struct walk *walk) {
    const char *at = walk->text->bytes;
    for (size_t i = 0; i < walk->html->n_nodes; i++) {
        struct html_node *node = &walk->html->nodes[i];
        if (node->name)
            continue;
        node->text = at;
        at += node->len;
    }
}

int html_flatten(struct html *html, const GumboNode *root, const struct html_limits *limits,
                 struct buffer *text) {
    struct walk walk = {.html = html, .limits = limits, .text = text, .has_space = true};
    static const struct html_rule body = {"body", BLOCK, NAMING};
    int status = STATUS_OK;
    open_listed(&walk, root, &body);
    while (walk.n_frames > 0 && status == STATUS_OK) {
        struct frame *frame = &walk.frames[walk.n_frames - 1];
        const GumboVector *children = &frame->node->v.element.children;
        if (frame->next_child < children->length)
            visit(&walk, children->data[frame->next_child++]);
        else
            close_element(&walk);
        if (walk.is_broken || text->is_broken)
            status = STATUS_NO_MEMORY;
        else if (html->n_nodes > limits->max_nodes)
            status = STATUS_INVALID;
    }
    free(walk.frames);
    if (walk.is_broken)
        return STATUS_NO_MEMORY;  // the root's own node included
    place_texts(&walk);
    return status;
}
