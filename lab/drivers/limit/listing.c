#define _GNU_SOURCE
#include "limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page of 1,000 keys of the longest kind, each byte escaped, is under 8 MiB. */
enum { PAGE_BYTES = 8 << 20, HEAD_BYTES = 8192 };

struct entry {
    uint32_t key_at;
    uint32_t key_len;
    uint32_t etag_at;
    uint32_t etag_len;
    uint64_t size;
};

struct listing {
    const struct options *options;
    unsigned char *page;
    char *text;              /* keys and ETags of the page, copied out */
    struct entry *entries;
    size_t entry_count;
    size_t entry_capacity;
    char head[HEAD_BYTES];
    uint64_t keys;
    bool digest;
    uint32_t crc;
};

char *escape(char *to, const char *text, size_t len, const char *also)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && (strchr("-._~", c) || strchr(also, c)))) {
            *to++ = (char)c;
        } else {
            *to++ = '%';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to = '\0';
    return to;
}

static void render_head(struct listing *listing, const char *token, size_t token_len, struct request *request)
{
    const struct options *o = listing->options;
    int n = snprintf(listing->head, HEAD_BYTES, "GET /%s?list-type=2&max-keys=1000&prefix=%s", o->bucket,
                     o->keys_prefix ? o->keys_prefix : "");
    char *at = listing->head + n;
    if (token_len) {
        at = stpcpy(at, "&continuation-token=");
        at = escape(at, token, token_len, "");
    }
    at += sprintf(at, " HTTP/1.1\r\nhost: %s:%u\r\n\r\n", o->host, o->port);
    memset(request, 0, sizeof *request);
    request->head = listing->head;
    request->head_len = (size_t)(at - listing->head);
    request->destination = listing->page;
    request->expected = ANY_LENGTH;
    request->capacity = PAGE_BYTES;
    request->status = 200;
    request->chain = listing;
}

struct listing *listing_new(const struct options *options, struct request *first)
{
    struct listing *listing = calloc(1, sizeof *listing);
    if (!listing)
        return NULL;
    listing->options = options;
    listing->page = map_memory(PAGE_BYTES);
    listing->text = malloc(PAGE_BYTES);
    listing->entry_capacity = 4096;
    listing->entries = malloc(listing->entry_capacity * sizeof *listing->entries);
    if (!listing->page || !listing->text || !listing->entries ||
        strlen(options->bucket) + strlen(options->keys_prefix ? options->keys_prefix : "") > 2048) {
        fprintf(stderr, "limit: can't prepare a listing\n");
        listing_free(listing);
        return NULL;
    }
    render_head(listing, NULL, 0, first);
    return listing;
}

void listing_free(struct listing *listing)
{
    unmap_memory(listing->page, PAGE_BYTES);
    free(listing->text);
    free(listing->entries);
    free(listing);
}

void listing_rewind(struct listing *listing, bool digest)
{
    struct request first;
    listing->keys = 0;
    listing->digest = digest;
    listing->crc = 0;
    render_head(listing, NULL, 0, &first);
}

uint64_t listing_keys(const struct listing *listing)
{
    return listing->keys;
}

uint32_t listing_digest(const struct listing *listing)
{
    return listing->crc;
}

