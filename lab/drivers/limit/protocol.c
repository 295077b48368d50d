#define _GNU_SOURCE
#include "limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "plan.h"

/* What a driver of the lab exits with. */
enum { FINE = 0, FAILED = 1, BAD_INPUT = 65, SKIPPED = 77 };

/* The mark that the grid of them found cheapest. */
enum { LOW_WATER = 1 << 20 };

static const char DESCRIPTION[] =
    "{\"type\":\"describe\",\"protocol\":1,\"name\":\"limit\",\"client\":\"limit\",\"version\":\"1\",\"language\":\"c\","
    "\"components\":{},\"operations\":[\"get\",\"put\",\"list\"],\"sinks\":[\"discard\",\"memory\"],"
    "\"sources\":[\"memory\"],\"settings\":[\"concurrency\",\"part_size\"],\"tls\":false,"
    "\"notes\":[\"requests are not signed\",\"a put is one request\","
    "\"many objects in memory share one slot for each connection\"]}\n";

/* A plan with what its rounds need: requests, where their bytes lie, and their samples. */
struct job {
    struct plan plan;
    struct work work;
    size_t longest; /* bytes of the largest answer */
};

static int out_of_memory(void)
{
    fprintf(stderr, "limit: no memory for the plan's requests\n");
    return -1;
}

static int prepare_lists(struct job *job)
{
    struct plan *plan = &job->plan;
    struct options *each = calloc(plan->count, sizeof *each);
    job->work.state = each;
    job->work.follow = listing_follow;
    if (!each)
        return out_of_memory();
    for (size_t i = 0; i < plan->count; i++) {
        char *prefix = malloc(3 * strlen(plan->items[i].name) + 1);
        if (!prefix)
            return out_of_memory();
        escape(prefix, plan->items[i].name, strlen(plan->items[i].name), "");
        each[i] = plan->options;
        each[i].keys_prefix = prefix;
        if (!listing_new(&each[i], &job->work.requests[i]))
            return -1;
    }
    return 0;
}

/* The head of a request for the bytes from `from` to before `to` of an item. */
static char *render(const struct options *o, const struct item *item, char *to, uint64_t from, uint64_t end, bool part)
{
    to += sprintf(to, "%s /%s/", o->mode == MODE_PUT ? "PUT" : "GET", o->bucket);
    to = escape(to, item->name, strlen(item->name), "/");
    to += sprintf(to, " HTTP/1.1\r\nhost: %s:%u\r\n", o->host, o->port);
    if (part)
        to += sprintf(to, "range: bytes=%llu-%llu\r\n", (unsigned long long)from, (unsigned long long)end - 1);
    if (o->mode == MODE_PUT)
        to += sprintf(to, "content-length: %llu\r\n", (unsigned long long)item->size);
    return stpcpy(to, "\r\n");
}

static int prepare_objects(struct job *job)
{
    const struct options *o = &job->plan.options;
    struct work *work = &job->work;
    size_t room = 0;
    for (size_t i = 0; i < work->count; i++) {
        const struct item *item = &job->plan.items[job->plan.split ? 0 : i];
        room += 256 + strlen(o->host) + strlen(o->bucket) + 3 * strlen(item->name);
    }
    char *at = work->heads = malloc(room);
    if (!at)
        return out_of_memory();
    for (size_t i = 0; i < work->count; i++) {
        const struct item *item = &job->plan.items[job->plan.split ? 0 : i];
        struct request *r = &work->requests[i];
        uint64_t from = item->from, to = item->to;
        if (job->plan.split) {
            from += i * o->part;
            to = to - from < o->part ? to : from + o->part;
        }
        bool part = job->plan.split || item->ranged;
        r->head = at;
        at = render(o, item, at, from, to, part);
        r->head_len = (size_t)(at - r->head);
        r->status = part ? 206 : 200;
        size_t len = (size_t)(to - from);
        if (o->mode == MODE_PUT)
            r->body_len = len;
        else
            r->expected = len;
        job->longest = len > job->longest ? len : job->longest;
    }
    return 0;
}

