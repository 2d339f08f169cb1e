// SPDX-License-Identifier: MIT

#include "grep.h"

#include <string.h>

struct line {
    size_t start;
    size_t end;   // of what the pattern sees
    size_t next;  // where the next one starts
};

struct progress {
    const char *text;
    size_t len;
    size_t n_context;
    size_t taken_to;  // up to where lines have been taken over
    size_t n_after;   // lines that are still to follow the last match
};

static struct line line_at(const struct progress *progress, size_t start) {
    const char *feed = memchr(progress->text + start, '\n', progress->len - start);
    size_t end = feed ? (size_t)(feed - progress->text) : progress->len;
    struct line line = {.start = start, .end = end, .next = feed ? end + 1 : end};
    if (feed && end > start && progress->text[end - 1] == '\r')
        line.end = end - 1;
    return line;
}

static void take(struct progress *progress, size_t start, size_t next, struct buffer *out) {
    buffer_add(out, progress->text + start, next - start);
    if (progress->text[next - 1] != '\n')
        buffer_add_byte(out, '\n');
    progress->taken_to = next;
}

// Where the lines before a match start, without those that have been taken already.
static size_t context_before(const struct progress *progress, size_t start) {
    for (size_t i = 0; i < progress->n_context && start > progress->taken_to; i++) {
        size_t end = start - 1;
        const char *feed = memrchr(progress->text, '\n', end);
        start = feed ? (size_t)(feed - progress->text) + 1 : 0;
    }
    return start;
}

static void take_match(struct progress *progress, const struct line *line, struct buffer *out) {
    size_t start = context_before(progress, line->start);
    if (progress->n_context > 0 && out->len > 0 && start > progress->taken_to)
        buffer_add(out, "--\n", 3);
    take(progress, start, line->next, out);
    progress->n_after = progress->n_context;
}

int grep_lines(struct pattern *pattern, const char *text, size_t len, size_t n_context,
               struct grep_found *found, struct fault *fault) {
    struct progress progress = {.text = text, .len = len, .n_context = n_context};
    for (size_t start = 0; start < len && !found->text.is_broken;) {
        struct line line = line_at(&progress, start);
        bool is_match;
        found->n_lines++;
        int status =
            pattern_match(pattern, text + line.start, line.end - line.start, &is_match, fault);
        if (status != STATUS_OK)
            return status;
        if (is_match) {
            found->n_matches++;
            take_match(&progress, &line, &found->text);
        } else if (progress.n_after > 0) {
            progress.n_after--;
            take(&progress, line.start, line.next, &found->text);
        }
        start = line.next;
    }
    return found->text.is_broken ? STATUS_NO_MEMORY : STATUS_OK;
}
