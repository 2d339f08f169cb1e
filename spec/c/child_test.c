// SPDX-License-Identifier: MIT
//
// Limited children: what a program finds, what stops it, and programs that behave badly.

#include "child.h"

#include "check.h"
#include "clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024 * 1024)

static struct child_result result;
static struct fault fault;

static struct child_plan plan_of(const char *program, const char *const *arguments) {
    return (struct child_plan){.program = program,
                               .arguments = arguments,
                               .timeout_ms = 60000,
                               .cpu_s = 60,
                               .memory = 512 * MIB,
                               .max_output = 64 * MIB,
                               .cancel_fd = -1};
}

// Runs it into the result of the run before.
static int run(const struct child_plan *plan) {
    child_result_fini(&result);
    return child_run(plan, &result, &fault);
}

// A script for sh, which is a program like others here; its built-in commands start no process.
static struct child_plan script(const char *const arguments[3]) {
    return plan_of("sh", arguments);
}

#define SCRIPT(text) script((const char *const[]){"-c", text, NULL})
#define PLAN(program, ...) plan_of(program, (const char *const[]){__VA_ARGS__, NULL})

static bool is_exit(int code) {
    return result.end == CHILD_EXIT && result.code == code && result.signal == 0;
}

static bool says(const struct buffer *text, const char *expected) {
    size_t len = strlen(expected);
    return text->len == len && (len == 0 || memcmp(text->bytes, expected, len) == 0);
}

static bool mentions(const struct buffer *text, const char *part) {
    return text->len && memmem(text->bytes, text->len, part, strlen(part));
}

static void test_exits(void) {
    struct child_plan plan = PLAN("cat", "-");
    plan.input = "to and\0fro";
    plan.input_len = 10;
    CHECK("a program runs", run(&plan) == STATUS_OK && is_exit(0));
    CHECK("its output is what it was given",
          result.output.len == 10 && memcmp(result.output.bytes, "to and\0fro", 10) == 0);
    plan = SCRIPT("echo out; echo err >&2; exit 3");
    CHECK("an exit code comes back", run(&plan) == STATUS_OK && is_exit(3));
    CHECK("output and errors are kept apart",
          says(&result.output, "out\n") && says(&result.errors, "err\n"));
    plan = SCRIPT("kill -SEGV $$");
    CHECK("a signal comes back", run(&plan) == STATUS_OK && result.end == CHILD_SIGNAL);
    CHECK("by its number", result.signal == SIGSEGV && result.code == -1);
    plan = PLAN("/bin/echo", "a b", "$HOME", "");
    CHECK("arguments are no shell's",
          run(&plan) == STATUS_OK && says(&result.output, "a b $HOME \n"));
    CHECK_TEXT("exit", child_end_word(CHILD_EXIT));
    CHECK_TEXT("cancelled", child_end_word(CHILD_CANCELLED));
}

static void test_not_started(void) {
    char *long_text = calloc(1, 256 * 1024);
    const char *many[66];
    struct child_plan plan = PLAN("no-such-program", "x");
    CHECK("a missing program is not found", run(&plan) == STATUS_NOT_FOUND);
    CHECK_TEXT("no program 'no-such-program'", fault.text);
    plan.program = "/etc/passwd";
    CHECK("nor is a file that is none", run(&plan) == STATUS_NOT_FOUND);
    plan.program = "/usr";
    CHECK("nor a folder", run(&plan) == STATUS_NOT_FOUND);
    plan.program = "../bin/cat";
    CHECK("nor a path from where one is", run(&plan) == STATUS_NOT_FOUND);
    plan.program = "";
    CHECK("nor nothing", run(&plan) == STATUS_NOT_FOUND);
    memset(long_text, 'x', 256 * 1024 - 1);
    plan = PLAN("cat", long_text);
    CHECK("an argument may be too long", run(&plan) == STATUS_INVALID);
    CHECK_TEXT("the arguments are too long", fault.text);
    for (size_t i = 0; i < 65; i++)
        many[i] = "x";
    many[65] = NULL;
    plan = plan_of("cat", many);
    CHECK("and so may their list", run(&plan) == STATUS_INVALID);
    CHECK("a refusal leaves nothing", result.output.bytes == NULL && result.errors.bytes == NULL);
    free(long_text);
}

