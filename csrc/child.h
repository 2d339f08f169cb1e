// SPDX-License-Identifier: MIT
//
// Runs a program on some input and collects what it says, under limits and without a shell. The
// program gets: its arguments, an empty environment, the root folder to be in, three files for
// input, output and errors, and nothing else of this process; no network, no new privileges and, as
// a rule, no processes of its own. It does not outlive the call, or this process. Knows nothing of
// Lua and of what the programs are for.

#ifndef BATCH_CHILD_H
#define BATCH_CHILD_H

#include "buffer.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHILD_MAX_ERRORS = 64 * 1024 };  // bytes that are kept of what a program complains of

struct child_plan {
    const char *program;           // an absolute path, or a name to be found in PATH
    const char *const *arguments;  // behind the program's name, up to NULL
    const void *input;
    size_t input_len;
    int64_t timeout_ms;
    int64_t cpu_s;
    uint64_t memory;      // bytes of address space
    uint64_t max_output;  // bytes of output, and of errors
    int cancel_fd;        // when it becomes readable, the program is killed; never read. -1: none
    bool may_spawn;       // it may start processes; they end with it unless they leave its session
};

enum child_end {
    CHILD_EXIT,       // by itself, with an exit code
    CHILD_SIGNAL,     // by a signal of another's, or of its own making
    CHILD_CPU,        // stopped: no time left on a processor
    CHILD_OUTPUT,     // stopped: more output than max_output
    CHILD_TIMEOUT,    // killed: timeout_ms were over
    CHILD_CANCELLED,  // killed: cancel_fd was readable
};

struct child_result {
    enum child_end end;
    int code;    // with CHILD_EXIT, otherwise -1
    int signal;  // 0 with CHILD_EXIT
    struct buffer output;
    struct buffer errors;  // the first CHILD_MAX_ERRORS bytes
};

// Blocks until the program has ended, killed if need be. Returns 0 if it ran, however it ended,
// with a result to be released by child_result_fini; otherwise a negative status with an empty
// result and a sentence: STATUS_NOT_FOUND when there is no such program, STATUS_INVALID for
// arguments that cannot be passed, STATUS_NO_MEMORY where the system gives no more of something.
// May be called from any thread, from several at once; takes no signal and raises none, and neither
// needs SIGCHLD nor minds what the host does with it.
int child_run(const struct child_plan *plan, struct child_result *out_result,
              struct fault *out_fault);

// Whether programs run under a filter of system calls: whether there is one for this architecture,
// and the kernel takes it. Without one they are not kept from network and processes.
bool child_is_filtered(void);

void child_result_fini(struct child_result *result);

// The word for an end: "exit", "signal", "cpu", "output", "timeout", "cancelled".
const char *child_end_word(enum child_end end);

#endif
