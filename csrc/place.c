// SPDX-License-Identifier: MIT
//
// Paths, URIs, and the nameless owners file of a store in memory.

#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// SQLite's memdb file system shares a database between the connections of a process when its name
// begins with a slash. The number keeps two stores of one process apart.
static _Atomic unsigned n_memory_places;

static int no_memory(struct place *place, struct fault *fault) {
    place_close(place);
    return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
}

static int open_memory(struct place *place, struct fault *fault) {
    place->is_memory = true;
    unsigned number = atomic_fetch_add(&n_memory_places, 1);
    if (asprintf(&place->uri, "file:/batch-%u?vfs=memdb", number) < 0) {
        place->uri = NULL;
        return no_memory(place, fault);
    }
    place->memory_fd = memfd_create("batch-owners", MFD_CLOEXEC);
    if (place->memory_fd < 0) {
        place_close(place);
        return fault_set(fault, STATUS_STORE, "cannot make a store in memory: %s", strerror(errno));
    }
    return STATUS_OK;
}

// The descriptor's own path opens a second description of the nameless file: a lock is seen only
// through another one.
static int name_owners(struct place *place, struct fault *fault) {
    int n = place->is_memory ? asprintf(&place->owners, "/proc/self/fd/%d", place->memory_fd)
                             : asprintf(&place->owners, "%s.owners", place->path);
    if (n >= 0)
        return STATUS_OK;
    place->owners = NULL;
    return no_memory(place, fault);
}

// A folder or a device is never a store, and no owners file shall come to lie beside one.
static int refuse_other_kinds(struct place *place, struct fault *fault) {
    struct stat found;
    if (stat(place->path, &found) < 0 || S_ISREG(found.st_mode))
        return STATUS_OK;
    fault_set(fault, STATUS_STORE, "cannot open the store %s: %s", place->path,
              S_ISDIR(found.st_mode) ? "it is a folder" : "it is no regular file");
    place_close(place);
    return STATUS_STORE;
}

int place_open(const char *path, struct place *out_place, struct fault *fault) {
    memset(out_place, 0, sizeof *out_place);
    out_place->memory_fd = -1;
    out_place->path = strdup(path);
    if (!out_place->path)
        return no_memory(out_place, fault);
    bool is_memory = strcmp(path, ":memory:") == 0;
    int status = is_memory ? open_memory(out_place, fault) : refuse_other_kinds(out_place, fault);
    return status ? status : name_owners(out_place, fault);
}

int place_copy(const struct place *place, struct place *out_place, struct fault *fault) {
    memset(out_place, 0, sizeof *out_place);
    out_place->memory_fd = -1;
    out_place->is_memory = place->is_memory;
    out_place->path = strdup(place->path);
    out_place->uri = place->uri ? strdup(place->uri) : NULL;
    if (!out_place->path || (place->uri && !out_place->uri))
        return no_memory(out_place, fault);
    if (place->is_memory) {
        out_place->memory_fd = fcntl(place->memory_fd, F_DUPFD_CLOEXEC, 0);
        if (out_place->memory_fd < 0) {
            place_close(out_place);
            return fault_set(fault, STATUS_STORE, "cannot share a store in memory: %s",
                             strerror(errno));
        }
    }
    return name_owners(out_place, fault);
}

void place_close(struct place *place) {
    if (place->path && place->is_memory && place->memory_fd >= 0)
        close(place->memory_fd);
    free(place->path);
    free(place->uri);
    free(place->owners);
    memset(place, 0, sizeof *place);
    place->memory_fd = -1;
}
