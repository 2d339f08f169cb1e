// SPDX-License-Identifier: MIT
//
// A chain of stages, each of which unpacks one coding and hands on to the next. The stages are thin
// over zlib, brotli and zstd: one function that unpacks a piece, called until nothing comes out.

#include "coding.h"

#include <brotli/decode.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PIECE = 32 * 1024,
    MAX_STAGES = 3,
    // Bounds the memory of a stage; what RFC 9659 allows senders.
    ZSTD_WINDOW_LOG = 23,
};

const char coding_names[] = "gzip, deflate, br, zstd";

struct stage;

// Where a piece stands: what is left of the bytes that came, and of the room for those that go.
struct flow {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;
    size_t out_len;
};

struct kind {
    const char *name;
    bool (*open)(struct stage *stage);
    // Unpacks what it can. Returns 0, STATUS_INVALID or STATUS_NO_MEMORY, and sets is_whole.
    int (*unpack)(struct stage *stage, struct flow *flow);
    void (*close)(struct stage *stage);
};

struct stage {
    const struct kind *kind;
    struct coding *coding;
    struct stage *next;  // NULL: the sink
    bool has_begun;      // a byte came
    bool is_whole;       // nothing is missing yet
    bool is_over;        // what comes now is no part of it
    size_t n_out;
    union {
        z_stream zlib;
        BrotliDecoderState *brotli;
        ZSTD_DStream *zstd;
    } state;
    uint8_t head;  // of deflate: the first byte, while the second is awaited
    uint8_t piece[PIECE];
};

struct coding {
    struct coding_sink sink;
    size_t max_len;
    struct fault *fault;  // of the call
    size_t n_stages;
    struct stage *stages[MAX_STAGES];  // the one that gets the bytes first is the first
};

static bool open_gzip(struct stage *stage) {
    return inflateInit2(&stage->state.zlib, MAX_WBITS + 16) == Z_OK;
}

static int run_zlib(struct stage *stage, struct flow *flow) {
    z_stream *zlib = &stage->state.zlib;
    zlib->next_in = (uint8_t *)flow->in;  // zlib's type lacks a const, it does not write
    zlib->avail_in = (uInt)flow->in_len;
    zlib->next_out = flow->out;
    zlib->avail_out = (uInt)flow->out_len;
    int code = inflate(zlib, Z_NO_FLUSH);
    flow->in = zlib->next_in;
    flow->in_len = zlib->avail_in;
    flow->out = zlib->next_out;
    flow->out_len = zlib->avail_out;
    stage->is_whole = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR)
        return STATUS_NO_MEMORY;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? STATUS_OK : STATUS_INVALID;
}

// A gzip file may have further members, and behind the last one padding that is nobody's.
static int unpack_gzip(struct stage *stage, struct flow *flow) {
    if (stage->is_whole && stage->has_begun) {
        stage->is_over = flow->in[0] != 0x1f;
        if (stage->is_over)
            return STATUS_OK;
        inflateReset(&stage->state.zlib);
    }
    return run_zlib(stage, flow);
}

static void close_zlib(struct stage *stage) {
    inflateEnd(&stage->state.zlib);
}

// Opened for the raw form, which many servers send: the standard wants zlib's around it.
static bool open_deflate(struct stage *stage) {
    return inflateInit2(&stage->state.zlib, -MAX_WBITS) == Z_OK;
}

static bool is_zlib_head(uint8_t first, uint8_t second) {
    return (first & 0x0f) == Z_DEFLATED && (first * 256 + second) % 31 == 0;
}

// Which form it is, the first two bytes tell.
static int begin_deflate(struct stage *stage, struct flow *flow) {
    struct flow head = {.in = &stage->head, .in_len = 1, .out = flow->out, .out_len = 0};
    if (is_zlib_head(stage->head, flow->in[0]) &&
        inflateReset2(&stage->state.zlib, MAX_WBITS) != Z_OK)
        return STATUS_NO_MEMORY;
    return run_zlib(stage, &head);
}

static int unpack_deflate(struct stage *stage, struct flow *flow) {
    stage->is_over = stage->is_whole && stage->has_begun;
    if (stage->is_over)
        return STATUS_OK;
    if (!stage->has_begun) {
        stage->head = *flow->in++;
        flow->in_len--;
        stage->is_whole = false;
        return STATUS_OK;
    }
    if (stage->state.zlib.total_in == 0) {
        int status = begin_deflate(stage, flow);
        if (status != STATUS_OK)
            return status;
    }
    return run_zlib(stage, flow);
}

static bool open_brotli(struct stage *stage) {
    stage->state.brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    return stage->state.brotli != NULL;
}

static int unpack_brotli(struct stage *stage, struct flow *flow) {
    stage->is_over = stage->is_whole && stage->has_begun;
    if (stage->is_over)
        return STATUS_OK;
    BrotliDecoderResult result = BrotliDecoderDecompressStream(
        stage->state.brotli, &flow->in_len, &flow->in, &flow->out_len, &flow->out, NULL);
    stage->is_whole = result == BROTLI_DECODER_RESULT_SUCCESS;
    return result == BROTLI_DECODER_RESULT_ERROR ? STATUS_INVALID : STATUS_OK;
}

static void close_brotli(struct stage *stage) {
    BrotliDecoderDestroyInstance(stage->state.brotli);
}

static bool open_zstd(struct stage *stage) {
    stage->state.zstd = ZSTD_createDStream();
    return stage->state.zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(
                                    stage->state.zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG));
}

