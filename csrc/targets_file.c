// SPDX-License-Identifier: MIT
//
// The file is read and written by place, so that it has no position which two could disagree about.

#include "targets_file.h"

#include "fault_point.h"
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WINDOW_BYTES = 65536 };

// Not every file system has files that never get a name.
static int make_in(const char *folder) {
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    int len = snprintf(path, sizeof path, "%s/batch-XXXXXX", folder);
    if (len < 0 || (size_t)len >= sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

// In the order in which SQLite looks: /tmp, which may be memory, comes last.
static int make_file(void) {
    const char *const folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < sizeof folders / sizeof *folders; i++)
        if (folders[i] && folders[i][0])
            fd = make_in(folders[i]);
    return fd;
}

struct targets_file *targets_file_new(void) {
    struct targets_file *file = malloc(sizeof *file);
    if (!file)
        return NULL;
    *file = (struct targets_file){.fd = make_file()};
    buffer_init(&file->window);
    if (file->fd < 0) {
        free(file);
        return NULL;
    }
    return file;
}

void targets_file_free(struct targets_file *file) {
    if (!file)
        return;
    close(file->fd);
    buffer_fini(&file->window);
    free(file);
}

// Whether a read or a write has moved on by n bytes. To be interrupted is not to fail.
static bool has_moved(ssize_t n, size_t *place) {
    if (n > 0)
        *place += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

int targets_file_add(struct targets_file *file, const char *bytes, size_t len) {
    bool is_fine = fault_point_pass(FAULT_AT_WRITE) == FAULT_GO_ON;
    size_t n_written = 0;
    while (is_fine && n_written < len) {
        off_t at = (off_t)(file->len + n_written);
        is_fine = has_moved(pwrite(file->fd, bytes + n_written, len - n_written, at), &n_written);
    }
    if (!is_fine)
        return STATUS_STORE;
    file->len += len;
    return STATUS_OK;
}

static int load(struct targets_file *file, size_t offset, size_t len) {
    struct buffer *window = &file->window;
    window->len = 0;
    char *place = buffer_reserve(window, len);
    if (!place) {
        buffer_clear(window);
        return STATUS_NO_MEMORY;
    }
    bool is_fine = fault_point_pass(FAULT_AT_READ) == FAULT_GO_ON;
    size_t n_read = 0;
    while (is_fine && n_read < len) {
        off_t at = (off_t)(offset + n_read);
        is_fine = has_moved(pread(file->fd, place + n_read, len - n_read, at), &n_read);
    }
    if (!is_fine)
        return STATUS_STORE;
    file->window_at = offset;
    window->len = len;
    return STATUS_OK;
}

int targets_file_look(struct targets_file *file, size_t offset, size_t wanted,
                      const char **out_bytes, size_t *out_len) {
    const struct buffer *window = &file->window;
    size_t left = file->len - offset;
    if (wanted < WINDOW_BYTES / 16)
        wanted = WINDOW_BYTES / 16;
    if (wanted > left)
        wanted = left;
    if (offset < file->window_at || offset + wanted > file->window_at + window->len) {
        size_t len = wanted < WINDOW_BYTES ? WINDOW_BYTES : wanted;
        int status = load(file, offset, len < left ? len : left);
        if (status)
            return status;
    }
    *out_bytes = window->bytes + (offset - file->window_at);
    *out_len = window->len - (offset - file->window_at);
    return STATUS_OK;
}