static void test_surroundings(void) {
    int fd = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
    sigset_t all, before;
    struct child_plan plan = PLAN("env", "--");
    setenv("BATCH_CHILD_SECRET", "x", 1);
    CHECK("the environment is empty", run(&plan) == STATUS_OK && says(&result.output, ""));
    plan = PLAN("pwd", "-P");
    CHECK("the folder is the root", run(&plan) == STATUS_OK && says(&result.output, "/\n"));
    plan = PLAN("ls", "/proc/self/fd");
    CHECK("no descriptor of the host's is open",
          run(&plan) == STATUS_OK && says(&result.output, "0\n1\n2\n3\n"));  // 3 is ls's own
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    plan = PLAN("cat", "/proc/self/status");
    CHECK("signals can be read of", run(&plan) == STATUS_OK && is_exit(0));
    CHECK("none is blocked", mentions(&result.output, "SigBlk:\t0000000000000000"));
    CHECK("none is ignored", mentions(&result.output, "SigIgn:\t0000000000000000"));
    CHECK("there are no new privileges", mentions(&result.output, "NoNewPrivs:\t1"));
    CHECK("there is a filter", mentions(&result.output, "Seccomp:\t2"));
    signal(SIGPIPE, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    plan = PLAN("cat", "/proc/self/stat");
    CHECK("a program has a group and session of its own, and no terminal",
          run(&plan) == STATUS_OK && result.output.len);
    int pid = 0, group = -1, session = -2, terminal = -1;
    buffer_add_byte(&result.output, '\0');
    CHECK("which can be read", sscanf(result.output.bytes, "%d (cat) %*c %*d %d %d %d", &pid,
                                      &group, &session, &terminal) == 4);
    CHECK("as said", pid == group && pid == session && terminal == 0);
    close(fd);
}

// bash has a redirection that connects.
static void test_network(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    char text[80];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK("a port is open", bind(listener, (struct sockaddr *)&address, len) == 0 &&
                                listen(listener, 1) == 0 &&
                                getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    snprintf(text, sizeof text, "exec 9<>/dev/tcp/127.0.0.1/%d", ntohs(address.sin_port));
    struct child_plan plan = PLAN("bash", "-c", text);
    CHECK("a program cannot connect", run(&plan) == STATUS_OK && result.code == 1);
    CHECK("it is told so", mentions(&result.errors, "Operation not permitted"));
    plan.may_spawn = true;
    CHECK("nor can one that may start others", run(&plan) == STATUS_OK && result.code == 1);
    CHECK("nobody has come", accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
    close(listener);
}

// In a copy of this process: what is forbidden stays so.
static void test_no_filters(void) {
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    int status = -1;
    CHECK("this kernel takes filters", child_is_filtered());
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        bool is_made = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
        _exit(is_made && !child_is_filtered() ? 7 : 1);
    }
    CHECK("one that takes none is known",
          waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_limits(void) {
    struct child_plan plan = SCRIPT("while :; do :; done");
    plan.cpu_s = 1;
    CHECK("an endless program is stopped", run(&plan) == STATUS_OK && result.end == CHILD_CPU);
    plan = SCRIPT("trap '' XCPU TERM; while :; do :; done");
    plan.cpu_s = 1;
    CHECK("one that will not hear is too", run(&plan) == STATUS_OK && result.end == CHILD_CPU);
    plan = PLAN("dd", "if=/dev/zero", "of=/dev/null", "bs=128M", "count=1");
    CHECK("memory is there", run(&plan) == STATUS_OK && is_exit(0));
    plan.memory = 64 * MIB;
    CHECK("and has an end", run(&plan) == STATUS_OK && is_exit(1));
    plan = SCRIPT("ulimit -c; ulimit -f; ulimit -n");
    plan.max_output = 512 * 100;
    CHECK("there are no cores and few files",
          run(&plan) == STATUS_OK && says(&result.output, "0\n100\n64\n"));
    plan = SCRIPT("true & echo $!");
    CHECK("a program starts no other", run(&plan) == STATUS_OK && is_exit(2));
    CHECK("and is told so", mentions(&result.errors, "fork"));
}

static void test_output(void) {
    struct child_plan plan = PLAN("cat", "/dev/zero");
    plan.max_output = 3 * MIB + 1;
    CHECK("endless output is stopped", run(&plan) == STATUS_OK && result.end == CHILD_OUTPUT);
    CHECK("what fits is there", result.output.len == 3 * MIB + 1 && result.code == -1);
    plan = PLAN("head", "-c", "1000", "/dev/zero");
    plan.max_output = 1000;
    CHECK("output may be as long as the limit",
          run(&plan) == STATUS_OK && is_exit(0) && result.output.len == 1000);
    plan.max_output = 999;
    CHECK("and no longer", run(&plan) == STATUS_OK && result.end == CHILD_OUTPUT);
    plan = SCRIPT("trap '' XFSZ; while :; do echo y || exit; done");
    plan.max_output = 1000;
    CHECK("one that ignores the signal learns it from write",
          run(&plan) == STATUS_OK && result.end == CHILD_OUTPUT && result.output.len == 1000);
    plan = SCRIPT("while :; do echo complaint >&2; done");
    plan.max_output = 100 * 1024;
    CHECK("endless errors are stopped", run(&plan) == STATUS_OK && result.end == CHILD_OUTPUT);
    CHECK("the first of them are kept", result.errors.len == CHILD_MAX_ERRORS);
}

static void test_input(void) {
    enum { SIZE = 5 * MIB };
    char *bytes = malloc(SIZE);
    struct child_plan plan = PLAN("cat", "-");
    memset(bytes, 'i', SIZE);
    plan.input = bytes;
    plan.input_len = SIZE;
    CHECK("much goes in and comes out", run(&plan) == STATUS_OK && result.output.len == SIZE);
    plan.program = "true";
    CHECK("input that nobody reads harms nobody", run(&plan) == STATUS_OK && is_exit(0));
    plan.program = "head";
    plan.arguments = (const char *const[]){"-c", "3", NULL};
    CHECK("nor does input read in part", run(&plan) == STATUS_OK && says(&result.output, "iii"));
    plan = PLAN("cat", "-");
    CHECK("no input is an empty one", run(&plan) == STATUS_OK && says(&result.output, ""));
    free(bytes);
}

static void test_stopping(void) {
    int64_t begun_us = clock_mono_us(NULL);
    int cancel_fd = eventfd(0, EFD_CLOEXEC);
    struct child_plan plan = SCRIPT("trap '' TERM INT HUP; while :; do read x </dev/zero; done");
    plan.timeout_ms = 50;
    CHECK("a program that ignores signals is killed in time",
          run(&plan) == STATUS_OK && result.end == CHILD_TIMEOUT && result.signal == SIGKILL);
    plan.timeout_ms = 0;
    CHECK("no time is no time", run(&plan) == STATUS_OK && result.end == CHILD_TIMEOUT);
    plan.timeout_ms = 60000;
    plan.cancel_fd = cancel_fd;
    eventfd_write(cancel_fd, 1);
    CHECK("a cancelled one is killed", run(&plan) == STATUS_OK && result.end == CHILD_CANCELLED);
    eventfd_t count = 0;
    CHECK("the descriptor is not read", eventfd_read(cancel_fd, &count) == 0 && count == 1);
    CHECK("none of that takes long", clock_mono_us(NULL) - begun_us < 10 * 1000000);
    close(cancel_fd);
}

// Whether a process is gone, which it may be a moment later than it was killed.
static bool is_gone(const struct buffer *text) {
    char digits[16] = "";
    memcpy(digits, text->bytes, text->len < 15 ? text->len : 15);
    pid_t pid = (pid_t)atol(digits);
    for (int i = 0; pid > 1 && i < 500 && kill(pid, 0) == 0; i++)
        usleep(10000);
    return pid > 1 && kill(pid, 0) != 0 && errno == ESRCH;
}

static void test_descendants(void) {
    struct child_plan plan = SCRIPT("sleep 1000 & echo $!; wait");
    plan.may_spawn = true;
    plan.timeout_ms = 200;
    CHECK("a program may start others if it may",
          run(&plan) == STATUS_OK && result.end == CHILD_TIMEOUT && result.output.len);
    CHECK("they are killed with it", is_gone(&result.output));
    plan = SCRIPT("(trap '' HUP TERM; sleep 1000) & echo $!");
    plan.may_spawn = true;
    CHECK("it may leave them", run(&plan) == STATUS_OK && is_exit(0));
    CHECK("they end with it", is_gone(&result.output));
}

int main(void) {
    test_exits();
    test_not_started();
    test_surroundings();
    test_network();
    test_no_filters();
    test_limits();
    test_output();
    test_input();
    test_stopping();
    test_descendants();
    child_result_fini(&result);
    return check_report();
}
