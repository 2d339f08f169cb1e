// SPDX-License-Identifier: MIT
//
// The fault point of memory. The linker puts these in the place of the C library's functions in the
// core's own files (--wrap, see the Makefile), and nowhere else: neither the host's memory nor
// Lua's passes here. SQLite's does by store_faults.c.

#include "fault_point.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *bytes, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
char *__real_realpath(const char *path, char *out_path);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *bytes, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
char *__wrap_realpath(const char *path, char *out_path);
int __wrap_asprintf(char **out_text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool is_refused(void) {
    if (!fault_point_pass(FAULT_AT_ALLOCATION))
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size) {
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *bytes, size_t size) {
    return is_refused() ? NULL : __real_realloc(bytes, size);
}

char *__wrap_strdup(const char *text) {
    return is_refused() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len) {
    return is_refused() ? NULL : __real_strndup(text, len);
}

char *__wrap_realpath(const char *path, char *out_path) {
    return is_refused() ? NULL : __real_realpath(path, out_path);
}

int __wrap_asprintf(char **out_text, const char *format, ...) {
    if (is_refused())
        return -1;
    va_list args;
    va_start(args, format);
    int n = vasprintf(out_text, format, args);
    va_end(args);
    return n;
}
