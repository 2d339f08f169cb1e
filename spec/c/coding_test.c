// SPDX-License-Identifier: MIT
//
// Each coding whole, in pieces, cut off at every byte, and damaged; chains, limits, and names.

#include "coding.h"

#include "buffer.h"
#include "check.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum { NO_LIMIT = 1 << 30, LARGE = 300000 };

static const char short_text[] = "hello hello hello hello hello hello hello hello, brotli";

static const unsigned char short_brotli[] = {
    0x1f, 0x36, 0x00, 0xf8, 0x1d, 0x09, 0x36, 0x4e, 0x74, 0x6f, 0x24, 0x86,
    0x57, 0x65, 0x68, 0x09, 0xc2, 0xc2, 0x96, 0x6c, 0x69, 0x6f, 0x29, 0x89,
    0x25, 0xf6, 0xd4, 0x01, 0x2a, 0x6d, 0xda, 0x94, 0x1a, 0x25,
};

static int collect(void *context, const char *bytes, size_t len) {
    struct buffer *text = context;
    buffer_add(text, bytes, len);
    return STATUS_OK;
}

static int take_little(void *context, const char *bytes, size_t len) {
    struct buffer *text = context;
    if (text->len + len > 100)
        return STATUS_CLOSED;
    return collect(context, bytes, len);
}

// Unpacks bytes piece by piece. Returns the status of what failed first.
static int unpack(const char *names, const char *bytes, size_t len, size_t piece,
                  struct buffer *out_text, struct fault *fault) {
    const struct coding_sink sink = {collect, out_text};
    struct coding *coding;
    buffer_init(out_text);
    fault->text[0] = '\0';
    int status = coding_new(names, NO_LIMIT, &sink, &coding, fault);
    if (status != STATUS_OK || !coding)
        return status;
    for (size_t at = 0; at < len && status == STATUS_OK; at += piece)
        status = coding_add(coding, bytes + at, len - at < piece ? len - at : piece, fault);
    if (status == STATUS_OK)
        status = coding_end(coding, fault);
    coding_free(coding);
    return status;
}

static bool gives(const char *names, const struct buffer *packed, size_t piece,
                  const struct buffer *wanted) {
    struct buffer text;
    struct fault fault;
    int status = unpack(names, packed->bytes, packed->len, piece, &text, &fault);
    bool is_same = status == STATUS_OK && text.len == wanted->len &&
                   (text.len == 0 || memcmp(text.bytes, wanted->bytes, text.len) == 0);
    buffer_fini(&text);
    return is_same;
}

// window_bits tells the form: 31 gzip, 15 zlib, -15 raw.
static void pack_zlib(const struct buffer *text, int window_bits, struct buffer *out_packed) {
    z_stream stream = {0};
    buffer_init(out_packed);
    deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
    size_t bound = deflateBound(&stream, text->len);
    stream.next_in = (Bytef *)text->bytes;
    stream.avail_in = (uInt)text->len;
    stream.next_out = (Bytef *)buffer_reserve(out_packed, bound);
    stream.avail_out = (uInt)bound;
    deflate(&stream, Z_FINISH);
    out_packed->len = stream.total_out;
    deflateEnd(&stream);
}

static void pack_zstd(const struct buffer *text, struct buffer *out_packed) {
    size_t bound = ZSTD_compressBound(text->len);
    buffer_init(out_packed);
    char *place = buffer_reserve(out_packed, bound);
    out_packed->len = ZSTD_compress(place, bound, text->bytes, text->len, 3);
}

// Bytes that pack to about a half.
static void fill(struct buffer *text, size_t len) {
    unsigned seed = 1;
    buffer_init(text);
    while (text->len < len)
        buffer_add_byte(text, (char)('a' + rand_r(&seed) % 16));
}

static void check_form(const char *name, const char *shown, const struct buffer *packed,
                       const struct buffer *text) {
    static const size_t pieces[] = {1, 2, 7, 1000, 16384, 2 * LARGE};
    char claim[200];
    struct buffer found;
    struct fault fault;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        snprintf(claim, sizeof claim, "%s is unpacked from pieces of %zu", shown, pieces[i]);
        CHECK(claim, gives(name, packed, pieces[i], text));
    }
    size_t n_told = 0, n_cuts = 0;
    for (size_t len = 1; len < packed->len; len += packed->len / 300 + 1, n_cuts++) {
        int status = unpack(name, packed->bytes, len, 1000, &found, &fault);
        n_told += status == STATUS_INVALID && strstr(fault.text, "is incomplete") != NULL;
        buffer_fini(&found);
    }
    snprintf(claim, sizeof claim, "%s cut off is told at each of %zu places", shown, n_cuts);
    CHECK(claim, n_told == n_cuts && n_cuts > 10);
    CHECK(claim,
          unpack(name, packed->bytes, packed->len - 1, 1000, &found, &fault) == STATUS_INVALID);
    buffer_fini(&found);
}

