// SPDX-License-Identifier: MIT
//
// One store has one path, whatever name it was opened by, and what could have two is refused.

#include "place.h"

#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/batch-place-XXXXXX";
static struct fault fault;

static void make_file(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK("a file is made", fd >= 0);
    close(fd);
}

static void make_link(const char *target, const char *path) {
    CHECK("a link is made", symlink(target, path) == 0);
}

// Whether the name, seen from the test's folder, leads to that path in it.
static bool leads_to(const char *name, const char *expected) {
    struct place place;
    char path[256], owners[300];
    if (!CHECK("a place opens", place_open(name, &place, &fault) == STATUS_OK)) {
        puts(fault.text);
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", folder, expected);
    snprintf(owners, sizeof owners, "%s.owners", path);
    bool does = CHECK_TEXT(path, place.path) & CHECK_TEXT(owners, place.owners);
    place_close(&place);
    return does;
}

// Whether the name is refused with that reason, and named.
static bool is_refused(const char *name, const char *reason) {
    struct place place;
    bool is = place_open(name, &place, &fault) == STATUS_STORE && strstr(fault.text, reason) &&
              strstr(fault.text, name);
    if (!is)
        printf("%s: %s\n", name, fault.text);
    CHECK("what was refused has left nothing", !place.path && !place.owners && !place.uri);
    place_close(&place);
    return is;
}

static void test_names(void) {
    char absolute[256];
    snprintf(absolute, sizeof absolute, "%s//sub/./../sub/real.db", folder);
    mkdir("sub", 0700);
    make_file("sub/real.db");
    CHECK("a relative path becomes absolute", leads_to("sub/real.db", "sub/real.db"));
    CHECK("detours are left out", leads_to("./sub/..//sub/./real.db", "sub/real.db"));
    CHECK("of an absolute path too", leads_to(absolute, "sub/real.db"));
    CHECK("a file need not be there", leads_to("new.db", "new.db"));
    CHECK("nor in another folder", leads_to("sub/../sub/new.db", "sub/new.db"));
}

static void test_links(void) {
    char absolute[256];
    snprintf(absolute, sizeof absolute, "%s/sub/real.db", folder);
    mkdir("links", 0700);
    make_link("../sub/real.db", "links/relative.db");
    make_link(absolute, "links/absolute.db");
    make_link("relative.db", "links/twice.db");
    make_link("sub", "folder");
    make_link("../folder", "links/folder");
    CHECK("a link is followed", leads_to("links/relative.db", "sub/real.db"));
    CHECK("from the root", leads_to("links/absolute.db", "sub/real.db"));
    CHECK("to a link", leads_to("links/twice.db", "sub/real.db"));
    CHECK("so is one to a folder", leads_to("folder/real.db", "sub/real.db"));
    CHECK("on the way to another", leads_to("links/folder/real.db", "sub/real.db"));
    CHECK("to a file that is not there", leads_to("links/folder/new.db", "sub/new.db"));
}

static void test_links_to_nothing(void) {
    char absolute[256];
    snprintf(absolute, sizeof absolute, "%s/sub/new.db", folder);
    make_link("../sub/new.db", "links/new.db");
    make_link(absolute, "links/new-absolute.db");
    make_link("../links/new.db", "sub/new-twice.db");
    make_link("../nowhere/new.db", "links/lost.db");
    make_link("round.db", "round.db");
    CHECK("a link names the file that will be made", leads_to("links/new.db", "sub/new.db"));
    CHECK("from the root", leads_to("links/new-absolute.db", "sub/new.db"));
    CHECK("over another link", leads_to("sub/new-twice.db", "sub/new.db"));
    CHECK("through a folder's link", leads_to("links/folder/new-twice.db", "sub/new.db"));
    CHECK("into no folder it does not lead", is_refused("links/lost.db", "No such file"));
    CHECK("nor in a circle", is_refused("round.db", "symbolic links"));
}

static void test_refusals(void) {
    make_file("many.db");
    CHECK("a file gets a second name", link("many.db", "sub/same.db") == 0);
    CHECK("each of them is refused", is_refused("many.db", "another name by a hard link"));
    CHECK("the other one too", is_refused("sub/same.db", "another name by a hard link"));
    unlink("sub/same.db");
    CHECK("until it has but one", leads_to("many.db", "many.db"));
    CHECK("a folder is no store", is_refused("sub", "it is a folder"));
    CHECK("a link to one is not", is_refused("folder", "it is a folder"));
    CHECK("nor a device", is_refused("/dev/null", "it is no regular file"));
    CHECK("nor nothing", is_refused("", "it is a folder"));
    CHECK("nor what lies in a file", is_refused("many.db/x", "Not a directory"));
    CHECK("a missing folder is told", is_refused("no/batch.db", "No such file"));
    CHECK("by its slash as well", is_refused("no/", "No such file"));
}

static void test_chdir(void) {
    struct place place, copy;
    CHECK("a place opens", place_open("sub/real.db", &place, &fault) == STATUS_OK);
    CHECK("the program goes elsewhere", chdir("links") == 0);
    CHECK("a copy can be had", place_copy(&place, &copy, &fault) == STATUS_OK);
    CHECK("both lead where the first did", access(place.path, R_OK) == 0);
    CHECK_TEXT(place.path, copy.path);
    CHECK_TEXT(place.owners, copy.owners);
    place_close(&place);
    place_close(&copy);
    CHECK("and back", chdir("..") == 0);
}

static void test_memory(void) {
    struct place one, other;
    CHECK("memory is a place", place_open(":memory:", &one, &fault) == STATUS_OK);
    CHECK("each time another", place_open(":memory:", &other, &fault) == STATUS_OK);
    CHECK("with its own name", strcmp(one.uri, other.uri) != 0);
    CHECK_TEXT(":memory:", one.path);
    place_close(&one);
    place_close(&other);
    place_close(&other);  // harmless
}

int main(void) {
    char command[64];
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    test_names();
    test_links();
    test_links_to_nothing();
    test_refusals();
    test_chdir();
    test_memory();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return check_report() | (system(command) != 0);
}
