/* The raw socket loop: what moving the bytes costs with no client in it.
 *
 * One thread, edge-triggered epoll, nonblocking keep-alive sockets. Requests are
 * text rendered before the clock starts, unsigned, so the server must allow
 * anonymous access. A response body is received at its final place; the surplus
 * that arrives behind a head (at most HEAD_PROBE bytes) is the only copy.
 *
 *   main.c      options, rounds, the JSON that comes out
 *   loop.c      connections, epoll, send and receive
 *   work.c      options -> rendered requests and the memory they land in
 *   response.c  the response head: status and content-length, nothing else
 *   listing.c   one pass over a ListObjectsV2 page: key, size and ETag copied out
 *   protocol.c  `describe` and `run`: the lab's plan instead of options, a sample for each item
 *   plan.c      the plan's line -> what is to be done, or why it can't be
 *   digest.c    checksums of what moved, and the bytes of a put
 *   json.c      one pass over a line of JSON
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a response that are received apart from the body, in the hope that
 * the whole head is among them. A longer head is an error. */
enum { HEAD_PROBE = 2048 };

enum mode { MODE_GET, MODE_PUT, MODE_LIST, MODE_PWRITE };
enum sink { SINK_MEMORY, SINK_DISCARD };

/* Sizes are bytes. Zero for rcvlowat and sndbuf leaves the kernel's setting. */
struct options {
    enum mode mode;
    enum sink sink;
    char host[256];
    uint16_t port;
    const char *bucket;
    const char *key;
    const char *keys_prefix;
    const char *keys_suffix;
    const char *path;
    const char *dump;
    size_t digits;
    size_t first;
    size_t count;
    size_t size;
    size_t part;
    size_t connections;
    size_t rcvlowat;
    size_t sndbuf;
    size_t scratch;
    size_t rounds;
    size_t timeout_s;
    bool cold;
    bool reuse;
    bool step;
};

/* One request and where its answer goes. `destination` NULL discards the body;
 * `expected` is the content-length that must come, ANY_LENGTH for up to
 * `capacity` bytes. */
#define ANY_LENGTH SIZE_MAX
struct request {
    const char *head;
    size_t head_len;
    const unsigned char *body;
    size_t body_len;
    unsigned char *destination;
    size_t expected;
    size_t capacity;
    unsigned status;
    void *chain; /* what `follow` goes on with */
};

/* What became of a request, where that is asked for. Nanoseconds of CLOCK_MONOTONIC; 0: it did not come so far. */
struct sample {
    uint64_t start_ns;
    uint64_t first_ns;
    uint64_t end_ns;
    uint64_t bytes;
    uint32_t worker;
    uint32_t crc;
    char *error;
};

/* A round's worth of requests. `follow`, when set, sees each finished body and
 * may fill in the request that comes after it (a listing's next page). It
 * returns 1 for another request, 0 when the chain ends, -1 on an error that it
 * has reported. */
struct work {
    struct request *requests;
    size_t count;
    int (*follow)(void *chain, const unsigned char *body, size_t len, struct request *next);
    void *state;
    uint64_t objects_per_round;
    char *heads;
    unsigned char *memory;
    size_t memory_len;
    /* When not zero, a body lands in its connection's own slot of so many bytes. */
    size_t slot;
    /* When set, one for each request: a request that fails is then a sample like others, and the rest go on. */
    struct sample *samples;
    bool digest; /* whether samples get the checksum of the bytes that moved */
};

struct tally {
    uint64_t bytes;
    uint64_t requests;
    uint64_t reconnects;
};

struct response {
    unsigned status;
    size_t head_len;
    size_t content_length;
    bool close;
};

struct listing;
struct loop;

/* Keeps what went wrong for whoever reports it; -1. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *complaint(void);

/* 1: parsed; 0: the head is not complete; -1: not a response this loop reads. */
int response_parse(const char *bytes, size_t len, struct response *out);

struct loop *loop_open(const struct options *options);
void loop_close(struct loop *loop);
/* 0 when every request was answered as it claimed to be; -1 after a message. */
int loop_run(struct loop *loop, const struct work *work, struct tally *tally);

int work_prepare(const struct options *options, struct work *work);
/* Maps (cold) or keeps (warm) the memory of a round, and gives it back. */
int work_begin_round(const struct options *options, struct work *work);
void work_end_round(const struct options *options, struct work *work);
void work_free(const struct options *options, struct work *work);

struct listing *listing_new(const struct options *options, struct request *first);
void listing_free(struct listing *listing);
/* Back to the first page; with `digest`, of the keys too. */
void listing_rewind(struct listing *listing, bool digest);
uint64_t listing_keys(const struct listing *listing);
/* Of the keys so far, in order, with a line feed between two. */
uint32_t listing_digest(const struct listing *listing);
int listing_follow(void *chain, const unsigned char *body, size_t len, struct request *next);

/* Writes text with everything but letters, digits, "-._~" and the characters of `also` percent-encoded, and a NUL;
 * needs three bytes for each of its own and one. Returns the NUL's place. */
char *escape(char *to, const char *text, size_t len, const char *also);

/* The `describe` and `run` of the lab's protocol; the status to exit with. */
int protocol_main(int argc, char **argv);

/* CRC-32 as zlib and gzip have it; 0 to begin with. */
uint32_t crc32_of(uint32_t before, const unsigned char *bytes, size_t len);
/* Of two runs of bytes, from that of each and the second's length. */
uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t second_len);
/* The computed object of the key "body", by the formula of `wirespeed-origin --synthetic`. */
void fill_body(unsigned char *memory, size_t len);

/* Anonymous memory, of huge pages when it is large enough for one; NULL after a message. */
unsigned char *map_memory(size_t len);
void unmap_memory(unsigned char *memory, size_t len);

#endif
