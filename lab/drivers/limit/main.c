#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const char USAGE[] =
    "limit --mode get|put|list|pwrite [options]: the raw socket loop, no client in it\n"
    "limit describe | run           the same as a driver of the lab's protocol\n"
    "  --endpoint http://HOST:PORT   server that answers unsigned requests\n"
    "  --bucket NAME                 --key KEY: one object in ranges of --part (put: keys KEY0, KEY1, ...)\n"
    "  --keys-prefix P --count N     objects P<number> of --size each; --digits W pads with zeros,\n"
    "                                --first F is the first number, --keys-suffix S follows it\n"
    "  --size 1GiB --part 8MiB --connections 16\n"
    "  --rcvlowat BYTES              mark while a body is outstanding, 0 for the kernel's default\n"
    "  --sndbuf BYTES                SO_SNDBUF, 0 for the kernel's own tuning\n"
    "  --scratch BYTES               discard: memory that every body is received into\n"
    "  --sink memory|discard         --cold: memory mapped afresh in each round\n"
    "  --reuse                       a body lands in its connection's own slot, and the next one over it\n"
    "  --path FILE                   pwrite: the target, written beside itself and renamed;\n"
    "                                --step removes it after each round, untimed\n"
    "  --dump FILE                   write the memory of the last round there, untimed\n"
    "  --rounds N | --step           one JSON object at the end | `ready`, then a line per `go`\n"
    "  --timeout SECONDS             give up when nothing came for so long (30)\n";

static int usage(const char *why)
{
    fprintf(stderr, "limit: %s\n%s", why, USAGE);
    return -1;
}

static int parse_size(const char *text, size_t *out)
{
    static const struct { const char *name; size_t factor; } units[] = {
        {"", 1}, {"KiB", 1ul << 10}, {"MiB", 1ul << 20}, {"GiB", 1ul << 30},
    };
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *text == '-')
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0) {
            *out = (size_t)value * units[i].factor;
            return 0;
        }
    return -1;
}

static int parse_endpoint(const char *text, struct options *o)
{
    unsigned port;
    if (sscanf(text, "http://%255[^:/]:%u", o->host, &port) != 2 || port == 0 || port > 65535)
        return usage("--endpoint must be http://HOST:PORT");
    o->port = (uint16_t)port;
    return 0;
}

