// SPDX-License-Identifier: MIT
//
// Rows as JSON, held against the C library's calendar and the RFCs' known answers.

#include "rows.h"

#include "check.h"
#include "json.h"
#include "status.h"

#include <stdlib.h>
#include <time.h>

static struct buffer out;

static const char *take(void) {
    buffer_add_byte(&out, '\0');
    out.len = 0;
    return out.bytes;
}

static struct bytes bytes_of(const char *text) {
    return (struct bytes){text, strlen(text)};
}

// A moment as JSON has it; "" when it is left out.
static const char *written(int64_t ms) {
    static char moment[64];
    struct job_row job = {.status = JOB_QUEUED, .created_at = ms};
    rows_add_job(&out, &job);
    const char *place = strstr(take(), "\"created_at\":\"");
    moment[0] = '\0';
    if (place)
        sscanf(place + strlen("\"created_at\":\""), "%63[^\"]", moment);
    return moment;
}

static bool is_as_gmtime(int64_t ms) {
    char expected[64];
    struct tm utc;
    time_t second = (time_t)(ms / 1000);
    gmtime_r(&second, &utc);
    size_t len = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(expected + len, sizeof expected - len, ".%03dZ", (int)(ms % 1000));
    return strcmp(expected, written(ms)) == 0 || !CHECK_TEXT(expected, written(ms));
}

static void test_moments(void) {
    static const int64_t day_ms = 86400000;
    bool is_same = true;
    CHECK_TEXT("1970-01-01T00:00:00.001Z", written(1));
    CHECK_TEXT("2000-02-29T23:59:59.999Z", written(951868799999));
    CHECK_TEXT("2000-03-01T00:00:00.000Z", written(951868800000));
    CHECK_TEXT("2026-11-30T17:45:10.123Z", written(1796060710123));
    CHECK_TEXT("2100-02-28T23:59:59.999Z", written(4107542399999));
    CHECK_TEXT("2100-03-01T00:00:00.000Z", written(4107542400000));
    CHECK_TEXT("9999-12-31T23:59:59.999Z", written(253402300799999));
    CHECK_TEXT("", written(0));
    // The edges of every day of four centuries, then moments all over the calendar.
    for (int64_t day = 1; day < 146097 && is_same; day++)
        is_same = is_as_gmtime(day * day_ms) && is_as_gmtime(day * day_ms - 1);
    CHECK("each day is gmtime's", is_same);
    uint64_t state = 1;
    for (int i = 0; i < 200000 && is_same; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        is_same = is_as_gmtime((int64_t)(state >> 11) % 253402300800000);
    }
    CHECK("each moment is gmtime's", is_same);
}

static void test_moments_beyond(void) {
    CHECK_TEXT("9999-12-31T23:59:59.999Z", written(253402300800000));
    CHECK_TEXT("9999-12-31T23:59:59.999Z", written(INT64_MAX));
    CHECK_TEXT("", written(-1));
}

static void test_job(void) {
    struct job_row job = {.status = JOB_QUEUED,
                          .caller = bytes_of("al\"ice\n"),
                          .class_name = {"", 0},
                          .targets_total = 3,
                          .created_at = 1000,
                          .expires_at = 2000};
    strcpy(job.id, "01234567-0123-7123-8123-0123456789ab");
    rows_add_job(&out, &job);
    CHECK_TEXT("{\"id\":\"01234567-0123-7123-8123-0123456789ab\",\"status\":\"queued\","
               "\"caller\":\"al\\\"ice\\n\",\"class\":\"\",\"targets_total\":3,\"targets_done\":0,"
               "\"targets_failed\":0,\"bytes\":0,\"created_at\":\"1970-01-01T00:00:01.000Z\","
               "\"expires_at\":\"1970-01-01T00:00:02.000Z\"}",
               take());
    job.status = JOB_FAILED;
    job.error = "restart";
    job.targets_done = job.targets_failed = 2;
    job.bytes = INT64_C(1) << 53;
    job.started_at = 1001;
    job.finished_at = 1999;
    rows_add_job(&out, &job);
    CHECK_TEXT("{\"id\":\"01234567-0123-7123-8123-0123456789ab\",\"status\":\"failed\","
               "\"error\":\"restart\",\"caller\":\"al\\\"ice\\n\",\"class\":\"\","
               "\"targets_total\":3,\"targets_done\":2,\"targets_failed\":2,"
               "\"bytes\":9007199254740992,\"created_at\":\"1970-01-01T00:00:01.000Z\","
               "\"started_at\":\"1970-01-01T00:00:01.001Z\","
               "\"finished_at\":\"1970-01-01T00:00:01.999Z\","
               "\"expires_at\":\"1970-01-01T00:00:02.000Z\"}",
               take());
}

