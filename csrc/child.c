// SPDX-License-Identifier: MIT
//
// Input and outputs are files in memory, not pipes: whoever does not read or does not stop writing
// blocks nobody, the kernel counts the output, and there is no SIGPIPE. So all that is waited for
// is the end, which the warden reports.

#include "child.h"

#include "child_warden.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_PATH = 4096,
    MAX_ARGUMENTS = 64,
    MAX_FILES = 64,  // that a program may have open
};

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

// One call of child_run.
struct run {
    const struct child_plan *plan;
    struct child_result *result;
    struct fault *fault;
    int64_t due_us;
    int input_fd;
    int output_fd;
    int errors_fd;
    int link_fd;    // this side's
    int warden_fd;  // the warden's side of it
    char *stacks;
    char path[MAX_PATH];
    const char *arguments[MAX_ARGUMENTS + 2];
    struct warden_order order;
};

// --- the program ---

static bool is_program(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

// Writes folder/name; false where that is too long.
static bool join(char path[MAX_PATH], const char *folder, size_t folder_len, const char *name) {
    size_t name_len = strlen(name);
    if (folder_len >= MAX_PATH || name_len >= MAX_PATH - folder_len - 1)
        return false;
    memcpy(path, folder, folder_len);
    path[folder_len] = '/';
    memcpy(path + folder_len + 1, name, name_len + 1);
    return true;
}

static bool find_program(struct run *run) {
    const char *name = run->plan->program;
    const char *folders = getenv("PATH");  // nginx takes it away from its workers
    if (name[0] == '/')
        return join(run->path, "", 0, name + 1) && is_program(run->path);
    if (name[0] == '\0' || strchr(name, '/'))
        return false;
    for (const char *at = folders ? folders : DEFAULT_PATH; *at; at += *at == ':') {
        size_t len = strcspn(at, ":");
        // A folder that is not the same from everywhere is none to take programs from.
        if (*at == '/' && join(run->path, at, len, name) && is_program(run->path))
            return true;
        at += len;
    }
    return false;
}

static int list_arguments(struct run *run) {
    size_t n = 0;
    run->arguments[0] = run->plan->program;
    for (; run->plan->arguments[n]; n++) {
        if (n == MAX_ARGUMENTS)
            return fault_set(run->fault, STATUS_INVALID, "more than %d arguments", MAX_ARGUMENTS);
        run->arguments[n + 1] = run->plan->arguments[n];
    }
    return STATUS_OK;
}

// --- descriptors ---

static int say_errno(struct run *run, const char *what, int error) {
    return fault_set(run->fault, STATUS_NO_MEMORY, "%s: %s", what, strerror(error));
}

// The warden moves them to the low numbers, where they must not stand already: that of a host which
// has closed its standard input may be free.
static int lift(int fd) {
    if (fd < 0 || fd > WARDEN_LINK)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, WARDEN_LINK + 1);
    int error = errno;
    close(fd);
    errno = error;
    return lifted;
}

static int open_file(const char *name) {
    return lift(memfd_create(name, MFD_CLOEXEC));
}

