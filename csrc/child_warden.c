// SPDX-License-Identifier: MIT
//
// A process that shares memory and thread-local storage with one of many threads, as posix_spawn's
// child does until it is another program; but this one stays. So it has a stack of its own, takes
// no lock, calls nothing of libc but syscall(), and no sanitizer may add its own.

#include "child_warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BARE __attribute__((no_sanitize("address", "thread"), noinline))

enum {
    N_SIGNALS = 64,
    SIGNAL_SET_SIZE = N_SIGNALS / 8,
    MAX_DESCRIPTORS = 1 << 20,
    NOT_STARTED = 127,
};

// What the program begins as, and by whom it is watched.
struct beginning {
    const struct warden_order *order;
    pid_t warden;
    int error;  // why it did not become the program
};

// clone(2) by its other name in glibc. ThreadSanitizer's clone takes whoever it starts for a copy
// with memory of its own, and releases its locks there too.
extern int __clone(int (*run)(void *), void *stack_end, int flags, void *argument, ...);

BARE static void leave(int code) {
    for (;;)
        syscall(SYS_exit_group, code);
}

BARE static void send_report(const struct warden_report *report) {
    syscall(SYS_sendto, WARDEN_LINK, report, sizeof *report, MSG_NOSIGNAL, NULL, 0);
}

// What is ignored stays ignored over exec, and an ignored SIGCHLD would reap the program unseen.
BARE static void reset_signals(void) {
    static const char as_the_system_does[64];  // the kernel's struct sigaction is smaller
    for (int signal = 1; signal <= N_SIGNALS; signal++)
        syscall(SYS_rt_sigaction, signal, as_the_system_does, NULL, SIGNAL_SET_SIZE);
}

BARE static bool take_descriptors(const struct warden_order *order) {
    bool is_done = syscall(SYS_dup3, order->input_fd, 0, 0) >= 0 &&
                   syscall(SYS_dup3, order->output_fd, 1, 0) >= 0 &&
                   syscall(SYS_dup3, order->errors_fd, 2, 0) >= 0 &&
                   syscall(SYS_dup3, order->link_fd, WARDEN_LINK, O_CLOEXEC) >= 0;
    if (syscall(SYS_close_range, WARDEN_LINK + 1, ~0U, 0) < 0)
        for (int fd = WARDEN_LINK + 1; fd < MAX_DESCRIPTORS; fd++)
            syscall(SYS_close, fd);
    return is_done;
}

BARE static bool apply_limits(const struct warden_order *order) {
    bool is_done = true;
    for (size_t i = 0; i < WARDEN_N_LIMITS; i++)
        is_done &= syscall(SYS_prlimit64, 0, order->limits[i].resource, &order->limits[i].limit,
                           NULL) == 0;
    return is_done;
}

// A kernel without filters runs the program without one.
BARE static void apply_filter(const struct child_filter *filter) {
    const struct sock_fprog program = {filter->len, (struct sock_filter *)filter->code};
    if (filter->len)
        syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

// The warden stands still until this is another program, or has ended.
BARE static int become_program(void *argument) {
    static const char nothing[SIGNAL_SET_SIZE];
    static char *const environment[] = {NULL};
    struct beginning *beginning = argument;
    const struct warden_order *order = beginning->order;
    syscall(SYS_setsid);
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (syscall(SYS_getppid) != beginning->warden)
        leave(NOT_STARTED);  // it died before that was said
    syscall(SYS_chdir, "/");
    if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && apply_limits(order)) {
        apply_filter(&order->filter);
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, nothing, NULL, SIGNAL_SET_SIZE);
        syscall(SYS_execve, order->path, order->arguments, environment);
    }
    beginning->error = errno;
    leave(NOT_STARTED);
    return 0;
}

BARE static int64_t span_us(const struct timeval *span) {
    return (int64_t)span->tv_sec * 1000000 + span->tv_usec;
}

// Until the program has been waited for, its number is its own and its group's.
BARE static void watch(pid_t program, struct warden_report *out_end) {
    struct rusage usage = {0};
    int pidfd = (int)syscall(SYS_pidfd_open, program, 0);
    struct pollfd waited[] = {{WARDEN_LINK, POLLIN, 0}, {pidfd, POLLIN, 0}};
    if (pidfd < 0)
        out_end->error = errno;
    while (pidfd >= 0 && syscall(SYS_ppoll, waited, 2, NULL, NULL, SIGNAL_SET_SIZE) < 0)
        continue;
    // The first reaches the program before it has a group, the second all that is in it.
    if (waited[1].revents == 0)
        syscall(SYS_kill, program, SIGKILL);
    syscall(SYS_kill, -program, SIGKILL);
    while (syscall(SYS_wait4, program, &out_end->status, 0, &usage) < 0 && errno == EINTR)
        continue;
    // As their nearest reaper, which the warden is, it gets the orphans of the group.
    while (syscall(SYS_wait4, -program, NULL, 0, NULL) > 0 || errno == EINTR)
        continue;
    out_end->cpu_us = span_us(&usage.ru_utime) + span_us(&usage.ru_stime);
}

BARE static int stand_guard(void *argument) {
    const struct warden_order *order = argument;
    struct beginning beginning = {.order = order, .warden = (pid_t)syscall(SYS_getpid)};
    struct warden_report end = {0};
    reset_signals();
    syscall(SYS_prctl, PR_SET_NAME, "batch-warden", 0, 0, 0);
    syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!take_descriptors(order))
        leave(NOT_STARTED);
    int program = __clone(become_program, order->stacks + WARDEN_STACKS_SIZE / 2,
                          CLONE_VM | CLONE_VFORK | SIGCHLD, &beginning);
    if (program < 0)
        end.error = errno;
    else
        watch(program, &end);
    if (beginning.error)
        end.error = beginning.error;
    send_report(&end);  // the last: whoever has it may use errno again
    leave(0);
    return 0;
}

BARE pid_t warden_start(const struct warden_order *order) {
    enum { NO_SIGNAL = 0 };  // at its end
    return __clone(stand_guard, order->stacks + WARDEN_STACKS_SIZE, CLONE_VM | NO_SIGNAL,
                   (void *)order);
}
