// SPDX-License-Identifier: MIT
//
// The sockets. None is inherited by a program that the process starts.

#include "bell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_name[] = "/luabatch-XXXXXX", socket_name[] = "/bell";

// Makes the folder and names the socket in it. errno ENAMETOOLONG: an address has 108 bytes.
static int make_folder(const char *below, struct sockaddr_un *address) {
    char *path = address->sun_path;
    size_t size = sizeof address->sun_path;
    address->sun_family = AF_UNIX;
    int len = snprintf(path, size, "%s%s", below, folder_name);
    if (len < 0 || (size_t)len + sizeof socket_name > size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!mkdtemp(path))
        return -1;
    memcpy(path + len, socket_name, sizeof socket_name);
    return 0;
}

static void remove_folder(struct sockaddr_un *address) {
    unlink(address->sun_path);
    *strrchr(address->sun_path, '/') = '\0';
    rmdir(address->sun_path);
}

static int listen_at(const struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    // The folder keeps others away as well, but what is seen of a socket should say so.
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 &&
        chmod(address->sun_path, 0600) == 0 && listen(fd, 1) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int bell_open_door(struct bell_door *out_door, struct fault *fault) {
    struct bell_door door = {.fd = -1};
    const char *below = getenv("TMPDIR");
    *out_door = door;
    if ((!below || !*below || make_folder(below, &door.address)) &&
        make_folder("/tmp", &door.address))
        return fault_set(fault, STATUS_STORE, "cannot make a folder for the bell: %s",
                         strerror(errno));
    door.fd = listen_at(&door.address);
    if (door.fd < 0) {
        fault_set(fault, STATUS_STORE, "cannot listen on %s: %s", door.address.sun_path,
                  strerror(errno));
        remove_folder(&door.address);
        return STATUS_STORE;
    }
    *out_door = door;
    return STATUS_OK;
}

void bell_close_door(struct bell_door *door) {
    if (door->fd < 0)
        return;
    close(door->fd);
    door->fd = -1;
    remove_folder(&door->address);
}

int bell_accept(const struct bell_door *door, int *out_fd, struct fault *fault) {
    *out_fd = -1;
    if (door->fd < 0)
        return fault_set(fault, STATUS_STORE, "the bell is not open");
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
        return fault_set(fault, STATUS_NOTHING, "nobody has connected to the bell");
    if (fd < 0)
        return fault_set(fault, STATUS_STORE, "cannot answer the bell: %s", strerror(errno));
    *out_fd = fd;
    return STATUS_OK;
}

bool bell_ring(int fd) {
    ssize_t n;
    do
        n = send(fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1 || errno == EAGAIN;
}

void bell_hang_up(int fd) {
    if (fd < 0)
        return;
    shutdown(fd, SHUT_RDWR);
    close(fd);
}
