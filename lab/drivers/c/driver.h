/* What the parts of crt-c share: the plan, an item's sink, and the client that moves one into the other. */
#ifndef LAB_DRIVER_H
#define LAB_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2, EXIT_BAD_PLAN = 65, EXIT_SKIP = 77 };
enum operation { GET, PUT };
enum sink { DISCARD, MEMORY, STREAM, INTO_FILE };

/* Bytes [first, end) of an object; of a whole one, `ranged` is false. */
struct item {
    char *key;
    uint64_t first, end;
    bool ranged;
};

/* Zero concurrency or part size is the client's own default. */
struct plan {
    enum operation operation;
    enum sink sink;
    bool from_file, checksums;
    unsigned concurrency;
    uint64_t part_size, largest;
    char *endpoint, *region, *bucket, *ca_file, *folder;
    struct item *work;
    size_t items;
};

/* One item under way: where its bytes go, and what is to be said of it. `memory` is NULL where nothing is kept. */
struct transfer {
    size_t n;
    unsigned lane;
    bool verify;
    uint8_t *memory;
    uint32_t crc;
    uint64_t received;
    int64_t start, first, end;
    char error[512];
};

struct client;

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t now(void);
/* The path of an item's file, in a buffer of PATH_MAX bytes. */
void item_path(const struct plan *plan, size_t n, char *path);

/* The plan of one line. Ends the process where it is malformed (65) or not for this driver (77). */
void plan_parse(struct plan *plan, const char *line, size_t length);

/* `done` is called once for each transfer, on a thread of the client's. */
struct client *client_open(const struct plan *plan, const uint8_t *body, void (*done)(struct transfer *));
void client_start(struct client *client, struct transfer *transfer);
/* The part size in effect, in bytes. */
uint64_t client_part_size(const struct plan *plan);

#endif