static int open_files(struct run *run) {
    int link[2] = {-1, -1};
    run->input_fd = open_file("batch-input");
    run->output_fd = open_file("batch-output");
    run->errors_fd = open_file("batch-errors");
    if (run->input_fd < 0 || run->output_fd < 0 || run->errors_fd < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        return say_errno(run, "no descriptors", errno);
    run->link_fd = link[0];
    run->warden_fd = lift(link[1]);
    return run->warden_fd < 0 ? say_errno(run, "no descriptors", errno) : STATUS_OK;
}

static void close_files(struct run *run) {
    int fds[] = {run->input_fd, run->output_fd, run->errors_fd, run->link_fd, run->warden_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

// At places of its own, so that the program finds the file's position at its beginning.
static int write_input(struct run *run) {
    const char *bytes = run->plan->input;
    size_t done = 0;
    while (done < run->plan->input_len) {
        ssize_t n = pwrite(run->input_fd, bytes + done, run->plan->input_len - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return say_errno(run, "no room for the input", errno);
        done += n > 0 ? (size_t)n : 0;
    }
    return STATUS_OK;
}

static int read_file(struct run *run, int fd, size_t max, struct buffer *out_text) {
    struct stat status;
    size_t size = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    size = size < max ? size : max;
    char *place = size ? buffer_reserve(out_text, size) : NULL;
    if (size && !place)
        return fault_set(run->fault, STATUS_NO_MEMORY, "no memory for the output");
    while (out_text->len < size) {
        ssize_t n = pread(fd, place + out_text->len, size - out_text->len, (off_t)out_text->len);
        if (n < 0 && errno != EINTR)
            return say_errno(run, "the output cannot be read", errno);
        if (n == 0)
            break;  // a process that got away has shortened it
        out_text->len += n > 0 ? (size_t)n : 0;
    }
    return STATUS_OK;
}

// --- the run ---

static void set_limit(struct warden_order *order, size_t at, int resource, uint64_t soft,
                      uint64_t hard) {
    struct rlimit limit = {0, RLIM_INFINITY};
    getrlimit(resource, &limit);  // the most that may be asked for
    order->limits[at].resource = resource;
    order->limits[at].limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    order->limits[at].limit.rlim_max = hard < limit.rlim_max ? hard : limit.rlim_max;
}

static void give_order(struct run *run) {
    const struct child_plan *plan = run->plan;
    struct warden_order *order = &run->order;
    uint64_t cpu_s = (uint64_t)plan->cpu_s;
    order->stacks = run->stacks;
    order->path = run->path;
    order->arguments = (char *const *)run->arguments;
    order->input_fd = run->input_fd;
    order->output_fd = run->output_fd;
    order->errors_fd = run->errors_fd;
    order->link_fd = run->warden_fd;
    // The second is for those who handle SIGXCPU.
    set_limit(order, 0, RLIMIT_CPU, cpu_s, cpu_s + 1);
    set_limit(order, 1, RLIMIT_AS, plan->memory, plan->memory);
    set_limit(order, 2, RLIMIT_FSIZE, plan->max_output, plan->max_output);
    set_limit(order, 3, RLIMIT_NOFILE, MAX_FILES, MAX_FILES);
    set_limit(order, 4, RLIMIT_CORE, 0, 0);
    child_filter_make(&order->filter, plan->may_spawn);
}

// A new process has this thread's mask. No handler of the host's may run there.
static pid_t start(struct run *run) {
    sigset_t all, before;
    give_order(run);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t warden = warden_start(&run->order);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (warden < 0)
        say_errno(run, "no more processes", error);
    close(run->warden_fd);  // so that the link ends with the warden
    run->warden_fd = -1;
    return warden;
}

static int left_ms(const struct run *run) {
    int64_t left_us = run->due_us - clock_mono_us(NULL);
    int64_t left = left_us > 0 ? (left_us + 999) / 1000 : 0;
    return left < INT32_MAX ? (int)left : INT32_MAX;
}

// Waits for the report, and for what may come before it. Returns whether that is the report.
static bool await_report(const struct run *run, enum child_end *out_end) {
    struct pollfd waited[] = {{run->link_fd, POLLIN, 0}, {run->plan->cancel_fd, POLLIN, 0}};
    for (;;) {
        int n = poll(waited, 2, left_ms(run));
        if (n < 0)
            continue;
        if (waited[0].revents)
            return true;
        *out_end = waited[1].revents ? CHILD_CANCELLED : CHILD_TIMEOUT;
        if (n > 0 || left_ms(run) == 0)
            return false;
    }
}

// Waits for the report without a limit: who is killed ends. Returns false if it never comes.
static bool receive(const struct run *run, struct warden_report *out_report) {
    struct pollfd waited = {run->link_fd, POLLIN, 0};
    while (poll(&waited, 1, -1) <= 0)
        continue;
    return recv(run->link_fd, out_report, sizeof *out_report, 0) == (ssize_t)sizeof *out_report;
}

static int say_not_started(struct run *run, int error) {
    if (error == E2BIG)
        return fault_set(run->fault, STATUS_INVALID, "the arguments are too long");
    if (error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR)
        return fault_set(run->fault, STATUS_NOT_FOUND, "cannot run %.200s: %s", run->path,
                         strerror(error));
    return say_errno(run, "could not start", error);
}

static enum child_end judge(const struct run *run, const struct warden_report *report) {
    bool is_exit = WIFEXITED(report->status);
    int signal = is_exit ? 0 : WTERMSIG(report->status);
    bool is_full = run->result->output.len >= run->plan->max_output;
    if (signal == SIGXCPU || (signal == SIGKILL && report->cpu_us / 1000000 >= run->plan->cpu_s))
        return CHILD_CPU;
    // Whoever survives the signal has seen a write fail.
    if (signal == SIGXFSZ || (is_full && (!is_exit || WEXITSTATUS(report->status) != 0)))
        return CHILD_OUTPUT;
    return is_exit ? CHILD_EXIT : CHILD_SIGNAL;
}

static int read_result(struct run *run, enum child_end end, bool is_killed,
                       const struct warden_report *report) {
    struct child_result *result = run->result;
    int status = read_file(run, run->output_fd, (size_t)run->plan->max_output, &result->output);
    if (status == STATUS_OK)
        status = read_file(run, run->errors_fd, CHILD_MAX_ERRORS, &result->errors);
    if (status != STATUS_OK)
        return status;
    result->end = is_killed ? end : judge(run, report);
    result->signal = WIFSIGNALED(report->status) ? WTERMSIG(report->status) : 0;
    result->code = result->end == CHILD_EXIT ? WEXITSTATUS(report->status) : -1;
    return STATUS_OK;
}

// No errno from start to waitpid; see child_warden.h.
static int carry_out(struct run *run) {
    struct warden_report report = {0};
    enum child_end end = CHILD_EXIT;
    pid_t warden = start(run);
    if (warden < 0)
        return STATUS_NO_MEMORY;
    bool is_killed = !await_report(run, &end);
    if (is_killed)
        shutdown(run->link_fd, SHUT_WR);
    bool is_received = receive(run, &report);
    while (waitpid(warden, NULL, __WALL) < 0 && errno == EINTR)
        continue;
    if (!is_received)
        return fault_set(run->fault, STATUS_NO_MEMORY, "the process that watches it was killed");
    if (report.error)
        return say_not_started(run, report.error);
    return read_result(run, end, is_killed, &report);
}

int child_run(const struct child_plan *plan, struct child_result *out_result,
              struct fault *out_fault) {
    struct run run = {.plan = plan,
                      .result = out_result,
                      .fault = out_fault,
                      .due_us = clock_mono_us(NULL) + plan->timeout_ms * 1000,
                      .input_fd = -1,
                      .output_fd = -1,
                      .errors_fd = -1,
                      .link_fd = -1,
                      .warden_fd = -1};
    memset(out_result, 0, sizeof *out_result);
    if (!find_program(&run))
        return fault_set(out_fault, STATUS_NOT_FOUND, "no program '%.100s'", plan->program);
    run.stacks = malloc(WARDEN_STACKS_SIZE);
    int status =
        run.stacks ? list_arguments(&run) : fault_set(out_fault, STATUS_NO_MEMORY, "out of memory");
    if (status == STATUS_OK)
        status = open_files(&run);
    if (status == STATUS_OK)
        status = write_input(&run);
    if (status == STATUS_OK)
        status = carry_out(&run);
    close_files(&run);
    free(run.stacks);
    if (status != STATUS_OK)
        child_result_fini(out_result);
    return status;
}

bool child_is_filtered(void) {
    return child_filter_is_taken();
}

void child_result_fini(struct child_result *result) {
    buffer_fini(&result->output);
    buffer_fini(&result->errors);
    memset(result, 0, sizeof *result);
}

const char *child_end_word(enum child_end end) {
    static const char *const words[] = {"exit", "signal", "cpu", "output", "timeout", "cancelled"};
    return words[end];
}
