// SPDX-License-Identifier: MIT
//
// Runs a target on each file of a folder: what fuzzing has found stays mended, without a fuzzer.
// Usage: replay FOLDER

#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BYTES = 1 << 20 };

static char path[4096];  // of the file that is tried

void fuzz_fail(const char *file, int line, const char *claim) {
    printf("%s:%d: not so: %s, with %s\n", file, line, claim, path);
    fflush(stdout);
    abort();
}

// On the heap and no longer than the input, so that a sanitizer sees who reads behind it.
static int replay(void) {
    FILE *file = fopen(path, "rb");
    char *room = malloc(MAX_BYTES);
    if (!file || !room)
        return -1;
    size_t len = fread(room, 1, MAX_BYTES, file);
    fclose(file);
    char *bytes = realloc(room, len ? len : 1);
    fuzz_one(bytes, len);
    free(bytes);
    return 0;
}

int main(int argc, char **argv) {
    int n_passed = 0, n_failed = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (replay() == 0)
            n_passed++;
        else
            n_failed++;
    }
    closedir(folder);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
