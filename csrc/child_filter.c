// SPDX-License-Identifier: MIT
//
// A namespace without network would do as well, but many systems forbid making one to users, or at
// all. A filter can be had by whoever gives up new privileges.

#include "child_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

enum { X32_BIT = 0x40000000 };  // the same calls by other numbers, on x86_64

// Both architectures have their low half first.
#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | (error))
#define SKIP_UNLESS(test, value, n) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (n))
#define FORBID(number, error) SKIP_UNLESS(BPF_JEQ, (number), 1), REFUSE(error)

#ifdef ARCHITECTURE

static const struct sock_filter always[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
#ifdef __x86_64__
    SKIP_UNLESS(BPF_JGE, X32_BIT, 1),
    REFUSE(ENOSYS),
#endif
    FORBID(SYS_socket, EPERM),
    FORBID(SYS_io_uring_setup, EPERM),  // it can make sockets
    FORBID(SYS_ptrace, EPERM),
    FORBID(SYS_process_vm_readv, EPERM),
    FORBID(SYS_process_vm_writev, EPERM),
    FORBID(SYS_pidfd_getfd, EPERM),
};

static const struct sock_filter no_processes[] = {
#ifdef SYS_fork
    FORBID(SYS_fork, EPERM),
    FORBID(SYS_vfork, EPERM),
#endif
    // Its flags lie in memory, where a filter cannot look; without it libc takes clone.
    FORBID(SYS_clone3, ENOSYS),
    SKIP_UNLESS(BPF_JEQ, SYS_clone, 3),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
    REFUSE(EPERM),
};

static void append(struct child_filter *filter, const struct sock_filter *code, size_t count) {
    for (size_t i = 0; i < count; i++)
        filter->code[filter->len++] = code[i];
}

// The kernel looks at the program only if it takes filters at all, and there is none to look at.
bool child_filter_is_taken(void) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

void child_filter_make(struct child_filter *out_filter, bool may_spawn) {
    static const struct sock_filter allow = ANSWER(SECCOMP_RET_ALLOW);
    _Static_assert(sizeof always + sizeof no_processes + sizeof allow <= sizeof out_filter->code,
                   "a filter has room for all");
    out_filter->len = 0;
    append(out_filter, always, sizeof always / sizeof *always);
    if (!may_spawn)
        append(out_filter, no_processes, sizeof no_processes / sizeof *no_processes);
    append(out_filter, &allow, 1);
}

#else

void child_filter_make(struct child_filter *out_filter, bool may_spawn) {
    (void)may_spawn;
    out_filter->len = 0;
}

bool child_filter_is_taken(void) {
    return false;
}

#endif