enum { MODE = 256, ENDPOINT, BUCKET, KEY, PREFIX, SUFFIX, DIGITS, FIRST, COUNT, SIZE, PART, CONNECTIONS, LOWAT, SNDBUF,
       SCRATCH, SINK, COLD, PATH, DUMP, ROUNDS, STEP, TIMEOUT, REUSE, HELP };

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"mode", 1, 0, MODE}, {"endpoint", 1, 0, ENDPOINT}, {"bucket", 1, 0, BUCKET}, {"key", 1, 0, KEY},
        {"keys-prefix", 1, 0, PREFIX}, {"keys-suffix", 1, 0, SUFFIX}, {"digits", 1, 0, DIGITS},
        {"first", 1, 0, FIRST}, {"count", 1, 0, COUNT}, {"size", 1, 0, SIZE}, {"part", 1, 0, PART},
        {"connections", 1, 0, CONNECTIONS}, {"rcvlowat", 1, 0, LOWAT}, {"sndbuf", 1, 0, SNDBUF},
        {"scratch", 1, 0, SCRATCH}, {"sink", 1, 0, SINK}, {"cold", 0, 0, COLD}, {"path", 1, 0, PATH},
        {"dump", 1, 0, DUMP}, {"rounds", 1, 0, ROUNDS}, {"step", 0, 0, STEP}, {"timeout", 1, 0, TIMEOUT}, {"reuse", 0, 0, REUSE},
        {"help", 0, 0, HELP}, {0, 0, 0, 0},
    };
    static const char *const modes[] = {"get", "put", "list", "pwrite"};
    *o = (struct options){.keys_suffix = "", .digits = 1, .count = 1, .part = 8 << 20, .connections = 16,
                          .scratch = 1 << 20, .rounds = 1, .timeout_s = 30};
    bool has_mode = false;
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        size_t *number = NULL;
        switch (c) {
        case MODE:
            for (size_t i = 0; i < 4; i++)
                if (strcmp(optarg, modes[i]) == 0) {
                    o->mode = (enum mode)i;
                    has_mode = true;
                }
            break;
        case SINK:
            if (strcmp(optarg, "memory") != 0 && strcmp(optarg, "discard") != 0)
                return usage("--sink is memory or discard");
            o->sink = optarg[0] == 'd' ? SINK_DISCARD : SINK_MEMORY;
            break;
        case ENDPOINT:
            if (parse_endpoint(optarg, o) < 0)
                return -1;
            break;
        case BUCKET: o->bucket = optarg; break;
        case KEY: o->key = optarg; break;
        case PREFIX: o->keys_prefix = optarg; break;
        case SUFFIX: o->keys_suffix = optarg; break;
        case PATH: o->path = optarg; break;
        case DUMP: o->dump = optarg; break;
        case COLD: o->cold = true; break;
        case STEP: o->step = true; break;
        case REUSE: o->reuse = true; break;
        case DIGITS: number = &o->digits; break;
        case FIRST: number = &o->first; break;
        case COUNT: number = &o->count; break;
        case SIZE: number = &o->size; break;
        case PART: number = &o->part; break;
        case CONNECTIONS: number = &o->connections; break;
        case LOWAT: number = &o->rcvlowat; break;
        case SNDBUF: number = &o->sndbuf; break;
        case SCRATCH: number = &o->scratch; break;
        case ROUNDS: number = &o->rounds; break;
        case TIMEOUT: number = &o->timeout_s; break;
        case HELP: fputs(USAGE, stdout); exit(0);
        default: return usage("unknown option");
        }
        if (number && parse_size(optarg, number) < 0) {
            fprintf(stderr, "limit: \"%s\" is not a number of bytes such as 65536, 64KiB or 1GiB\n", optarg);
            return -1;
        }
    }
    if (!has_mode)
        return usage("--mode is get, put, list or pwrite");
    if (o->mode == MODE_PWRITE ? !o->path : !o->port || !o->bucket)
        return usage(o->mode == MODE_PWRITE ? "pwrite needs --path" : "--endpoint and --bucket are needed");
    if ((o->mode == MODE_GET || o->mode == MODE_PUT) && !o->key == !o->keys_prefix)
        return usage("give either --key or --keys-prefix");
    if (o->mode != MODE_LIST && !o->size)
        return usage("--size is needed");
    if (!o->part || !o->connections || !o->count || !o->rounds || !o->scratch || o->digits > 32)
        return usage("--part, --connections, --count, --rounds and --scratch are at least 1, --digits at most 32");
    if (o->reuse && (o->dump || o->mode != MODE_GET || o->sink != SINK_MEMORY))
        return usage("--reuse is for get to memory, and keeps nothing to dump");
    if (o->rcvlowat > INT32_MAX || o->sndbuf > INT32_MAX)
        return usage("--rcvlowat and --sndbuf are at most 2 GiB - 1");
    return 0;
}

