// SPDX-License-Identifier: MIT
//
// Reads from one "<" to the next. Copies begin with the first cut: many pages have none.

#include "html_source.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ATTRIBUTES = 512 };  // of one tag

struct cutter {
    const char *text;
    const char *stop;
    const char *copied_to;  // in the text
    char *copy;             // NULL: nothing was cut
    char *end;
    bool is_broken;  // memory ran out
};

static void take_over(struct cutter *cutter, const char *to) {
    size_t len = (size_t)(to - cutter->copied_to);
    memcpy(cutter->end, cutter->copied_to, len);
    cutter->end += len;
    cutter->copied_to = to;
}

static void cut(struct cutter *cutter, const char *from, const char *to) {
    if (from >= to || cutter->is_broken)
        return;
    if (!cutter->copy)
        cutter->copy = cutter->end = malloc((size_t)(cutter->stop - cutter->text));
    if (!cutter->copy) {
        cutter->is_broken = true;
        return;
    }
    take_over(cutter, from);
    cutter->copied_to = to;
}

static bool is_space(char byte) {
    return (unsigned char)byte <= ' ' &&
           (byte == ' ' || byte == '\n' || byte == '\t' || byte == '\f' || byte == '\r');
}

// Where in a tag a byte stands, as far as the tag's end depends on it.
enum part { TAG_NAME, GAP, NAME, AFTER_NAME, BEFORE_VALUE, VALUE };

// The part that a byte belongs to which is no quote before a value. What stands where no name may
// is one all the same: quotes mean nothing in it.
static enum part next_part(enum part part, char byte) {
    bool ends_name = is_space(byte) || byte == '/';
    switch (part) {
    case TAG_NAME:
        return ends_name ? GAP : TAG_NAME;
    case GAP:
        return ends_name ? GAP : NAME;
    case BEFORE_VALUE:
        return is_space(byte) ? BEFORE_VALUE : VALUE;
    case VALUE:
        return is_space(byte) ? GAP : VALUE;
    default:
        if (byte == '=' || byte == '/')
            return byte == '=' ? BEFORE_VALUE : GAP;
        return is_space(byte) ? AFTER_NAME : NAME;
    }
}

// Takes the place behind a tag's "<". Returns the place of its end, and where its attributes become
// too many, or NULL.
static const char *skip_tag(const char *at, const char *stop, const char **out_excess) {
    unsigned n_attributes = 0;
    enum part part = TAG_NAME;
    *out_excess = NULL;
    for (at += at < stop && *at == '/'; at < stop && *at != '>'; at++) {
        enum part last = part;
        part = next_part(part, *at);
        if (last == BEFORE_VALUE && (*at == '"' || *at == '\'')) {
            at = memchr(at + 1, *at, (size_t)(stop - at - 1));
            if (!at)
                return stop;
            part = GAP;
        } else if (part == NAME && last != NAME && ++n_attributes == MAX_ATTRIBUTES) {
            *out_excess = at - (is_space(at[-1]) || at[-1] == '/');
        }
    }
    return at;
}

// The second character tells nearly all apart, and is looked at first for that.
static bool begins_with(const char *at, const char *stop, const char *word) {
    size_t len = strlen(word);
    return (size_t)(stop - at) >= len && (at[1] | 0x20) == word[1] &&
           strncasecmp(at, word, len) == 0;
}

static bool is_tag(const char *at, const char *stop, const char *word) {
    const char *end = at + strlen(word);
    return begins_with(at, stop, word) && end < stop && strchr("> \t\n\f\r/", *end) && *end;
}

// Whether the text would end a comment that it is in.
static bool ends_comment(const char *text, size_t len) {
    return memmem(text, len, "-->", 3) || memmem(text, len, "--!>", 4);
}

// Returns the place of a script's end tag, or NULL when there is none or when the inside may not be
// what it seems: comments and further scripts in it change where it ends.
static const char *end_of_script(const char *start, const char *stop) {
    for (const char *at = start; (at = memchr(at, '<', (size_t)(stop - at))); at++) {
        if (is_tag(at, stop, "</script"))
            return ends_comment(start, (size_t)(at - start)) ? NULL : at;
        if (begins_with(at, stop, "<!--") || begins_with(at, stop, "<script"))
            return NULL;
    }
    return NULL;
}

static const char *end_of_style(const char *at, const char *stop) {
    at = memchr(at, '<', (size_t)(stop - at));
    return at && is_tag(at, stop, "</style") ? at : NULL;
}

// Behind what holds text that may look like tags: the place of its end tag; stop if there is none;
// NULL for any other element.
static const char *end_of_text(const char *tag, const char *inside, const char *stop) {
    static const char *const ends[] = {"</script", "</style",  "</textarea", "</title",
                                       "</xmp",    "</iframe", "</noembed",  "</noframes"};
    char begin[sizeof "<noframes"] = "<";
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        strcpy(begin + 1, ends[i] + 2);
        if (!is_tag(tag, stop, begin))
            continue;
        const char *at = inside;
        while (at < stop && (at = memchr(at, '<', (size_t)(stop - at))) &&
               !is_tag(at, stop, ends[i]))
            at++;
        return at ? at : stop;
    }
    return is_tag(tag, stop, "<plaintext") ? stop : NULL;
}

