// SPDX-License-Identifier: MIT
//
// PCRE2's own limits do not bound time: its match limit is counted anew at each place where a match
// may begin, and walking over a repeated character is not counted at all, so that on a line of
// 1 MB a harmless `\s*a+[0-9]` takes minutes. Hence there are two programs of each pattern. The
// quick one, with a low limit, is for short lines. The watched one has a callout before each item,
// which looks at the clock and at the descriptor; it is for long lines, and for short ones on which
// the quick one gave up.

#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum {
    SHORT_LINE = 2048,       // bytes; the square of it is nothing to worry about
    UNWATCHED_LINE = 65536,  // bytes that a pattern too large to be watched may be tried on
    QUICK_MATCH_LIMIT = 100 * 1000,
    MATCH_LIMIT = 10 * 1000 * 1000,  // PCRE2's default
    HEAP_LIMIT_KIB = 64 * 1024,
    JIT_STACK_MIN = 32 * 1024,
    JIT_STACK_MAX = 1024 * 1024,
    // A step is counted 1 and as many as these bytes fit into the line: an item may walk over all
    // of it.
    BYTES_PER_STEP = 4096,
    STEPS_PER_LOOK = 1024,
};

struct program {
    pcre2_code *code;  // NULL: could not be compiled
    pcre2_match_context *context;
};

struct pattern {
    struct program quick;
    struct program watched;
    pcre2_jit_stack *stack;
    pcre2_match_data *data;
    int64_t give_up_at_us;  // of this thread's time
    int cancel_fd;
    size_t n_steps;  // since the last look at the clock
    size_t step;     // what one step counts on this line
    int ending;      // STATUS_OK while it may go on
};

static int64_t cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int look(struct pattern *pattern) {
    struct pollfd cancel = {.fd = pattern->cancel_fd, .events = POLLIN};
    if (cpu_us() >= pattern->give_up_at_us)
        pattern->ending = STATUS_TIMEOUT;
    else if (pattern->cancel_fd >= 0 && poll(&cancel, 1, 0) > 0)
        pattern->ending = STATUS_CLOSED;
    pattern->n_steps = 0;
    return pattern->ending;
}

static int count_step(struct pattern *pattern) {
    pattern->n_steps += pattern->step;
    return pattern->n_steps < STEPS_PER_LOOK ? STATUS_OK : look(pattern);
}

// Called by PCRE2 before each item of a watched program.
static int watch(pcre2_callout_block *block, void *pattern) {
    (void)block;
    return count_step(pattern) == STATUS_OK ? 0 : PCRE2_ERROR_CALLOUT;
}

static int refuse_pattern(int code, size_t at, struct fault *fault) {
    PCRE2_UCHAR reason[256];
    if (code == PCRE2_ERROR_HEAP_FAILED)
        return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    pcre2_get_error_message(code, reason, sizeof reason);
    return fault_set(fault, STATUS_INVALID, "%s, at byte %zu", (const char *)reason, at + 1);
}

// Bytes that are no UTF-8 match nothing, rather than fail the whole; \C would match half a
// character.
static int compile(const char *text, size_t len, uint32_t more_options, pcre2_code **out_code,
                   struct fault *fault) {
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    int code = PCRE2_ERROR_HEAP_FAILED;
    size_t at = 0;
    *out_code = NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        *out_code =
            pcre2_compile((PCRE2_SPTR)text, len, options | more_options, &code, &at, context);
    }
    pcre2_compile_context_free(context);
    return *out_code ? STATUS_OK : refuse_pattern(code, at, fault);
}

// The just-in-time compiler is a matter of speed only: a system may forbid it.
static int open_program(struct program *program, const char *text, size_t len, uint32_t options,
                        uint32_t match_limit, pcre2_jit_stack *stack, struct fault *fault) {
    int status = compile(text, len, options, &program->code, fault);
    if (status != STATUS_OK)
        return status;
    program->context = pcre2_match_context_create(NULL);
    if (!program->context)
        return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    pcre2_set_match_limit(program->context, match_limit);
    pcre2_set_heap_limit(program->context, HEAP_LIMIT_KIB);
    if (pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE) == 0)
        pcre2_jit_stack_assign(program->context, NULL, stack);
    return STATUS_OK;
}

static void close_program(struct program *program) {
    pcre2_match_context_free(program->context);
    pcre2_code_free(program->code);
}

