// SPDX-License-Identifier: MIT
//
// Owners: who lives and who is dead, across processes and forks; registers; the set-up lock.

#include "owner.h"

#include "check.h"
#include "status.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/batch-owner-XXXXXX";
static struct place place;
static struct fault fault;

static struct owners *open_owners(void) {
    struct owners *owners;
    return owners_open(&place, &owners, &fault) ? NULL : owners;
}

static void test_life(void) {
    struct owners *one = open_owners(), *other = open_owners();
    CHECK("an owners file opens, twice", one && other);
    CHECK("nobody lives at first", !owners_is_alive(one, 1) && !owners_is_alive(other, 1));
    CHECK("one becomes an owner", owners_hold(one, 1, 0, &fault) == STATUS_OK);
    CHECK("it lives for others and for itself",
          owners_is_alive(other, 1) && owners_is_alive(one, 1));
    CHECK("its neighbours do not", !owners_is_alive(other, 0) && !owners_is_alive(other, 2));
    CHECK("two at once live", owners_hold(other, 2, 1, &fault) == STATUS_OK &&
                                  owners_is_alive(one, 2) && owners_is_alive(one, 1));
    owners_close(one);
    CHECK("a closed one is dead", !owners_is_alive(other, 1));
    owners_close(other);
}

static void test_setup(void) {
    struct owners *one = open_owners(), *other = open_owners();
    CHECK("one sets up", owners_begin_setup(one, 0, &fault) == STATUS_OK);
    CHECK("another must wait", owners_begin_setup(other, 3, &fault) == STATUS_LOCKED);
    CHECK_TEXT("the store is being set up by another process", fault.text);
    owners_end_setup(one);
    CHECK("until it has ended", owners_begin_setup(other, 0, &fault) == STATUS_OK);
    owners_close(other);  // without ending it
    CHECK("or is gone", owners_begin_setup(one, 0, &fault) == STATUS_OK);
    owners_close(one);
}

static void test_register(void) {
    struct owners *one = open_owners(), *other = open_owners();
    struct in_flight seen[4];
    owners_hold(one, 1, 5, &fault);
    owners_note(one, 0, 11, 3);
    owners_note(one, OWNER_MAX_IN_FLIGHT - 1, 12, INT64_C(1) << 40);
    owners_note(one, OWNER_MAX_IN_FLIGHT, 13, 0);  // has no place: is not noted
    CHECK("what is in flight can be read", owners_read(other, 5, seen, 4) == 2);
    CHECK("first place", seen[0].job_key == 11 && seen[0].idx == 3);
    CHECK("last place", seen[1].job_key == 12 && seen[1].idx == INT64_C(1) << 40);
    CHECK("as much as fits", owners_read(other, 5, seen, 1) == 1);
    CHECK("another slot is another's", owners_read(other, 4, seen, 4) == 0);
    owners_note(one, 0, 0, 0);
    CHECK("an emptied place is empty", owners_read(other, 5, seen, 4) == 1);
    owners_close(one);
    CHECK("what was in flight outlives its owner", owners_read(other, 5, seen, 4) == 1);
    owners_hold(other, 2, 5, &fault);
    CHECK("a new owner of the slot begins empty", owners_read(other, 5, seen, 4) == 0);
    owners_close(other);
}

static void test_card(void) {
    struct owners *one = open_owners(), *other = open_owners();
    struct owner_card card = {.pid = 7, .caps = {1, 2, 3}}, seen;
    owners_hold(one, 1, 0, &fault);
    owners_hold(other, 2, 1, &fault);
    CHECK("who shows nothing cannot be seen", !owners_see(other, 1, 0, &seen));
    owners_show(one, &card);
    CHECK("a card can be seen", owners_see(other, 1, 0, &seen) && seen.pid == 7);
    CHECK("with the caps", seen.caps.targets_per_job == 1 && seen.caps.jobs_per_caller == 2 &&
                               seen.caps.jobs_total == 3);
    CHECK("not by another number", !owners_see(other, 3, 0, &seen));
    CHECK("nor where no file is", !owners_see(other, 1, 1000, &seen));
    owners_note(one, OWNER_MAX_IN_FLIGHT - 1, 12, 0);
    CHECK("the register is apart", owners_see(other, 1, 0, &seen) && seen.pid == 7);
    owners_close(one);
    one = open_owners();
    owners_hold(one, 3, 0, &fault);
    CHECK("the slot's next owner shows nothing", !owners_see(other, 1, 0, &seen));
    owners_close(one);
    owners_close(other);
}

