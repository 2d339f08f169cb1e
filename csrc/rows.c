// SPDX-License-Identifier: MIT
//
// Written straight into the buffer, for a server does it for each request.

#include "rows.h"

#include "json.h"

#include <string.h>

#define LAST_MOMENT_MS INT64_C(253402300799999)

// Appends , "name": where there is a member before it.
static void add_name(struct buffer *out, const char *name) {
    json_comma(out);
    buffer_add_byte(out, '"');
    buffer_add(out, name, strlen(name));
    buffer_add(out, "\":", 2);
}

static void add_text(struct buffer *out, const char *name, struct bytes text) {
    if (!text.start)
        return;
    add_name(out, name);
    json_text(out, text.start, text.len);
}

static void add_word(struct buffer *out, const char *name, const char *word) {
    if (word)
        add_text(out, name, (struct bytes){word, strlen(word)});
}

static void add_integer(struct buffer *out, const char *name, int64_t value) {
    add_name(out, name);
    json_integer(out, value);
}

static void add_raw(struct buffer *out, const char *name, struct bytes json) {
    add_name(out, name);
    buffer_add(out, json.start, json.len);
}

static void put_digits(char *place, int n_digits, int64_t value) {
    for (int i = n_digits - 1; i >= 0; i--, value /= 10)
        place[i] = (char)('0' + value % 10);
}

// Milliseconds since the epoch as RFC 3339 in UTC, whose last year is 9999. The calendar counts in
// years that begin with March, so that the leap day is their last one: 400 of them have 146097
// days.
static void add_moment(struct buffer *out, const char *name, int64_t ms) {
    char text[] = "\"0000-00-00T00:00:00.000Z\"";
    if (ms <= 0)
        return;
    ms = ms < LAST_MOMENT_MS ? ms : LAST_MOMENT_MS;
    int64_t days = ms / 86400000 + 719468, second = ms / 1000 % 86400;
    int64_t era = days / 146097, day_of_era = days % 146097;
    int64_t year =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day + 2) / 153;
    put_digits(text + 1, 4, year + era * 400 + (month >= 10));
    put_digits(text + 6, 2, month < 10 ? month + 3 : month - 9);
    put_digits(text + 9, 2, day - (153 * month + 2) / 5 + 1);
    put_digits(text + 12, 2, second / 3600);
    put_digits(text + 15, 2, second / 60 % 60);
    put_digits(text + 18, 2, second % 60);
    put_digits(text + 21, 3, ms % 1000);
    add_raw(out, name, (struct bytes){text, sizeof text - 1});
}

static void add_base64(struct buffer *out, struct bytes bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *place = buffer_reserve(out, (bytes.len + 2) / 3 * 4 + 2);
    if (!place)
        return;
    char *start = place;
    *place++ = '"';
    for (size_t i = 0; i < bytes.len; i += 3) {
        const unsigned char *at = (const unsigned char *)bytes.start + i;
        size_t left = bytes.len - i;
        unsigned group = (unsigned)at[0] << 16;
        group |= left > 1 ? (unsigned)at[1] << 8 : 0;
        group |= left > 2 ? at[2] : 0;
        *place++ = digits[group >> 18];
        *place++ = digits[group >> 12 & 63];
        *place++ = left > 1 ? digits[group >> 6 & 63] : '=';
        *place++ = left > 2 ? digits[group & 63] : '=';
    }
    *place++ = '"';
    out->len += (size_t)(place - start);
}

static void add_result(struct buffer *out, const struct outcome *outcome) {
    add_name(out, "result");
    buffer_add_byte(out, '{');
    add_name(out, "content");
    if (json_is_utf8(outcome->content.start, outcome->content.len)) {
        json_text(out, outcome->content.start, outcome->content.len);
    } else {
        add_base64(out, outcome->content);
        add_word(out, "encoding", "base64");
    }
    add_raw(out, "meta", outcome->meta.start ? outcome->meta : (struct bytes){"{}", 2});
    buffer_add_byte(out, '}');
}

void rows_add_job(struct buffer *out, const struct job_row *job) {
    buffer_add_byte(out, '{');
    add_word(out, "id", job->id);
    add_word(out, "status", job_status_name(job->status));
    add_word(out, "error", job->error);
    add_text(out, "caller", job->caller);
    add_text(out, "class", job->class_name);
    add_integer(out, "targets_total", job->targets_total);
    add_integer(out, "targets_done", job->targets_done);
    add_integer(out, "targets_failed", job->targets_failed);
    add_integer(out, "bytes", job->bytes);
    add_moment(out, "created_at", job->created_at);
    add_moment(out, "started_at", job->started_at);
    add_moment(out, "finished_at", job->finished_at);
    add_moment(out, "expires_at", job->expires_at);
    buffer_add_byte(out, '}');
}

void rows_add_target(struct buffer *out, const struct target_row *target, bool has_content) {
    const struct outcome *outcome = &target->outcome;
    bool is_ended = target->seq != 0, is_done = is_ended && !outcome->error.start;
    buffer_add_byte(out, '{');
    add_integer(out, "idx", target->idx);
    add_text(out, "url", (struct bytes){target->input.url, target->input.url_len});
    add_raw(out, "options", (struct bytes){target->input.options, target->input.options_len});
    add_word(out, "status", is_done ? "done" : is_ended ? "failed" : "pending");
    if (is_done && has_content)
        add_result(out, outcome);
    if (is_ended) {
        add_text(out, "error", outcome->error);
        add_text(out, "hint", outcome->hint);
    }
    add_integer(out, "attempts", outcome->attempts);
    if (is_ended) {
        add_moment(out, "started_at", outcome->started_at);
        add_moment(out, "finished_at", outcome->finished_at);
    }
    buffer_add_byte(out, '}');
}
