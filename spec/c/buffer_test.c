// SPDX-License-Identifier: MIT
//
// Bytes that grow, and what is left of them when memory runs out.

#include "buffer.h"

#include "check.h"

#include <stdint.h>

static void test_growth(void) {
    struct buffer buffer;
    bool is_kept = true;
    buffer_init(&buffer);
    CHECK("a new buffer holds nothing", !buffer.bytes && buffer.len == 0);
    buffer_add(&buffer, "", 0);
    CHECK("adding nothing takes no memory", !buffer.bytes);
    for (int i = 0; i < 10000; i++)
        buffer_add_byte(&buffer, (char)(i % 127));
    for (int i = 0; i < 10000; i++)
        is_kept = is_kept && buffer.bytes[i] == i % 127;
    CHECK("ten thousand bytes are kept", is_kept && buffer.len == 10000);
    buffer_add(&buffer, "abc", 4);
    CHECK_TEXT("abc", buffer.bytes + 10000);
    buffer_fini(&buffer);
    CHECK("after its end a buffer is as new", !buffer.bytes && !buffer.capacity);
}

static void test_reserve(void) {
    struct buffer buffer;
    buffer_init(&buffer);
    buffer_add(&buffer, "ab", 2);
    char *place = buffer_reserve(&buffer, 1000);
    CHECK("the place lies behind what is there", place == buffer.bytes + 2);
    CHECK("it is as large as asked", buffer.capacity - buffer.len >= 1000);
    CHECK("reserving adds nothing", buffer.len == 2);
    buffer_fini(&buffer);
}

static void test_memory_shortage(void) {
    struct buffer buffer;
    buffer_init(&buffer);
    buffer_add(&buffer, "ab", 2);
    CHECK("more than there can be is not given", !buffer_reserve(&buffer, SIZE_MAX - 1));
    buffer_add(&buffer, "cd", 2);
    CHECK("a broken buffer says so", buffer.is_broken);
    CHECK("and keeps what it had", buffer.len == 2 && memcmp(buffer.bytes, "ab", 2) == 0);
    buffer_fini(&buffer);
    CHECK("its end mends it", !buffer.is_broken);
    CHECK("a second one breaks", !buffer_reserve(&buffer, SIZE_MAX - 1));
    buffer_clear(&buffer);
    buffer_add(&buffer, "ef", 2);
    CHECK("to clear it mends it, too", !buffer.is_broken && buffer.len == 2);
    char *bytes = buffer.bytes;
    buffer_clear(&buffer);
    CHECK("and keeps the room of a whole one", buffer.bytes == bytes && buffer.len == 0);
    buffer_fini(&buffer);
}

int main(void) {
    test_growth();
    test_reserve();
    test_memory_shortage();
    return check_report();
}
