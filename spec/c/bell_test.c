// SPDX-License-Identifier: MIT
//
// The bell of a list of events: a byte for each time that the list stops being empty.

#include "events.h"

#include "check.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ALL = (1 << EVENT_N_KINDS) - 1 };

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

// The number of bytes that wait; -1: the other side has hung up.
static int read_waiting(int fd) {
    char bytes[64];
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return n > 0 ? (int)n : n == 0 ? -1 : 0;
}

static void add(struct events *events) {
    struct event event = {.kind = EVENT_DEPTH};
    events_add(events, &event);
}

static void take_all(struct events *events) {
    for (struct event *event; (event = events_take(events));)
        free(event);
}

// Opens, connects, answers. Returns the program's end of it.
static int answered(struct events *events) {
    char path[EVENTS_PATH_SIZE];
    struct fault fault;
    if (events_open_bell(events, path, &fault))
        return -1;
    int fd = connect_to(path);
    CHECK("it is answered", events_answer_bell(events, &fault) == STATUS_OK);
    return fd;
}

static void test_door(void) {
    struct events *events;
    struct fault fault;
    struct stat info;
    char path[EVENTS_PATH_SIZE], folder[EVENTS_PATH_SIZE];
    events_open(ALL, &events);
    CHECK("there is none to answer", events_answer_bell(events, &fault) == STATUS_STORE);
    CHECK("a bell opens", events_open_bell(events, path, &fault) == STATUS_OK);
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    CHECK("in a private folder", stat(folder, &info) == 0 && (info.st_mode & 0777) == 0700);
    CHECK("nobody has connected", events_answer_bell(events, &fault) == STATUS_NOTHING);
    int fd = connect_to(path);
    CHECK("it can be connected to", fd >= 0);
    CHECK("and then answered", events_answer_bell(events, &fault) == STATUS_OK);
    CHECK("which removes the folder", stat(folder, &info) < 0);
    CHECK("and is silent", read_waiting(fd) == 0);
    CHECK("another one opens", events_open_bell(events, path, &fault) == STATUS_OK);
    events_close(events);
    CHECK("the end hangs up", read_waiting(fd) == -1);
    *strrchr(path, '/') = '\0';
    CHECK("and removes what nobody answered", stat(path, &info) < 0);
    close(fd);
}

static void test_bytes(void) {
    struct events *events;
    events_open(ALL, &events);
    add(events);
    int fd = answered(events);
    CHECK("what waits already is told at once", read_waiting(fd) == 1);
    add(events);
    CHECK("but not again while it waits", read_waiting(fd) == 0);
    take_all(events);
    add(events);
    take_all(events);
    add(events);
    CHECK("each time that the list stops being empty", read_waiting(fd) == 2);
    take_all(events);
    CHECK("and never else", read_waiting(fd) == 0);
    events_ring(events);
    CHECK("or when the program wants it", read_waiting(fd) == 1);
    close(fd);
    events_close(events);
}

static void test_replaced(void) {
    struct events *events;
    events_open(ALL, &events);
    events_ring(events);
    int first = answered(events);
    CHECK("a ring that came too early is heard", read_waiting(first) == 1);
    events_ring(events);
    int second = answered(events);
    CHECK("nor is one lost that the former connection got", read_waiting(second) == 1);
    CHECK("which ends", read_waiting(first) == 1 && read_waiting(first) == -1);
    close(first);
    close(second);
    events_ring(events);
    int third = answered(events);
    CHECK("one that a connection at its end could not hear is", read_waiting(third) == 1);
    close(third);
    add(events);
    take_all(events);
    CHECK("a connection that went away ends nothing else", !events_take(events));
    events_close(events);
}

static void test_flags(void) {
    struct events *events;
    struct fault fault;
    char path[EVENTS_PATH_SIZE];
    events_open(ALL, &events);
    int lowest = dup(0);
    close(lowest);
    events_open_bell(events, path, &fault);
    CHECK("a program that is started does not inherit the door",
          fcntl(lowest, F_GETFD) & FD_CLOEXEC);
    int fd = connect_to(path);
    events_answer_bell(events, &fault);
    int highest = dup(0);
    bool is_inherited = false;
    for (int i = lowest; i < highest; i++)
        is_inherited |= fcntl(i, F_GETFD) == 0;
    CHECK("nor the connection", !is_inherited);
    for (int i = 0; i < 100000; i++)
        events_ring(events);
    CHECK("a reader that sleeps blocks nobody", read_waiting(fd) > 0);
    close(highest);
    close(fd);
    events_close(events);
}

static void test_long_folder(void) {
    struct events *events;
    struct fault fault;
    char path[EVENTS_PATH_SIZE], folder[PATH_MAX];
    memset(folder, 'x', sizeof folder);
    folder[0] = '/';
    folder[200] = '\0';
    setenv("TMPDIR", folder, 1);
    events_open(ALL, &events);
    CHECK("a folder that no address has room for is done without",
          events_open_bell(events, path, &fault) == STATUS_OK && strncmp(path, "/tmp/", 5) == 0);
    unsetenv("TMPDIR");
    events_close(events);
}

enum { WRITERS = 4, EACH = 3000 };

static void *write_events(void *argument) {
    for (int i = 0; i < EACH; i++)
        add(argument);
    return NULL;
}

// As an event loop does it: wait for a byte, take all, wait again; now and then by a new
// connection.
static void test_threads(void) {
    struct events *events;
    pthread_t threads[WRITERS];
    struct timeval patience = {.tv_sec = 5};
    events_open(ALL, &events);
    int n = 0, n_reads = 0, fd = answered(events);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_events, events);
    for (char byte; n < WRITERS * EACH; n_reads++) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (recv(fd, &byte, 1, 0) != 1)
            break;
        for (struct event *event; (event = events_take(events)); n++)
            free(event);
        if (n_reads % 16 == 15) {
            int next = answered(events);
            close(fd);
            fd = next;
        }
    }
    CHECK("no wake-up is missed", n == WRITERS * EACH);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    close(fd);
    events_close(events);
}

int main(void) {
    test_door();
    test_bytes();
    test_replaced();
    test_flags();
    test_long_folder();
    test_threads();
    return check_report();
}