static int unpack_zstd(struct stage *stage, struct flow *flow) {
    ZSTD_inBuffer in = {flow->in, flow->in_len, 0};
    ZSTD_outBuffer out = {flow->out, flow->out_len, 0};
    size_t wanted = ZSTD_decompressStream(stage->state.zstd, &out, &in);
    flow->in += in.pos;
    flow->in_len -= in.pos;
    flow->out += out.pos;
    flow->out_len -= out.pos;
    stage->is_whole = wanted == 0;
    return ZSTD_isError(wanted) ? STATUS_INVALID : STATUS_OK;
}

static void close_zstd(struct stage *stage) {
    ZSTD_freeDStream(stage->state.zstd);
}

static const struct kind kinds[] = {
    {"gzip", open_gzip, unpack_gzip, close_zlib},
    {"x-gzip", open_gzip, unpack_gzip, close_zlib},
    {"deflate", open_deflate, unpack_deflate, close_zlib},
    {"br", open_brotli, unpack_brotli, close_brotli},
    {"zstd", open_zstd, unpack_zstd, close_zstd},
};

static int hand_on(struct stage *stage, size_t len);

static int add_to_stage(struct stage *stage, const uint8_t *bytes, size_t len) {
    struct flow flow = {.in = bytes, .in_len = len};
    size_t n_made = PIECE;
    // A full piece may have more behind it, though no byte is left to read.
    while (!stage->is_over && (flow.in_len > 0 || n_made == PIECE)) {
        flow.out = stage->piece;
        flow.out_len = PIECE;
        if (flow.in_len == 0 && (!stage->has_begun || stage->is_whole))
            break;
        int status = stage->kind->unpack(stage, &flow);
        stage->has_begun = true;
        if (status == STATUS_INVALID)
            return fault_set(stage->coding->fault, status, "its %s data is damaged",
                             stage->kind->name);
        n_made = PIECE - flow.out_len;
        if (status == STATUS_OK)
            status = hand_on(stage, n_made);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static int hand_on(struct stage *stage, size_t len) {
    struct coding *coding = stage->coding;
    const struct coding_sink *sink = &coding->sink;
    if (len == 0)
        return STATUS_OK;
    if (!stage->next)
        return sink->take(sink->context, (const char *)stage->piece, len);
    stage->n_out += len;
    if (stage->n_out > coding->max_len)
        return STATUS_NOTHING;
    return add_to_stage(stage->next, stage->piece, len);
}

static const struct kind *find(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncasecmp(kinds[i].name, name, len) == 0 && kinds[i].name[len] == '\0')
            return &kinds[i];
    return NULL;
}

// The codings are undone in the reverse order, so each one that is added becomes the first.
static int add_stage(struct coding *coding, const struct kind *kind) {
    if (coding->n_stages == MAX_STAGES)
        return fault_set(coding->fault, STATUS_INVALID, "it is packed more than %d times over",
                         MAX_STAGES);
    struct stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return STATUS_NO_MEMORY;
    stage->coding = coding;
    stage->next = coding->n_stages ? coding->stages[0] : NULL;
    memmove(coding->stages + 1, coding->stages, coding->n_stages * sizeof *coding->stages);
    coding->stages[0] = stage;
    coding->n_stages++;
    stage->kind = kind;
    return kind->open(stage) ? STATUS_OK : STATUS_NO_MEMORY;
}

static int read_name(struct coding *coding, const char *name, size_t len) {
    const struct kind *kind = find(name, len);
    bool is_identity = len == 0 || (len == 8 && strncasecmp(name, "identity", 8) == 0);
    if (kind)
        return add_stage(coding, kind);
    if (is_identity)
        return STATUS_OK;
    return fault_set(coding->fault, STATUS_INVALID, "its coding '%.*s' is not known",
                     len < 40 ? (int)len : 40, name);
}

static int read_names(struct coding *coding, const char *names) {
    int status = STATUS_OK;
    while (*names && status == STATUS_OK) {
        names += strspn(names, ", \t\r\n");
        size_t len = strcspn(names, ", \t\r\n");
        status = read_name(coding, names, len);
        names += len;
    }
    return status;
}

int coding_new(const char *names, size_t max_len, const struct coding_sink *sink,
               struct coding **out_coding, struct fault *fault) {
    *out_coding = NULL;
    struct coding *coding = calloc(1, sizeof *coding);
    if (!coding)
        return STATUS_NO_MEMORY;
    coding->sink = *sink;
    coding->max_len = max_len;
    coding->fault = fault;
    int status = read_names(coding, names);
    if (status != STATUS_OK || coding->n_stages == 0) {
        coding_free(coding);
        return status;
    }
    *out_coding = coding;
    return STATUS_OK;
}

void coding_free(struct coding *coding) {
    if (!coding)
        return;
    for (size_t i = 0; i < coding->n_stages; i++) {
        coding->stages[i]->kind->close(coding->stages[i]);
        free(coding->stages[i]);
    }
    free(coding);
}

int coding_add(struct coding *coding, const char *bytes, size_t len, struct fault *fault) {
    coding->fault = fault;
    return add_to_stage(coding->stages[0], (const uint8_t *)bytes, len);
}

int coding_end(struct coding *coding, struct fault *fault) {
    for (size_t i = 0; i < coding->n_stages; i++) {
        const struct stage *stage = coding->stages[i];
        if (stage->has_begun && !stage->is_whole)
            return fault_set(fault, STATUS_INVALID, "its %s data is incomplete", stage->kind->name);
    }
    return STATUS_OK;
}