static void test_targets(void) {
    struct target_row row = {.idx = 4, .input = {"http://a/", 9, "{\"mode\":\"raw\"}", 14}};
    rows_add_target(&out, &row, true);
    CHECK_TEXT("{\"idx\":4,\"url\":\"http://a/\",\"options\":{\"mode\":\"raw\"},"
               "\"status\":\"pending\",\"attempts\":0}",
               take());
    row.seq = 1;
    row.outcome = (struct outcome){.error = bytes_of("no"),
                                   .hint = bytes_of("try <later>"),
                                   .attempts = 2,
                                   .started_at = 1000,
                                   .finished_at = 1500};
    rows_add_target(&out, &row, true);
    CHECK_TEXT("{\"idx\":4,\"url\":\"http://a/\",\"options\":{\"mode\":\"raw\"},"
               "\"status\":\"failed\",\"error\":\"no\",\"hint\":\"try <later>\",\"attempts\":2,"
               "\"started_at\":\"1970-01-01T00:00:01.000Z\","
               "\"finished_at\":\"1970-01-01T00:00:01.500Z\"}",
               take());
    row.outcome = (struct outcome){.content = bytes_of("text"), .attempts = 1};
    rows_add_target(&out, &row, false);
    CHECK_TEXT("{\"idx\":4,\"url\":\"http://a/\",\"options\":{\"mode\":\"raw\"},"
               "\"status\":\"done\",\"attempts\":1}",
               take());
}

// The result of a target with that content.
static const char *result_of(const char *content, size_t len, const char *meta) {
    static char result[512];
    struct target_row row = {.seq = 1, .input = {"u", 1, "{}", 2}};
    row.outcome.content = (struct bytes){content, len};
    if (meta)
        row.outcome.meta = bytes_of(meta);
    rows_add_target(&out, &row, true);
    const char *place = strstr(take(), "\"result\":");
    result[0] = '\0';
    if (place)
        sscanf(place + strlen("\"result\":"), "%511[^}]", result);
    return result;
}

static void test_results(void) {
    CHECK_TEXT("{\"content\":\"text\",\"meta\":{", result_of("text", 4, NULL));
    CHECK_TEXT("{\"content\":\"\",\"meta\":{", result_of("", 0, "{}"));
    CHECK_TEXT("{\"content\":\"x\",\"meta\":{\"n\":1.50", result_of("x", 1, "{\"n\":1.50}"));
    CHECK_TEXT("{\"content\":\"a\\u0000b\",\"meta\":{", result_of("a\0b", 3, NULL));
    CHECK_TEXT("{\"content\":\"\xC3\xBC\xF0\x9F\x98\x80\",\"meta\":{",
               result_of("\xC3\xBC\xF0\x9F\x98\x80", 6, NULL));
    CHECK_TEXT("{\"content\":\"/w==\",\"encoding\":\"base64\",\"meta\":{",
               result_of("\xFF", 1, NULL));
    CHECK_TEXT("{\"content\":\"7aCA\",\"encoding\":\"base64\",\"meta\":{",
               result_of("\xED\xA0\x80", 3, NULL));
    CHECK_TEXT("{\"content\":\"wIA=\",\"encoding\":\"base64\",\"meta\":{",
               result_of("\xC0\x80", 2, NULL));
}

// RFC 4648, section 10, whose words are UTF-8: one byte that is not stands before each.
static void test_base64(void) {
    static const struct {
        const char *expected;
        const char *bytes;
    } answers[] = {
        {"////", "\xFF\xFF\xFF"},
        {"////Zg==", "\xFF\xFF\xFF"
                     "f"},
        {"////Zm8=", "\xFF\xFF\xFF"
                     "fo"},
        {"////Zm9v", "\xFF\xFF\xFF"
                     "foo"},
        {"////Zm9vYg==", "\xFF\xFF\xFF"
                         "foob"},
        {"////Zm9vYmE=", "\xFF\xFF\xFF"
                         "fooba"},
        {"////Zm9vYmFy", "\xFF\xFF\xFF"
                         "foobar"},
        {"+++/", "\xFB\xEF\xBF"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char expected[128];
        snprintf(expected, sizeof expected,
                 "{\"content\":\"%s\",\"encoding\":\"base64\",\"meta\":{", answers[i].expected);
        CHECK_TEXT(expected, result_of(answers[i].bytes, strlen(answers[i].bytes), NULL));
    }
    unsigned char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    const char *result = result_of((const char *)all, sizeof all, NULL);
    CHECK("every byte has its digits",
          strstr(result, "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIj") &&
              strstr(result, "7e7v8PHy8/T19vf4+fr7/P3+/w==\""));
}

static void test_shortage(void) {
    struct buffer broken;
    buffer_init(&broken);
    buffer_reserve(&broken, SIZE_MAX);
    struct target_row row = {.seq = 1, .input = {"u", 1, "{}", 2}};
    row.outcome.content = (struct bytes){"\xFF", 1};
    rows_add_target(&broken, &row, true);
    CHECK("a broken output stays so", broken.is_broken && broken.len == 0);
    buffer_fini(&broken);
}

int main(void) {
    buffer_init(&out);
    test_moments();
    test_moments_beyond();
    test_job();
    test_targets();
    test_results();
    test_base64();
    test_shortage();
    buffer_fini(&out);
    return check_report();
}
