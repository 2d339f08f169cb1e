// SPDX-License-Identifier: MIT
//
// The reserve's file: its size is the space it holds, allocated in steps.

#include "reserve.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP_BYTES = 64 * 1024 };

int reserve_init(struct reserve *reserve, const struct place *place) {
    *reserve = (struct reserve){.path = NULL, .lent_fd = -1};
    if (place->is_memory)
        return STATUS_OK;
    if (asprintf(&reserve->path, "%s.reserve", place->path) >= 0)
        return STATUS_OK;
    reserve->path = NULL;
    return STATUS_NO_MEMORY;
}

void reserve_fini(struct reserve *reserve) {
    free(reserve->path);
    reserve->path = NULL;
}

static int open_file(const struct reserve *reserve, int flags) {
    return reserve->path ? open(reserve->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600) : -1;
}

static void extend(int fd) {
    struct stat found;
    if (fstat(fd, &found) < 0)
        return;
    off_t n_bytes = found.st_size;
    while (n_bytes < BATCH_RESERVE_BYTES && posix_fallocate(fd, n_bytes, STEP_BYTES) == 0)
        n_bytes += STEP_BYTES;
}

void reserve_fill(const struct reserve *reserve) {
    int fd = open_file(reserve, O_CREAT);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)  // else somebody needs the room just now
        extend(fd);
    close(fd);
}

bool reserve_lend(struct reserve *reserve) {
    struct stat found;
    int fd = open_file(reserve, 0);
    if (fd < 0)
        return false;
    // Without waiting: at worst another process takes it back a moment too early.
    int locked = flock(fd, LOCK_EX | LOCK_NB);
    (void)locked;
    bool has_room = fstat(fd, &found) == 0 && found.st_size > 0 && ftruncate(fd, 0) == 0;
    if (has_room)
        reserve->lent_fd = fd;
    else
        close(fd);
    return has_room;
}

void reserve_take_back(struct reserve *reserve) {
    if (reserve->lent_fd < 0)
        return;
    extend(reserve->lent_fd);
    close(reserve->lent_fd);
    reserve->lent_fd = -1;
}