static void test_forms(void) {
    struct buffer texts[2], packed;
    fill(&texts[0], LARGE);
    buffer_init(&texts[1]);
    buffer_add(&texts[1], short_text, strlen(short_text));
    for (size_t i = 0; i < 2; i++) {
        pack_zlib(&texts[i], 31, &packed);
        check_form("gzip", "gzip", &packed, &texts[i]);
        check_form(" X-GZIP ", "x-gzip", &packed, &texts[i]);
        buffer_fini(&packed);
        pack_zlib(&texts[i], 15, &packed);
        check_form("deflate", "deflate", &packed, &texts[i]);
        buffer_fini(&packed);
        pack_zlib(&texts[i], -15, &packed);
        check_form("deflate", "raw deflate", &packed, &texts[i]);
        buffer_fini(&packed);
        pack_zstd(&texts[i], &packed);
        check_form("zstd", "zstd", &packed, &texts[i]);
        buffer_fini(&packed);
    }
    buffer_init(&packed);
    buffer_add(&packed, short_brotli, sizeof short_brotli);
    check_form("br", "br", &packed, &texts[1]);
    buffer_fini(&packed);
    buffer_fini(&texts[0]);
    buffer_fini(&texts[1]);
}

static void test_what_follows(void) {
    struct buffer text, twice, packed, more;
    fill(&text, 1000);
    buffer_init(&twice);
    buffer_add(&twice, text.bytes, text.len);
    buffer_add(&twice, text.bytes, text.len);
    pack_zlib(&text, 31, &packed);
    buffer_init(&more);
    buffer_add(&more, packed.bytes, packed.len);
    buffer_add(&more, packed.bytes, packed.len);
    CHECK("a gzip of two members gives both", gives("gzip", &more, 100, &twice));
    buffer_add(&more, "\0\0\0\0", 4);
    CHECK("padding behind it is nobody's", gives("gzip", &more, 1, &twice));
    buffer_fini(&more);
    buffer_init(&more);
    CHECK("nothing at all is whole", gives("gzip", &more, 1, &more));
    buffer_fini(&packed);
    buffer_fini(&twice);
    buffer_fini(&text);
}

static void test_damage(void) {
    static const char *const names[] = {"gzip", "br", "zstd"};
    static const char garbage[] = "this is neither of them, and was never meant to be";
    struct buffer found, text, packed;
    struct fault fault;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char sentence[100];
        snprintf(sentence, sizeof sentence, "its %s data is damaged", names[i]);
        CHECK(names[i],
              unpack(names[i], garbage, strlen(garbage), 10, &found, &fault) == STATUS_INVALID);
        CHECK_TEXT(sentence, fault.text);
        buffer_fini(&found);
    }
    fill(&text, 1000);
    pack_zlib(&text, 31, &packed);
    packed.bytes[packed.len - 6] ^= 1;
    CHECK("a wrong checksum is damage",
          unpack("gzip", packed.bytes, packed.len, 100, &found, &fault) == STATUS_INVALID);
    buffer_fini(&found);
    buffer_fini(&packed);
    buffer_fini(&text);
}

static void test_chains(void) {
    struct buffer text, once, twice, found;
    struct fault fault;
    fill(&text, LARGE);
    pack_zlib(&text, 31, &once);
    pack_zstd(&once, &twice);
    CHECK("the coding that came last is undone first",
          gives("gzip, zstd,", &twice, 1000, &text) &&
              gives("gzip,identity,\tZSTD", &twice, 1000, &text));
    CHECK("in the wrong order they are damaged",
          unpack("zstd, gzip", twice.bytes, twice.len, 1000, &found, &fault) == STATUS_INVALID);
    buffer_fini(&found);
    CHECK("a chain has an end",
          unpack("gzip,gzip,gzip,gzip", "x", 1, 1, &found, &fault) == STATUS_INVALID);
    CHECK_TEXT("it is packed more than 3 times over", fault.text);
    CHECK("an unknown name is named",
          unpack("gzip, compress", "x", 1, 1, &found, &fault) == STATUS_INVALID);
    CHECK_TEXT("its coding 'compress' is not known", fault.text);
    buffer_fini(&twice);
    buffer_fini(&once);
    buffer_fini(&text);
}

static void test_names(void) {
    static const char *const as_they_are[] = {"", ",", "identity", " Identity , "};
    struct buffer text;
    struct fault fault;
    const struct coding_sink sink = {collect, &text};
    for (size_t i = 0; i < sizeof as_they_are / sizeof *as_they_are; i++) {
        struct coding *coding;
        CHECK(as_they_are[i],
              coding_new(as_they_are[i], NO_LIMIT, &sink, &coding, &fault) == STATUS_OK && !coding);
    }
}

static void test_limits(void) {
    struct buffer zeros, once, twice, found;
    struct coding *coding;
    struct fault fault;
    const struct coding_sink sink = {take_little, &found};
    fill(&zeros, 1);
    memset(buffer_reserve(&zeros, 50 << 20), 0, 50 << 20);
    zeros.len = 50 << 20;
    pack_zlib(&zeros, 31, &once);
    pack_zlib(&once, 31, &twice);
    buffer_init(&found);
    coding_new("gzip", NO_LIMIT, &sink, &coding, &fault);
    CHECK("what the sink says ends it",
          coding_add(coding, once.bytes, once.len, &fault) == STATUS_CLOSED && found.len <= 100);
    coding_free(coding);
    coding_new("gzip, gzip, gzip", 10000, &sink, &coding, &fault);
    CHECK("a coding between others has a limit as well",
          coding_add(coding, twice.bytes, twice.len, &fault) == STATUS_NOTHING);
    coding_free(coding);
    buffer_fini(&found);
    buffer_fini(&twice);
    buffer_fini(&once);
    buffer_fini(&zeros);
}

int main(void) {
    test_forms();
    test_what_follows();
    test_damage();
    test_chains();
    test_names();
    test_limits();
    return check_report();
}
