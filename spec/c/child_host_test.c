// SPDX-License-Identifier: MIT
//
// Limited children in hosts of all kinds: those that ignore SIGCHLD or wait for every child, that
// have closed their standard input, use many threads, or die.

#include "child.h"

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 8, N_AT_ONCE = 50, N_RUNS = 1000 };

static int run_in(const char *program, const char *const *arguments, const char *input,
                  struct child_result *out_result) {
    const struct child_plan plan = {.program = program,
                                    .arguments = arguments,
                                    .input = input,
                                    .input_len = strlen(input),
                                    .timeout_ms = 60000,
                                    .cpu_s = 60,
                                    .memory = 512 * 1024 * 1024,
                                    .max_output = 1024 * 1024,
                                    .cancel_fd = -1};
    struct fault fault;
    return child_run(&plan, out_result, &fault);
}

// Whether cat gives back its input and exits as it should.
static bool echoes(const char *input) {
    struct child_result result;
    bool is_fine = run_in("cat", (const char *const[]){NULL}, input, &result) == STATUS_OK &&
                   result.end == CHILD_EXIT && result.code == 0 &&
                   result.output.len == strlen(input) &&
                   memcmp(result.output.bytes, input, result.output.len) == 0;
    child_result_fini(&result);
    return is_fine;
}

static int count_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

// --- who else waits ---

static atomic_bool is_thief_done;
static atomic_int n_stolen;
static atomic_int n_signals;

static void *steal(void *nothing) {
    (void)nothing;
    while (!is_thief_done)
        if (waitpid(-1, NULL, WNOHANG) > 0)
            n_stolen++;
    return NULL;
}

static void on_child(int signal) {
    (void)signal;
    n_signals++;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        n_stolen++;
}

static bool all_echo(int n) {
    bool is_fine = true;
    for (int i = 0; i < n; i++)
        is_fine &= echoes("here again");
    return is_fine;
}

static void test_waiting_hosts(void) {
    pthread_t thief;
    signal(SIGCHLD, SIG_IGN);
    CHECK("children work where SIGCHLD is ignored", all_echo(20));
    signal(SIGCHLD, on_child);
    CHECK("and where a handler waits for every child, as nginx's does", all_echo(20));
    CHECK("which is never called for them", n_signals == 0);
    signal(SIGCHLD, SIG_DFL);
    pthread_create(&thief, NULL, steal, NULL);
    CHECK("and where a thread waits for every child", all_echo(50));
    is_thief_done = true;
    pthread_join(thief, NULL);
    CHECK("which gets none of them", n_stolen == 0);
    CHECK("no zombie is left", waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD);
}

static void test_host_child(void) {
    pid_t own = fork();
    if (own == 0)
        _exit(7);
    CHECK("a child runs beside the host's own", echoes("x"));
    int status = 0;
    CHECK("whose end is left to the host",
          waitpid(own, &status, 0) == own && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_closed_input(void) {
    int input = dup(0), output = dup(1), errors = dup(2);
    close(0);
    close(1);
    close(2);
    bool is_fine = echoes("without standard files");
    dup2(input, 0);
    dup2(output, 1);
    dup2(errors, 2);
    close(input);
    close(output);
    close(errors);
    CHECK("a host needs no standard files", is_fine);
}

// --- many ---

static atomic_int n_left = N_AT_ONCE;
static atomic_int n_wrong;

static void *take_turns(void *nothing) {
    (void)nothing;
    char input[32];
    for (int i = atomic_fetch_sub(&n_left, 1); i > 0; i = atomic_fetch_sub(&n_left, 1)) {
        snprintf(input, sizeof input, "number %d", i);
        n_wrong += !echoes(input);
    }
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, NULL);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK("many threads run children at once, each gets its own's output", n_wrong == 0);
}

static void test_leaks(void) {
    int n_before = count_descriptors();
    bool is_fine = true;
    for (int i = 0; i < N_RUNS; i++) {
        struct child_result result;
        is_fine &= run_in("true", (const char *const[]){NULL}, "", &result) == STATUS_OK;
        child_result_fini(&result);
    }
    CHECK("a thousand runs work", is_fine);
    CHECK("and leave no descriptor", count_descriptors() == n_before);
    CHECK("and no zombie", waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD);
}

// --- death ---

static bool is_gone(pid_t pid) {
    for (int i = 0; pid > 1 && i < 1000 && kill(pid, 0) == 0; i++)
        usleep(10000);
    return pid > 1 && kill(pid, 0) != 0;
}

// What a script has written into a file, once it has.
static pid_t read_pid(const char *path) {
    for (int i = 0; i < 1000; i++, usleep(10000)) {
        FILE *file = fopen(path, "r");
        long pid = 0;
        int n = file ? fscanf(file, "%ld.", &pid) : 0;
        if (file)
            fclose(file);
        if (n == 1)
            return (pid_t)pid;
    }
    return 0;
}

struct victim {
    char script[256];
    int status;
};

static void *run_victim(void *argument) {
    struct victim *victim = argument;
    struct child_result result;
    const char *const arguments[] = {"-c", victim->script, NULL};
    victim->status = run_in("sh", arguments, "", &result);
    child_result_fini(&result);
    return NULL;
}

static void test_deaths(void) {
    char folder[] = "/tmp/batch-child-XXXXXX", path[64], other[64];
    struct victim victim;
    pthread_t thread;
    CHECK("there is a folder", mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/one", folder);
    snprintf(other, sizeof other, "%s/two", folder);
    snprintf(victim.script, sizeof victim.script, "echo $$ >%s; exec sleep 1000", path);
    pid_t host = fork();
    if (host == 0) {
        run_victim(&victim);
        _exit(0);
    }
    pid_t program = read_pid(path);
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);
    CHECK("a program does not outlive its host", is_gone(program));
    snprintf(victim.script, sizeof victim.script, "echo $$ >%s; echo $PPID >%s; exec sleep 1000",
             path, other);
    unlink(path);
    pthread_create(&thread, NULL, run_victim, &victim);
    pid_t warden = read_pid(other);
    program = read_pid(path);
    kill(warden, SIGKILL);
    pthread_join(thread, NULL);
    CHECK("nor the process that watches it", is_gone(program));
    CHECK("whose death is told", victim.status == STATUS_NO_MEMORY);
    unlink(path);
    unlink(other);
    rmdir(folder);
}

int main(void) {
    test_waiting_hosts();
    test_host_child();
    test_closed_input();
    test_threads();
    test_leaks();
    test_deaths();
    return check_report();
}
