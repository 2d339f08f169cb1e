// SPDX-License-Identifier: MIT
//
// Paths, URIs, and the nameless owners file of a store in memory.

#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINKS = 40 };  // on the way to one file, as Linux has it

// SQLite's memdb file system shares a database between the connections of a process when its name
// begins with a slash. The number keeps two stores of one process apart.
static _Atomic unsigned n_memory_places;

static int no_memory(struct place *place, struct fault *fault) {
    place_close(place);
    return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
}

static int open_memory(struct place *place, struct fault *fault) {
    place->is_memory = true;
    place->path = strdup(":memory:");
    if (!place->path)
        return no_memory(place, fault);
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

static int refuse(struct place *place, const char *path, const char *why, struct fault *fault) {
    place_close(place);
    return fault_set(fault, STATUS_STORE, "cannot open the store %s: %s", path, why);
}

// Where a link leads that lies in the given folder; NULL with errno EINVAL when it is none.
static char *read_link(const char *link, const char *folder) {
    char target[PATH_MAX], *path;
    ssize_t len = readlink(link, target, sizeof target - 1);
    if (len < 0)
        return NULL;
    target[len] = '\0';
    int n =
        target[0] == '/' ? asprintf(&path, "%s", target) : asprintf(&path, "%s/%s", folder, target);
    return n < 0 ? NULL : path;
}

// One step on the way to a file that is not there yet: its folder without links, and then either
// its name there, which is the end, or what the link of that name says.
static char *step_on(const char *path, bool *out_is_end) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *given = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
    char *folder = given ? realpath(given, NULL) : NULL, *joined = NULL;
    free(given);
    if (!folder)
        return NULL;
    char *link = NULL;
    if (asprintf(&joined, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name) < 0)
        joined = NULL;
    else
        link = read_link(joined, folder);
    free(folder);
    *out_is_end = joined && !link;
    if (*out_is_end)
        return joined;
    free(joined);
    return link;
}

// The path without links, also of what is not there yet; NULL with errno.
static char *resolve(const char *path) {
    char *resolved = realpath(path, NULL);
    if (resolved || errno != ENOENT)
        return resolved;
    bool is_end = false;
    char *at = strdup(path);
    for (int n_links = 0; at && !is_end; n_links++) {
        char *next = n_links <= MAX_LINKS ? step_on(at, &is_end) : NULL;
        if (n_links > MAX_LINKS)
            errno = ELOOP;
        free(at);
        at = next;
    }
    return at;
}

// Why a file cannot be a store; NULL: it can.
static const char *why_not(const char *path) {
    struct stat found;
    struct statx more;
    if (stat(path, &found) < 0)
        return NULL;
    if (S_ISDIR(found.st_mode))
        return "it is a folder";
    if (!S_ISREG(found.st_mode))
        return "it is no regular file";
    // Opened by two names SQLite writes two logs, each of which lacks what the other one has.
    if (found.st_nlink > 1)
        return "it has another name by a hard link";
    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &more) == 0 &&
        more.stx_attributes & more.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return "it is mounted without its folder";
    return NULL;
}

static int open_file(const char *path, struct place *place, struct fault *fault) {
    errno = 0;
    place->path = resolve(path);
    if (!place->path && (errno == 0 || errno == ENOMEM))
        return no_memory(place, fault);
    if (!place->path)
        return refuse(place, path, strerror(errno), fault);
    const char *why = why_not(place->path);
    return why ? refuse(place, path, why, fault) : STATUS_OK;
}

int place_open(const char *path, struct place *out_place, struct fault *fault) {
    memset(out_place, 0, sizeof *out_place);
    out_place->memory_fd = -1;
    bool is_memory = strcmp(path, ":memory:") == 0;
    int status = is_memory ? open_memory(out_place, fault) : open_file(path, out_place, fault);
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
