// SPDX-License-Identifier: MIT
//
// Codes and sentences, which other people's programs compare.

#include "status.h"

#include "check.h"

static void test_codes(void) {
    static const struct {
        int status;
        const char *code;
        const char *message;
    } refusals[] = {
        {STATUS_NOT_FOUND, "not_found", "unknown job"},
        {STATUS_EXPIRED, "expired", "expired"},
        {STATUS_TOO_MANY_TARGETS, "too_many_targets", "too many targets"},
        {STATUS_CALLER_BUSY, "caller_busy", "busy"},
        {STATUS_BUSY, "busy", "jobs busy"},
        {STATUS_CLOSED, "closed", "closed"},
        {STATUS_TIMEOUT, "timeout", "timeout"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        CHECK_TEXT(refusals[i].code, status_code(refusals[i].status));
        CHECK_TEXT(refusals[i].message, status_message(refusals[i].status));
    }
    CHECK_TEXT("invalid", status_code(STATUS_INVALID));
    CHECK_TEXT("store", status_code(STATUS_STORE));
    CHECK_TEXT("store", status_code(STATUS_LOCKED));
    CHECK_TEXT("unknown", status_code(-1000));
}

static void test_every_status_has_a_sentence(void) {
    for (int status = STATUS_OK; status >= STATUS_NOTHING; status--)
        CHECK("a status has code and sentence",
              strcmp(status_code(status), "unknown") != 0 &&
                  strcmp(status_message(status), "unknown status") != 0);
}

static void test_fault(void) {
    struct fault fault;
    char name[2 * sizeof fault.text];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK("a refusal is one statement",
          fault_set(&fault, STATUS_INVALID, "%s: %d", "a", 1) == STATUS_INVALID);
    CHECK_TEXT("a: 1", fault.text);
    fault_set(&fault, STATUS_INVALID, "%s", name);
    CHECK("a long sentence is cut", strlen(fault.text) == sizeof fault.text - 1);
    CHECK("nobody need want it", fault_set(NULL, STATUS_STORE, "%s", "a") == STATUS_STORE);
}

int main(void) {
    test_codes();
    test_every_status_has_a_sentence();
    test_fault();
    return check_report();
}