static uint64_t sum_of_all(struct owners *owners) {
    struct figures sum;
    CHECK("there is a sum", owners_sum(owners, &sum) == STATUS_OK);
    return sum.targets_done;
}

static void count(struct owners *owners, uint64_t n_targets) {
    struct figures figures;
    figures_init(&figures);
    figures.targets_done = n_targets;
    owners_count(owners, &figures);
}

static void test_figures(void) {
    struct owners *one = open_owners(), *other = open_owners();
    CHECK("nobody has counted anything", sum_of_all(one) == 0);
    count(one, 1);
    CHECK("who is no owner is not counted", sum_of_all(one) == 0);
    owners_hold(one, 1, 0, &fault);
    owners_hold(other, 2, 1, &fault);
    count(one, 3);
    count(other, 4);
    CHECK("all owners are", sum_of_all(one) == 7 && sum_of_all(other) == 7);
    count(one, 5);
    CHECK("by what they have counted last", sum_of_all(other) == 9);
    owners_close(one);
    CHECK("one that is gone as well", sum_of_all(other) == 9);
    owners_inherit(other, 0);
    CHECK("and when its slot is free", sum_of_all(other) == 9);
    owners_inherit(other, 0);
    CHECK("once, whoever has found it dead", sum_of_all(other) == 9);
    one = open_owners();
    owners_hold(one, 3, 0, &fault);
    CHECK("the slot's next owner begins at none", sum_of_all(other) == 9);
    count(one, 1);
    CHECK("and adds its own", sum_of_all(other) == 10);
    owners_inherit(one, 0);
    owners_inherit(other, 1);
    owners_close(one);
    owners_close(other);
    one = open_owners();
    CHECK("they outlive all", sum_of_all(one) == 10);
    owners_close(one);
}

enum { LIVES = 300 };

static void *live_and_die(void *argument) {
    (void)argument;
    for (int i = 0; i < LIVES; i++) {
        struct owners *owners = open_owners();
        owners_hold(owners, 1, 0, &fault);
        for (uint64_t n = 1; n <= 5; n++)
            count(owners, n);
        owners_inherit(owners, 0);
        owners_close(owners);
    }
    return NULL;
}

static void test_figures_of_many(void) {
    struct owners *reader = open_owners();
    pthread_t thread;
    uint64_t first = sum_of_all(reader), last = first;
    bool is_ascending = true;
    struct figures sum;
    pthread_create(&thread, NULL, live_and_die, NULL);
    while (is_ascending && last < first + 5 * LIVES && owners_sum(reader, &sum) == STATUS_OK) {
        is_ascending = sum.targets_done >= last;
        last = sum.targets_done;
    }
    pthread_join(thread, NULL);
    CHECK("they never go back", is_ascending);
    CHECK("and none is lost", sum_of_all(reader) == first + 5 * LIVES);
    owners_close(reader);
}

static void test_announce(void) {
    struct owners *one = open_owners(), *other = open_owners();
    uint64_t before = owners_announced(other);
    owners_announce(one);
    CHECK("an announcement is seen by all", owners_announced(other) == before + 1);
    owners_close(one);
    owners_close(other);
}

static int start(void (*run)(int write_fd), pid_t *out_pid) {
    int fds[2];
    char byte;
    if (pipe(fds))
        return -1;
    *out_pid = fork();
    if (*out_pid == 0) {
        run(fds[1]);
        pause();
        _exit(0);
    }
    close(fds[1]);
    CHECK("the other process is as it should be", read(fds[0], &byte, 1) == 1);
    return fds[0];
}

