/* The lab's plan, as far as the loop can do it. */
#ifndef LIMIT_PLAN_H
#define LIMIT_PLAN_H

#include "limit.h"

struct item {
    char *name; /* the key, or the prefix to list */
    uint64_t size;
    uint64_t from; /* the bytes that the item is about: from `from` to before `to` */
    uint64_t to;
    bool ranged;
};

struct plan {
    struct options options; /* what the loop needs: mode, sink, host, port, bucket, connections, part and its own knobs */
    struct item *items;
    size_t count;
    size_t concurrency; /* as asked; no more connections are made than there are requests */
    bool split; /* one large object, read in ranges of options.part bytes */
};

enum verdict { PLAN_READY, PLAN_SKIP, PLAN_BAD };

/* Reads the plan's line over the defaults that `plan->options` holds. Of what is not ready, `why` says why. */
enum verdict plan_read(const char *line, struct plan *plan, char *why, size_t capacity);

#endif
