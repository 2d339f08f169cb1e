// SPDX-License-Identifier: MIT
//
// The floor of reading HTML: gumbo's parser alone, with its tree thrown away.
// Usage: floor_html SECONDS FILE...; prints the bytes of all rounds and the seconds that they took.

#include <gumbo.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_FILES = 16, MAX_BYTES = 1 << 22 };

struct page {
    char *bytes;
    size_t len;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int read_page(const char *path, struct page *page) {
    FILE *file = fopen(path, "r");
    page->bytes = malloc(MAX_BYTES);
    page->len = file && page->bytes ? fread(page->bytes, 1, MAX_BYTES, file) : 0;
    if (file)
        fclose(file);
    return page->len ? 0 : -1;
}

int main(int argc, char **argv) {
    struct page pages[MAX_FILES];
    int n_pages = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 0, count = 0, began = now();
    for (int i = 2; i < argc && n_pages < MAX_FILES; i++)
        if (read_page(argv[i], &pages[n_pages++]))
            return fprintf(stderr, "cannot read %s\n", argv[i]), 1;
    do {
        for (int i = 0; i < n_pages; i++) {
            GumboOutput *output =
                gumbo_parse_with_options(&kGumboDefaultOptions, pages[i].bytes, pages[i].len);
            gumbo_destroy_output(&kGumboDefaultOptions, output);
            count += (double)pages[i].len;
        }
    } while (n_pages && now() - began < seconds);
    printf("count %.9g\nseconds %.9g\n", count, now() - began);
    for (int i = 0; i < n_pages; i++)
        free(pages[i].bytes);
    return 0;
}
