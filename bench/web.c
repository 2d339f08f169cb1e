// SPDX-License-Identifier: MIT
//
// A web server that costs next to nothing: the path's number chooses one of the files, all are in
// memory, a thread serves a connection until it closes.
// Usage: web FILE...; prints "listening on PORT" and goes on until it is ended.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_ANSWER = 1 << 16, MAX_REQUEST = 1 << 14 };

struct answer {
    char *bytes;
    size_t len;
};

static struct answer *answers;
static int n_answers;

static void load(const char *path, struct answer *answer) {
    char *body = malloc(MAX_ANSWER);
    FILE *file = fopen(path, "r");
    size_t len = body && file ? fread(body, 1, MAX_ANSWER, file) : 0;
    answer->bytes = malloc(MAX_ANSWER + 256);
    if (!len || !answer->bytes)
        exit(1);
    int head = sprintf(answer->bytes,
                       "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       len);
    memcpy(answer->bytes + head, body, len);
    answer->len = (size_t)head + len;
    fclose(file);
    free(body);
}

static const struct answer *choose(const char *request) {
    const char *number = strpbrk(request, "0123456789\r");
    return &answers[(number ? strtoul(number, NULL, 10) : 0) % (unsigned long)n_answers];
}

// Reads a request without a body. False: the client has gone.
static int read_request(int fd, char *request) {
    size_t len = 0;
    request[0] = '\0';
    while (!strstr(request, "\r\n\r\n")) {
        ssize_t n = len < MAX_REQUEST ? recv(fd, request + len, MAX_REQUEST - len, 0) : 0;
        if (n <= 0)
            return 0;
        len += (size_t)n;
        request[len] = '\0';
    }
    return 1;
}

static void *serve(void *context) {
    int fd = (int)(intptr_t)context;
    char request[MAX_REQUEST + 1];
    while (read_request(fd, request)) {
        const struct answer *answer = choose(request);
        if (send(fd, answer->bytes, answer->len, MSG_NOSIGNAL) != (ssize_t)answer->len)
            break;
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    answers = calloc((size_t)argc, sizeof *answers);
    for (n_answers = 0; answers && n_answers < argc - 1; n_answers++)
        load(argv[n_answers + 1], &answers[n_answers]);
    if (n_answers == 0 || bind(listening, (struct sockaddr *)&address, len) ||
        listen(listening, 128) || getsockname(listening, (struct sockaddr *)&address, &len))
        return 1;
    printf("listening on %d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        pthread_t thread;
        int fd = accept(listening, NULL, NULL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (fd >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}