// The end tag of what begins with this tag, if the inside may go; NULL: it may not.
static const char *end_of_unseen(const char *tag, const char *inside, const char *stop) {
    if (inside >= stop)
        return NULL;
    if (is_tag(tag, stop, "<script"))
        return end_of_script(inside, stop);
    return is_tag(tag, stop, "<style") ? end_of_style(inside, stop) : NULL;
}

// What is no element and no text: the place of its end, stop if there is none, NULL where something
// else begins.
static const char *end_of_comment(const char *at, const char *stop) {
    const char *end = NULL;
    if (stop - at < 2 || !strchr("!?/", at[1]) || !at[1])
        return NULL;
    if (begins_with(at, stop, "<!--")) {
        end = memmem(at + 2, (size_t)(stop - at - 2), "-->", 3);
        return end ? end + 2 : stop;
    }
    if (at[1] == '/' && stop - at > 2 && isalpha((unsigned char)at[2]))
        return NULL;
    // Whatever it should have been, it is passed over; only in SVG a CDATA section may be one.
    end = memchr(at, '>', (size_t)(stop - at));
    bool is_section = end && begins_with(at, stop, "<![CDATA[") && memcmp(end - 2, "]]", 2) != 0;
    return end && !is_section ? end : stop;
}

// What may lie in a picture or formula without changing how the rest is read.
enum tame { WILD, BOX, LEAF };  // a leaf holds text alone

static enum tame find_tame(const char *name, const char *stop) {
    static const char boxes[] = " a g path rect circle ellipse line polyline polygon use defs stop "
                                "text tspan symbol mask clippath lineargradient radialgradient "
                                "math mrow mfrac msup msub msubsup msqrt mover munder mspace ";
    static const char leaves[] = " title desc style mi mo mn ";
    char word[20] = " ";
    size_t len = 1;
    for (; name < stop && isalnum((unsigned char)*name) && len + 2 < sizeof word; name++)
        word[len++] = (char)tolower((unsigned char)*name);
    if (name == stop || !(is_space(*name) || *name == '>' || *name == '/'))
        return WILD;
    word[len] = ' ';
    word[len + 1] = '\0';
    return strstr(boxes, word) ? BOX : strstr(leaves, word) ? LEAF : WILD;
}

// In pictures and formulas scripts, styles and titles follow rules of their own, and what does not
// belong there ends them. Returns the place of the end of one that has nothing of the kind; else
// stop: from there on nothing may go.
static const char *end_of_foreign(const char *tag, const char *inside, const char *stop) {
    const char *end = is_tag(tag, stop, "<svg") ? "</svg" : "</math", *excess;
    bool is_in_leaf = inside[-1] == '/';  // or closed by itself: that is not looked into
    for (const char *at = inside; at < stop && (at = memchr(at, '<', (size_t)(stop - at)));) {
        bool is_end = at + 1 < stop && at[1] == '/';
        if (!is_in_leaf && is_tag(at, stop, end))
            return at;
        enum tame tame = find_tame(at + 1 + is_end, stop);
        if (begins_with(at, stop, "<!--") && !is_in_leaf) {
            at = end_of_comment(at, stop);
            continue;
        }
        if (tame == WILD || (is_in_leaf && !is_end))
            return stop;
        is_in_leaf = tame == LEAF && !is_end;
        at = skip_tag(at + 1, stop, &excess);
        if (is_in_leaf && at[-1] == '/')
            return stop;
    }
    return stop;
}

// Goes on behind a tag, without what need not be seen of it and in it.
static const char *lighten_tag(struct cutter *cutter, const char *tag) {
    const char *stop = cutter->stop, *excess;
    const char *at = skip_tag(tag + 1, stop, &excess);
    if (excess)
        cut(cutter, excess, at);
    if (at == stop)
        return stop;
    if (is_tag(tag, stop, "<svg") || is_tag(tag, stop, "<math"))
        return end_of_foreign(tag, at, stop);
    const char *end = end_of_unseen(tag, at + 1, stop);
    if (end)
        cut(cutter, at + 1, end);
    else
        end = end_of_text(tag, at + 1, stop);
    return end ? end : at;
}

static void lighten(struct cutter *cutter) {
    const char *stop = cutter->stop, *at = cutter->text;
    while (at < stop && (at = memchr(at, '<', (size_t)(stop - at)))) {
        const char *end = end_of_comment(at, stop);
        bool is_end = at + 1 < stop && at[1] == '/';
        const char *name = at + 1 + is_end;
        if (end)
            at = end;
        else if (name < stop && isalpha((unsigned char)*name))
            at = lighten_tag(cutter, at);
        else
            at++;  // a mere sign
    }
}

int html_source_lighten(const char *text, size_t len, char **out_copy, size_t *out_len) {
    struct cutter cutter = {.text = text, .stop = text + len, .copied_to = text};
    *out_copy = NULL;
    *out_len = 0;
    lighten(&cutter);
    if (cutter.is_broken)
        return STATUS_NO_MEMORY;
    if (!cutter.copy)
        return STATUS_OK;
    take_over(&cutter, cutter.stop);
    *out_copy = cutter.copy;
    *out_len = (size_t)(cutter.end - cutter.copy);
    return STATUS_OK;
}