static int fill(struct pattern *pattern, const char *text, size_t len, struct fault *fault) {
    pattern->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
    pattern->data = pcre2_match_data_create(1, NULL);
    if (!pattern->stack || !pattern->data)
        return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    int status =
        open_program(&pattern->quick, text, len, 0, QUICK_MATCH_LIMIT, pattern->stack, fault);
    if (status != STATUS_OK)
        return status;
    // Callouts make a program some times larger; there is a limit, which the quick one has met.
    status = open_program(&pattern->watched, text, len, PCRE2_AUTO_CALLOUT, MATCH_LIMIT,
                          pattern->stack, fault);
    if (status == STATUS_OK)
        pcre2_set_callout(pattern->watched.context, watch, pattern);
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

int pattern_open(const char *text, size_t len, struct pattern **out_pattern, struct fault *fault) {
    struct pattern *pattern = calloc(1, sizeof *pattern);
    *out_pattern = NULL;
    if (!pattern)
        return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    pattern->cancel_fd = -1;
    int status = fill(pattern, text, len, fault);
    if (status == STATUS_OK)
        *out_pattern = pattern;
    else
        pattern_close(pattern);
    return status;
}

void pattern_close(struct pattern *pattern) {
    if (!pattern)
        return;
    close_program(&pattern->quick);
    close_program(&pattern->watched);
    pcre2_match_data_free(pattern->data);
    pcre2_jit_stack_free(pattern->stack);
    free(pattern);
}

int pattern_check(const char *text, size_t len, struct fault *fault) {
    pcre2_code *code;
    int status = compile(text, len, 0, &code, fault);
    pcre2_code_free(code);
    return status;
}

void pattern_allow(struct pattern *pattern, int64_t span_us, int cancel_fd) {
    pattern->give_up_at_us = cpu_us() + span_us;
    pattern->cancel_fd = cancel_fd;
    pattern->ending = STATUS_OK;
}

// PCRE2's code: from 0 for a match.
static int run(struct pattern *pattern, const struct program *program, const char *line,
               size_t len) {
    PCRE2_SPTR subject = (PCRE2_SPTR)line;
    int code = pcre2_match(program->code, subject, len, 0, 0, pattern->data, program->context);
    // The interpreter keeps its places on the heap, of which it may have more.
    if (code == PCRE2_ERROR_JIT_STACKLIMIT)
        code = pcre2_match(program->code, subject, len, 0, PCRE2_NO_JIT, pattern->data,
                           program->context);
    return code;
}

static bool is_limit(int code) {
    return code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
           code == PCRE2_ERROR_HEAPLIMIT || code == PCRE2_ERROR_JIT_STACKLIMIT;
}

static int run_either(struct pattern *pattern, const char *line, size_t len) {
    int code = PCRE2_ERROR_MATCHLIMIT;
    bool can_watch = pattern->watched.code != NULL;
    if (len <= SHORT_LINE || !can_watch)
        code = run(pattern, &pattern->quick, line, len);
    return is_limit(code) && can_watch ? run(pattern, &pattern->watched, line, len) : code;
}

static int judge(int code, bool *out_is_match, struct fault *fault) {
    PCRE2_UCHAR reason[256];
    *out_is_match = code >= 0;
    if (code >= 0 || code == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    if (is_limit(code))
        return STATUS_TIMEOUT;
    if (code == PCRE2_ERROR_NOMEMORY)
        return STATUS_NO_MEMORY;
    pcre2_get_error_message(code, reason, sizeof reason);
    return fault_set(fault, STATUS_INVALID, "%s", (const char *)reason);
}

int pattern_match(struct pattern *pattern, const char *line, size_t len, bool *out_is_match,
                  struct fault *fault) {
    *out_is_match = false;
    if (len > UNWATCHED_LINE && !pattern->watched.code)
        return fault_set(fault, STATUS_INVALID,
                         "a line of %zu bytes is too long for a pattern as large as this", len);
    pattern->step = 1 + len / BYTES_PER_STEP;
    if (pattern->ending == STATUS_OK && count_step(pattern) == STATUS_OK) {
        int code = run_either(pattern, line, len);
        if (pattern->ending == STATUS_OK)
            return judge(code, out_is_match, fault);
    }
    return pattern->ending;
}
