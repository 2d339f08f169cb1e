// SPDX-License-Identifier: MIT
//
// The table of statuses with the code and the sentence that users see for each.

#include "status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
    int status;
    const char *code;
    const char *message;
} statuses[] = {
    {STATUS_OK, "ok", "ok"},
    {STATUS_INVALID, "invalid", "invalid"},
    {STATUS_NOT_FOUND, "not_found", "unknown job"},
    {STATUS_EXPIRED, "expired", "expired"},
    {STATUS_TOO_MANY_TARGETS, "too_many_targets", "too many targets"},
    {STATUS_CALLER_BUSY, "caller_busy", "busy"},
    {STATUS_BUSY, "busy", "jobs busy"},
    {STATUS_CLOSED, "closed", "closed"},
    {STATUS_STORE, "store", "the store failed"},
    {STATUS_LOCKED, "store", "the store is locked by another process"},
    {STATUS_TIMEOUT, "timeout", "timeout"},
    {STATUS_NO_MEMORY, "store", "out of memory"},
    {STATUS_NOTHING, "nothing", "nothing to do now"},
};

const char *status_code(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].code;
    return "unknown";
}

const char *status_message(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].message;
    return "unknown status";
}

int fault_set(struct fault *fault, int status, const char *format, ...) {
    if (fault) {
        va_list args;
        va_start(args, format);
        vsnprintf(fault->text, sizeof fault->text, format, args);
        va_end(args);
    }
    return status;
}