/* Bytes to be put, or a place for those to be got: for one large object its own, for others a slot each connection. */
static int prepare_memory(struct job *job)
{
    const struct options *o = &job->plan.options;
    struct work *work = &job->work;
    bool slots = o->mode == MODE_GET && !job->plan.split;
    if (o->mode == MODE_LIST || (o->mode == MODE_GET && o->sink == SINK_DISCARD) || !job->longest)
        return 0;
    work->memory_len = slots ? job->longest * o->connections : job->longest;
    if (job->plan.split)
        work->memory_len = (size_t)(job->plan.items->to - job->plan.items->from);
    work->memory = map_memory(work->memory_len);
    if (!work->memory)
        return -1;
    work->slot = slots ? job->longest : 0;
    if (o->mode == MODE_PUT)
        fill_body(work->memory, work->memory_len);
    else
        memset(work->memory, 0, work->memory_len);
    for (size_t i = 0; i < work->count; i++) {
        if (o->mode == MODE_PUT)
            work->requests[i].body = work->memory;
        else if (!slots)
            work->requests[i].destination = work->memory + i * o->part;
    }
    return 0;
}

static int prepare(struct job *job)
{
    struct plan *plan = &job->plan;
    struct work *work = &job->work;
    work->count = plan->count;
    if (plan->split)
        work->count = (size_t)((plan->items->to - plan->items->from + plan->options.part - 1) / plan->options.part);
    if (plan->options.connections > work->count)
        plan->options.connections = work->count;
    work->requests = calloc(work->count, sizeof *work->requests);
    work->samples = calloc(work->count, sizeof *work->samples);
    if (!work->requests || !work->samples)
        return out_of_memory();
    if (plan->options.mode == MODE_LIST)
        return prepare_lists(job);
    return prepare_objects(job) < 0 ? -1 : prepare_memory(job);
}