static void tell(int fd) {
    ssize_t n = write(fd, "x", 1);
    (void)n;
}

static void hold_owner(int write_fd) {
    struct owners *owners = open_owners();
    owners_hold(owners, 7, 0, &fault);
    owners_note(owners, 0, 99, 1);
    tell(write_fd);
}

static void kill_and_wait(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_kill(void) {
    struct owners *owners = open_owners();
    struct in_flight seen[4];
    pid_t pid;
    close(start(hold_owner, &pid));
    CHECK("an owner in another process lives", owners_is_alive(owners, 7));
    kill(pid, SIGSTOP);
    CHECK("also when it is stopped", owners_is_alive(owners, 7));
    kill_and_wait(pid);
    CHECK("a killed one is dead at once", !owners_is_alive(owners, 7));
    CHECK("what it had in flight is known",
          owners_read(owners, 0, seen, 4) == 1 && seen[0].job_key == 99);
    owners_close(owners);
}

static uint32_t heard_before;

static void hear(int write_fd) {
    struct owners *owners = open_owners();
    tell(write_fd);
    while (owners_n_rings(owners) == heard_before)
        owners_wait(owners, heard_before);
    tell(write_fd);
}

static void test_bell(void) {
    struct owners *owners = open_owners();
    char byte;
    pid_t pid;
    heard_before = owners_n_rings(owners);
    int fd = start(hear, &pid);
    usleep(20000);  // it may sleep by now
    owners_ring(owners);
    CHECK("a ring wakes another process", read(fd, &byte, 1) == 1);
    owners_wait(owners, heard_before);
    CHECK("who comes late does not wait", owners_n_rings(owners) == heard_before + 1);
    kill_and_wait(pid);
    close(fd);
    owners_close(owners);
}

static struct owners *inherited;
static unsigned generation_before;
static bool closes_inherited;

static void hold_and_fork(int write_fd) {
    inherited = open_owners();
    owners_hold(inherited, 8, 0, &fault);
    generation_before = owners_fork_generation();
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        bool is_right = owners_fork_generation() == generation_before + 1;
        struct owners *own = open_owners();
        is_right = is_right && own && owners_is_alive(own, 8);
        if (closes_inherited)
            owners_close(inherited);  // forgets; the parent's lock stays
        is_right = is_right && owners_is_alive(own, 8);
        owners_close(own);
        if (is_right)
            tell(write_fd);
        close(write_fd);
        while (getppid() == parent)
            usleep(1000);
        usleep(300000);  // outlives its parent
        _exit(0);
    }
    close(write_fd);
}

static void test_fork(bool is_inherited_closed) {
    closes_inherited = is_inherited_closed;
    struct owners *owners = open_owners();
    pid_t pid;
    int fd = start(hold_and_fork, &pid);
    CHECK("the parent lives while its child does", owners_is_alive(owners, 8));
    kill_and_wait(pid);
    CHECK("a child does not keep its dead parent alive", !owners_is_alive(owners, 8));
    close(fd);
    owners_close(owners);
}

static void test_refusal(void) {
    struct place nowhere;
    struct owners *owners;
    char path[64], store[96];
    snprintf(path, sizeof path, "%s/sub", folder);
    snprintf(store, sizeof store, "%s/gone.db", path);
    mkdir(path, 0700);
    place_open(store, &nowhere, &fault);
    rmdir(path);
    CHECK("a folder that is gone is refused",
          owners_open(&nowhere, &owners, &fault) == STATUS_STORE && !owners);
    CHECK("by name", strstr(fault.text, "/sub/gone.db") != NULL);
    place_close(&nowhere);
}

int main(void) {
    char path[64], command[96];
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/batch.db", folder);
    place_open(path, &place, &fault);
    test_life();
    test_setup();
    test_register();
    test_card();
    test_figures();
    test_figures_of_many();
    test_announce();
    test_kill();
    test_bell();
    test_fork(true);
    test_fork(false);
    test_refusal();
    place_close(&place);
    place_open(":memory:", &place, &fault);
    test_life();
    test_register();
    place_close(&place);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return check_report() | (system(command) != 0);
}