/* Copies text with XML's five entities and numeric ASCII references undone. */
static size_t copy_text(char *to, const char *from, size_t len)
{
    const char *end = from + len;
    char *start = to;
    while (from < end) {
        const char *amp = memchr(from, '&', (size_t)(end - from));
        size_t run = (size_t)((amp ? amp : end) - from);
        memcpy(to, from, run);
        to += run;
        from += run;
        if (!amp)
            break;
        const char *semicolon = memchr(amp, ';', (size_t)(end - amp));
        if (!semicolon)
            break;
        size_t name = (size_t)(semicolon - amp) - 1;
        if (name == 3 && memcmp(amp + 1, "amp", 3) == 0)
            *to++ = '&';
        else if (name == 2 && memcmp(amp + 1, "lt", 2) == 0)
            *to++ = '<';
        else if (name == 2 && memcmp(amp + 1, "gt", 2) == 0)
            *to++ = '>';
        else if (name == 4 && memcmp(amp + 1, "quot", 4) == 0)
            *to++ = '"';
        else if (name == 4 && memcmp(amp + 1, "apos", 4) == 0)
            *to++ = '\'';
        else if (name >= 2 && amp[1] == '#')
            *to++ = (char)(amp[2] == 'x' ? strtol(amp + 3, NULL, 16) : strtol(amp + 2, NULL, 10));
        from = semicolon + 1;
    }
    return (size_t)(to - start);
}

static bool named(const char *name, size_t len, const char *wanted, size_t wanted_len)
{
    return len == wanted_len && memcmp(name, wanted, wanted_len) == 0;
}
#define NAMED(literal) named(name, name_len, literal, sizeof literal - 1)

int listing_follow(void *chain, const unsigned char *body, size_t len, struct request *next)
{
    struct listing *listing = chain;
    const char *at = (const char *)body, *end = at + len;
    char token[1024];
    size_t token_len = 0, text_len = 0;
    bool truncated = false, closed = false;
    struct entry *entry = NULL;
    listing->entry_count = 0;

    while ((at = memchr(at, '<', (size_t)(end - at)))) {
        const char *name = at + 1;
        const char *close = memchr(name, '>', (size_t)(end - name));
        if (!close)
            break;
        size_t name_len = (size_t)(close - name);
        const char *text = close + 1;
        const char *text_end = memchr(text, '<', (size_t)(end - text));
        if (!text_end) {
            closed = NAMED("/ListBucketResult");
            break;
        }
        size_t value_len = (size_t)(text_end - text);
        if (NAMED("Contents")) {
            if (listing->entry_count == listing->entry_capacity) {
                return complain("a page held more than %zu keys", listing->entry_capacity);
            }
            entry = &listing->entries[listing->entry_count++];
            memset(entry, 0, sizeof *entry);
        } else if (entry && NAMED("Key")) {
            entry->key_at = (uint32_t)text_len;
            entry->key_len = (uint32_t)copy_text(listing->text + text_len, text, value_len);
            text_len += entry->key_len;
        } else if (entry && NAMED("ETag")) {
            entry->etag_at = (uint32_t)text_len;
            entry->etag_len = (uint32_t)copy_text(listing->text + text_len, text, value_len);
            text_len += entry->etag_len;
        } else if (entry && NAMED("Size")) {
            for (const char *digit = text; digit < text_end; digit++)
                entry->size = entry->size * 10 + (uint64_t)(*digit - '0');
        } else if (NAMED("NextContinuationToken") && value_len < sizeof token) {
            token_len = copy_text(token, text, value_len);
        } else if (NAMED("IsTruncated")) {
            truncated = value_len == 4 && memcmp(text, "true", 4) == 0;
        }
        at = text_end;
    }
    if (!closed || (truncated && !token_len))
        return complain("not a whole ListObjectsV2 page: %.*s", (int)(len < 200 ? len : 200), (const char *)body);
    for (size_t i = 0; i < listing->entry_count; i++)
        if (!listing->entries[i].key_len || !listing->entries[i].etag_len)
            return complain("entry %zu of a page has no key or no ETag", i);
    for (size_t i = 0; listing->digest && i < listing->entry_count; i++) {
        const struct entry *e = &listing->entries[i];
        if (listing->keys + i)
            listing->crc = crc32_of(listing->crc, (const unsigned char *)"\n", 1);
        listing->crc = crc32_of(listing->crc, (unsigned char *)listing->text + e->key_at, e->key_len);
    }
    listing->keys += listing->entry_count;
    if (!truncated)
        return 0;
    render_head(listing, token, token_len, next);
    return 1;
}