static void put_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < ' ' || c > '~')
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* The sample of an item, of the requests that it took. */
static void put_sample(const struct job *job, size_t n, bool verify)
{
    const struct options *o = &job->plan.options;
    size_t first = job->plan.split ? 0 : n, last = job->plan.split ? job->work.count : n + 1;
    struct sample whole = job->work.samples[first];
    for (size_t i = first + 1; i < last; i++) {
        const struct sample *part = &job->work.samples[i];
        whole.end_ns = part->end_ns > whole.end_ns ? part->end_ns : whole.end_ns;
        if (part->first_ns && (!whole.first_ns || part->first_ns < whole.first_ns))
            whole.first_ns = part->first_ns;
        whole.bytes += part->bytes;
        whole.crc = crc32_join(whole.crc, part->crc, part->bytes);
        whole.error = whole.error ? whole.error : part->error;
    }
    printf("{\"type\":\"sample\",\"n\":%zu,\"worker\":%u,\"start_ns\":%llu,\"first_ns\":", n, whole.worker,
           (unsigned long long)whole.start_ns);
    if (whole.first_ns)
        printf("%llu", (unsigned long long)whole.first_ns);
    else
        fputs("null", stdout);
    printf(",\"end_ns\":%llu,\"bytes\":%llu,\"error\":", (unsigned long long)whole.end_ns,
           (unsigned long long)whole.bytes);
    if (whole.error)
        put_text(whole.error);
    else
        fputs("null", stdout);
    if (o->mode == MODE_LIST) {
        const struct listing *listing = job->work.requests[n].chain;
        printf(",\"keys\":%llu", (unsigned long long)listing_keys(listing));
        whole.crc = listing_digest(listing);
    }
    if (verify && !whole.error)
        printf(",\"digest\":\"%08x\"", whole.crc);
    puts("}");
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int run_round(struct job *job, struct loop *loop, uint64_t number, bool verify)
{
    const struct options *o = &job->plan.options;
    struct work *work = &job->work;
    struct tally tally = {0};
    for (size_t i = 0; i < work->count; i++)
        free(work->samples[i].error);
    memset(work->samples, 0, work->count * sizeof *work->samples);
    for (size_t i = 0; o->mode == MODE_LIST && i < work->count; i++)
        listing_rewind(work->requests[i].chain, verify);
    /* What is discarded has no place of its own to be looked at: a slot for each connection is. */
    bool lent = verify && o->mode == MODE_GET && !work->memory && job->longest;
    if (lent) {
        work->slot = job->longest;
        work->memory_len = job->longest * o->connections;
        work->memory = map_memory(work->memory_len);
        if (!work->memory)
            return -1;
    }
    work->digest = verify;
    uint64_t start = now_ns();
    int rc = loop_run(loop, work, &tally);
    uint64_t end = now_ns();
    if (lent) {
        unmap_memory(work->memory, work->memory_len);
        work->memory = NULL;
        work->slot = 0;
    }
    if (rc < 0)
        return -1;
    /* Apart from the samples, so that forming them is not taken for the loop's work. */
    printf("{\"type\":\"stopped\",\"round\":%llu}\n", (unsigned long long)number);
    fflush(stdout);
    for (size_t n = 0; n < job->plan.count; n++)
        put_sample(job, n, verify);
    printf("{\"type\":\"done\",\"round\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"effective\":{\"concurrency\":%zu,"
           "\"part_size\":",
           (unsigned long long)number, (unsigned long long)start, (unsigned long long)end, job->plan.concurrency);
    if (job->plan.split)
        printf("%zu", o->part);
    else
        fputs("null", stdout);
    printf(",\"checksums\":false,\"signed\":false,\"path_style\":true,\"threads\":1,\"rcvlowat\":%zu,\"scratch\":%zu}}\n",
           o->rcvlowat, o->scratch);
    return fflush(stdout) == 0 ? 0 : -1;
}

/* 0, or -1 where the line is not a go. */
static int read_go(const char *line, uint64_t *number, bool *verify)
{
    struct json json = {line, false};
    char name[8], *type = NULL;
    *number = UINT64_MAX;
    *verify = false;
    json_enter(&json, '{');
    while (json_member(&json, name, sizeof name)) {
        if (strcmp(name, "type") == 0 && !type)
            type = json_text(&json);
        else if (strcmp(name, "round") == 0)
            *number = json_number(&json, UINT64_MAX);
        else if (strcmp(name, "verify") == 0)
            *verify = json_truth(&json) == 1;
        else
            json_skip(&json);
    }
    bool is_go = type && strcmp(type, "go") == 0 && *number != UINT64_MAX && json_ended(&json);
    free(type);
    return is_go ? 0 : -1;
}

static int rounds(struct job *job)
{
    char *line = NULL;
    size_t capacity = 0;
    int status = FINE;
    struct loop *loop = prepare(job) < 0 ? NULL : loop_open(&job->plan.options);
    if (!loop)
        return FAILED;
    puts("{\"type\":\"ready\"}");
    fflush(stdout);
    while (status == FINE && getline(&line, &capacity, stdin) > 0) {
        uint64_t number;
        bool verify;
        if (read_go(line, &number, &verify) < 0) {
            fprintf(stderr, "limit: after the plan come lines of the type go, not %.100s\n", line);
            status = BAD_INPUT;
        } else if (run_round(job, loop, number, verify) < 0) {
            status = FAILED;
        }
    }
    free(line);
    loop_close(loop);
    return status;
}

int protocol_main(int argc, char **argv)
{
    struct job job = {.plan.options = {.keys_suffix = "", .digits = 1, .part = 8 << 20, .connections = 16,
                                       .scratch = 1 << 20, .rcvlowat = LOW_WATER, .rounds = 1, .timeout_s = 30}};
    if (argc != 2) {
        fprintf(stderr, "limit: %s takes no arguments\n", argv[1]);
        return 2;
    }
    if (strcmp(argv[1], "describe") == 0)
        return fputs(DESCRIPTION, stdout) < 0 ? FAILED : FINE;

    char *line = NULL, why[512] = "";
    size_t capacity = 0;
    if (getline(&line, &capacity, stdin) <= 0) {
        fprintf(stderr, "limit: standard input has no plan\n");
        free(line);
        return BAD_INPUT;
    }
    enum verdict verdict = plan_read(line, &job.plan, why, sizeof why);
    free(line);
    if (verdict == PLAN_BAD) {
        fprintf(stderr, "limit: %s\n", why);
    } else if (verdict == PLAN_SKIP) {
        fputs("{\"type\":\"skip\",\"reason\":", stdout);
        put_text(why);
        puts("}");
    }
    /* The process ends here: its memory goes with it. */
    return verdict == PLAN_BAD ? BAD_INPUT : verdict == PLAN_SKIP ? SKIPPED : rounds(&job);
}
