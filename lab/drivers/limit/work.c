#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20 };

unsigned char *map_memory(size_t len)
{
    /* Twice mapped and cut, so that the first huge page is whole. */
    size_t padded = (len + HUGE - 1) / HUGE * HUGE + HUGE;
    unsigned char *raw = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        fprintf(stderr, "limit: can't map %zu bytes: %s\n", len, strerror(errno));
        return NULL;
    }
    size_t before = (HUGE - (uintptr_t)raw % HUGE) % HUGE;
    if (before)
        munmap(raw, before);
    if (before < HUGE)
        munmap(raw + padded - (HUGE - before), HUGE - before);
    if (len >= HUGE)
        madvise(raw + before, padded - HUGE, MADV_HUGEPAGE);
    return raw + before;
}

void unmap_memory(unsigned char *memory, size_t len)
{
    if (memory)
        munmap(memory, (len + HUGE - 1) / HUGE * HUGE);
}

/* A pattern that differs from page to page, so that a misplaced part shows. */
static void fill(unsigned char *memory, size_t len)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t word = (i / 8 + 1) * 0x9E3779B97F4A7C15u;
        memcpy(memory + i, &word, 8);
    }
}

static int plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("\"#%<>?[\\]^`{|}&+;=", *c)) {
            fprintf(stderr, "limit: \"%s\" would need escaping in a request line; use plain names\n", text);
            return -1;
        }
    return 0;
}

struct arena {
    char *bytes;
    size_t len;
    size_t capacity;
};

static int render(struct arena *arena, struct request *request, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = arena->capacity - arena->len;
    int n = vsnprintf(arena->bytes + arena->len, room, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= room) {
        fprintf(stderr, "limit: a request head is longer than %zu bytes\n", room);
        return -1;
    }
    request->head = arena->bytes + arena->len;
    request->head_len = (size_t)n;
    arena->len += (size_t)n;
    return 0;
}

static int prepare_list(const struct options *o, struct work *work)
{
    work->count = 1;
    work->requests = calloc(1, sizeof *work->requests);
    if (!work->requests)
        return -1;
    work->state = listing_new(o, work->requests);
    work->follow = listing_follow;
    return work->state ? 0 : -1;
}

int work_prepare(const struct options *o, struct work *work)
{
    memset(work, 0, sizeof *work);
    if (o->mode == MODE_PWRITE) {
        work->memory_len = o->size;
        work->memory = map_memory(o->size);
        if (work->memory)
            fill(work->memory, o->size);
        return work->memory ? 0 : -1;
    }
    if (plain(o->bucket) < 0 || plain(o->key ? o->key : "") < 0 || plain(o->keys_prefix ? o->keys_prefix : "") < 0 ||
        plain(o->keys_suffix) < 0)
        return -1;
    if (o->mode == MODE_LIST)
        return prepare_list(o, work);

    bool many = o->keys_prefix != NULL;
    size_t total = many ? o->count * o->size : o->size;
    work->count = many ? o->count : (o->size + o->part - 1) / o->part;
    work->objects_per_round = many ? o->count : 1;
    work->requests = calloc(work->count, sizeof *work->requests);
    size_t longest = 256 + strlen(o->host) + strlen(o->bucket) + strlen(o->key ? o->key : o->keys_prefix) +
                     strlen(o->keys_suffix) + o->digits;
    struct arena arena = {malloc(work->count * longest), 0, work->count * longest};
    work->heads = arena.bytes;
    if (!work->requests || !arena.bytes)
        return -1;
    if (o->mode == MODE_PUT || o->sink == SINK_MEMORY) {
        size_t step = many ? o->size : o->part;
        if (o->reuse && o->mode == MODE_GET)
            work->slot = step;
        work->memory_len = work->slot ? work->slot * o->connections : total;
        if (o->mode == MODE_PUT || !o->cold) {
            work->memory = map_memory(total);
            if (!work->memory)
                return -1;
            fill(work->memory, work->memory_len);
        }
    }

    for (size_t i = 0; i < work->count; i++) {
        struct request *r = &work->requests[i];
        size_t step = many ? o->size : o->part;
        size_t at = i * step;
        size_t len = many || total - at > step ? step : total - at;
        int rc;
        if (o->mode == MODE_GET && many) {
            r->status = 200;
            r->expected = len;
            rc = render(&arena, r, "GET /%s/%s%0*zu%s HTTP/1.1\r\nhost: %s:%u\r\n\r\n", o->bucket, o->keys_prefix,
                        (int)o->digits, o->first + i, o->keys_suffix, o->host, o->port);
        } else if (o->mode == MODE_GET) {
            r->status = 206;
            r->expected = len;
            rc = render(&arena, r, "GET /%s/%s HTTP/1.1\r\nhost: %s:%u\r\nrange: bytes=%zu-%zu\r\n\r\n", o->bucket,
                        o->key, o->host, o->port, at, at + len - 1);
        } else {
            r->status = 200;
            r->expected = 0;
            r->body = work->memory + at;
            r->body_len = len;
            rc = render(&arena, r, "PUT /%s/%s%0*zu%s HTTP/1.1\r\nhost: %s:%u\r\ncontent-length: %zu\r\n\r\n",
                        o->bucket, many ? o->keys_prefix : o->key, (int)o->digits, o->first + i, o->keys_suffix,
                        o->host, o->port, len);
        }
        if (rc < 0)
            return -1;
    }
    return work_begin_round(o, work);
}

int work_begin_round(const struct options *o, struct work *work)
{
    if (o->mode == MODE_LIST)
        listing_rewind(work->state, false);
    if (o->mode != MODE_GET || o->sink != SINK_MEMORY)
        return 0;
    if (!work->memory)
        work->memory = map_memory(work->memory_len);
    if (!work->memory)
        return -1;
    if (work->slot)
        return 0;
    size_t step = o->keys_prefix ? o->size : o->part;
    for (size_t i = 0; i < work->count; i++)
        work->requests[i].destination = work->memory + i * step;
    return 0;
}

void work_end_round(const struct options *o, struct work *work)
{
    if (!o->cold || o->mode != MODE_GET)
        return;
    unmap_memory(work->memory, work->memory_len);
    work->memory = NULL;
}

void work_free(const struct options *o, struct work *work)
{
    if (o->mode == MODE_LIST && work->state)
        listing_free(work->state);
    unmap_memory(work->memory, work->memory_len);
    free(work->heads);
    free(work->requests);
}