static int write_all(int fd, const unsigned char *bytes, size_t len, size_t chunk)
{
    for (size_t at = 0; at < len;) {
        size_t want = len - at < chunk ? len - at : chunk;
        ssize_t n = pwrite(fd, bytes + at, want, (off_t)at);
        if (n < 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

/* What a download to a file can't do without: the bytes written to a new name
 * beside the target, which then takes the target's place. */
static int write_file(const struct options *o, const struct work *work, const char *path)
{
    char temporary[4096];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.limit-partial", path) >= sizeof temporary)
        return -1;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write_all(fd, work->memory, work->memory_len, o->part) < 0 || close(fd) < 0 ||
        rename(temporary, path) < 0) {
        fprintf(stderr, "limit: can't write %s: %s\n", path, strerror(errno));
        unlink(temporary);
        return -1;
    }
    return 0;
}

static double seconds_of(struct timeval value)
{
    return (double)value.tv_sec + (double)value.tv_usec / 1e6;
}

struct round {
    double seconds, user_s, system_s;
    uint64_t objects;
    struct tally tally;
};

static int run_round(const struct options *o, struct loop *loop, struct work *work, struct round *round)
{
    struct timespec start, end;
    struct rusage before, after;
    memset(round, 0, sizeof *round);
    getrusage(RUSAGE_SELF, &before);
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (work_begin_round(o, work) < 0)
        return -1;
    if (o->mode == MODE_PWRITE) {
        if (write_file(o, work, o->path) < 0)
            return -1;
        round->tally.bytes = work->memory_len;
        work->objects_per_round = 1;
    } else if (loop_run(loop, work, &round->tally) < 0) {
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &after);
    round->objects = o->mode == MODE_LIST ? listing_keys(work->state) : work->objects_per_round;
    round->seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    round->user_s = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
    round->system_s = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
    return 0;
}

/* getrusage's peak begins at that of the process that started this one; the
 * kernel's high-water mark of this address space does not. */
static unsigned long long peak_rss(void)
{
    unsigned long long kib = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib * 1024;
}

static void print_round(const struct round *r)
{
    printf("{\"seconds\":%.6f,\"bytes\":%llu,\"objects\":%llu,\"requests\":%llu,\"reconnects\":%llu,"
           "\"user_s\":%.6f,\"system_s\":%.6f,\"peak_rss_bytes\":%llu}",
           r->seconds, (unsigned long long)r->tally.bytes, (unsigned long long)r->objects,
           (unsigned long long)r->tally.requests, (unsigned long long)r->tally.reconnects, r->user_s, r->system_s,
           peak_rss());
}

static void print_config(const struct options *o)
{
    printf("\"peak_rss_bytes\":%llu,\"config\":{\"client\":\"limit\",\"connections\":%zu,\"size\":%zu,\"part\":%zu,"
           "\"count\":%zu,\"rcvlowat\":%zu,\"sndbuf\":%zu,\"scratch\":%zu,\"cold\":%s,\"reuse\":%s}}\n",
           peak_rss(), o->connections, o->size, o->part, o->count, o->rcvlowat,
           o->sndbuf, o->scratch, o->cold ? "true" : "false", o->reuse ? "true" : "false");
}

static int run_all(const struct options *o, struct loop *loop, struct work *work)
{
    static const char *const operations[] = {"get", "put", "list", "pwrite"};
    static const char *const sinks[] = {"memory", "discard"};
    struct round round;
    if (o->step) {
        char line[64];
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof line, stdin)) {
            if (strcmp(line, "go\n") != 0)
                return usage("standard input takes lines that say go");
            if (run_round(o, loop, work, &round) < 0)
                return -1;
            print_round(&round);
            putchar('\n');
            fflush(stdout);
            work_end_round(o, work);
            if (o->mode == MODE_PWRITE)
                unlink(o->path);
        }
        return 0;
    }
    printf("{\"operation\":\"%s\",\"sink\":\"%s\",\"rounds\":[", operations[o->mode],
           o->mode == MODE_PWRITE ? "file" : sinks[o->sink]);
    for (size_t i = 0; i < o->rounds; i++) {
        if (run_round(o, loop, work, &round) < 0)
            return -1;
        fputs(i ? "," : "", stdout);
        print_round(&round);
        if (o->dump && i + 1 == o->rounds && work->memory && write_file(o, work, o->dump) < 0)
            return -1;
        work_end_round(o, work);
    }
    fputs("],", stdout);
    print_config(o);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct work work;
    struct loop *loop = NULL;
    if (argc > 1 && (strcmp(argv[1], "describe") == 0 || strcmp(argv[1], "run") == 0))
        return protocol_main(argc, argv);
    if (parse_options(argc, argv, &options) < 0)
        return 2;
    if (work_prepare(&options, &work) < 0)
        return 1;
    if (options.mode != MODE_PWRITE && !(loop = loop_open(&options)))
        return 1;
    int rc = run_all(&options, loop, &work);
    if (loop)
        loop_close(loop);
    work_free(&options, &work);
    return rc < 0 ? 1 : 0;
}
