/* crt-c: the lab's driver protocol over aws-c-s3, the C library beneath the clients called CRT. */
#include "driver.h"

#include <aws/checksums/crc.h>
#include <aws/common/json.h>
#include <aws/s3/s3.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD = 1048583, DEFAULT_ITEMS = 100 };

static struct {
    struct plan plan;
    struct client *client;
    struct transfer *transfers;
    uint8_t **memory;
    unsigned lanes;
    bool verify;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t next, done;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void item_path(const struct plan *plan, size_t n, char *path) {
    snprintf(path, PATH_MAX, "%s/%zu", plan->folder ? plan->folder : "", n);
}

/* The bytes that every PUT sends: the test server's formula for the key "body". */
static uint8_t *body(uint64_t size) {
    static uint64_t table[PERIOD / 8 + 1];
    for (uint64_t number = 1; number <= PERIOD / 8 + 1; number++) {
        uint64_t word = number * 0x9E3779B97F4A7C15u;
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
        word = (word ^ word >> 27) * 0x94D049BB133111EBu;
        table[number - 1] = word ^ word >> 31;
    }
    uint64_t phase = 0xCBF29CE484222325u;
    for (const char *letter = "body"; *letter; letter++)
        phase = (phase ^ (uint8_t)*letter) * 0x100000001B3u;
    uint8_t *made = malloc(size + 1);
    for (uint64_t at = 0, from = phase % PERIOD; at < size; from = 0) {
        uint64_t count = PERIOD - from < size - at ? PERIOD - from : size - at;
        memcpy(made + at, (uint8_t *)table + from, count);
        at += count;
    }
    return made;
}

static uint32_t crc(const uint8_t *bytes, uint64_t size) {
    uint32_t sum = 0;
    for (uint64_t at = 0; at < size; at += 1 << 30)
        sum = aws_checksums_crc32(bytes + at, (int)(size - at < 1 << 30 ? size - at : 1 << 30), sum);
    return sum;
}

static uint32_t file_crc(size_t n) {
    char path[PATH_MAX];
    static uint8_t buffer[1 << 20];
    uint32_t sum = 0;
    item_path(&all.plan, n, path);
    FILE *file = fopen(path, "rb");
    for (size_t count; file && (count = fread(buffer, 1, sizeof buffer, file));)
        sum = aws_checksums_crc32(buffer, (int)count, sum);
    if (file)
        fclose(file);
    return sum;
}

/* The next item that nobody has begun, or as many as there are. The mutex is held. */
static size_t take(void) {
    return all.next < all.plan.items ? all.next++ : all.plan.items;
}

static void begin(unsigned lane, size_t n) {
    if (n == all.plan.items)
        return;
    struct transfer *transfer = &all.transfers[n];
    *transfer = (struct transfer){.n = n, .lane = lane, .verify = all.verify};
    if (all.plan.sink == MEMORY && all.plan.operation == GET) {
        if (!all.memory[lane])
            all.memory[lane] = malloc(all.plan.largest + 1);
        transfer->memory = all.memory[lane];
    }
    client_start(all.client, transfer);
}

static void done(struct transfer *transfer) {
    const struct item *item = &all.plan.work[transfer->n];
    uint64_t wanted = item->end - item->first;
    if (!*transfer->error && transfer->received != wanted)
        snprintf(transfer->error, sizeof transfer->error, "%" PRIu64 " bytes came, not %" PRIu64, transfer->received,
                 wanted);
    if (transfer->memory && transfer->verify)
        transfer->crc = crc(transfer->memory, wanted);
    unsigned lane = transfer->lane;
    /* In one step: once the last is done another round may begin, whose items are not for this lane to take. */
    pthread_mutex_lock(&all.mutex);
    size_t n = take();
    all.done++;
    pthread_cond_signal(&all.changed);
    pthread_mutex_unlock(&all.mutex);
    begin(lane, n);
}

static void print_text(const char *text) {
    putchar('"');
    for (const unsigned char *letter = (const unsigned char *)text; *letter; letter++) {
        if (*letter == '"' || *letter == '\\')
            putchar('\\');
        /* What is beyond ASCII may have been cut in the middle. */
        putchar(*letter < ' ' || *letter > '~' ? ' ' : *letter);
    }
    putchar('"');
}

static void print_sample(const struct transfer *made) {
    printf("{\"type\":\"sample\",\"n\":%zu,\"worker\":%u,\"start_ns\":%" PRId64 ",\"first_ns\":", made->n, made->lane,
           made->start);
    if (made->first)
        printf("%" PRId64, made->first);
    else
        printf("null");
    printf(",\"end_ns\":%" PRId64 ",\"bytes\":%" PRIu64 ",\"error\":", made->end, made->received);
    if (*made->error)
        print_text(made->error);
    else
        printf("null");
    if (made->verify && !*made->error) {
        uint32_t sum = made->crc;
        if (all.plan.operation == PUT && !all.plan.from_file)
            sum = crc(all.memory[0], made->received);
        else if (all.plan.operation == PUT || all.plan.sink == INTO_FILE)
            sum = file_crc(made->n);
        printf(",\"digest\":\"%08" PRIx32 "\"", sum);
    }
    puts("}");
}

static void play(unsigned long round) {
    int64_t start = now();
    pthread_mutex_lock(&all.mutex);
    all.next = all.done = 0;
    for (unsigned lane = 0; lane < all.lanes; lane++) {
        size_t n = take();
        pthread_mutex_unlock(&all.mutex);
        begin(lane, n);
        pthread_mutex_lock(&all.mutex);
    }
    while (all.done < all.plan.items)
        pthread_cond_wait(&all.changed, &all.mutex);
    pthread_mutex_unlock(&all.mutex);
    int64_t end = now();
    printf("{\"type\":\"stopped\",\"round\":%lu}\n", round);
    fflush(stdout);
    for (size_t n = 0; n < all.plan.items; n++)
        print_sample(&all.transfers[n]);
    printf("{\"type\":\"done\",\"round\":%lu,\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64
           ",\"effective\":{\"concurrency\":",
           round, start, end);
    if (all.plan.concurrency)
        printf("%u", all.plan.concurrency);
    else
        printf("null");
    printf(",\"part_size\":%" PRIu64 ",\"checksums\":%s,\"items\":%u}}\n", client_part_size(&all.plan),
           all.plan.checksums ? "true" : "false", all.lanes);
    fflush(stdout);
}

static void rounds(void) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    puts("{\"type\":\"ready\"}");
    fflush(stdout);
    while ((length = getline(&line, &room, stdin)) > 0) {
        struct aws_json_value *order =
            aws_json_value_new_from_string(aws_default_allocator(), aws_byte_cursor_from_array(line, (size_t)length));
        struct aws_byte_cursor type = {0};
        double round = 0;
        if (order && aws_json_value_is_object(order)) {
            struct aws_json_value *value = aws_json_value_get_from_object_c_str(order, "type");
            if (value)
                aws_json_value_get_string(value, &type);
            if ((value = aws_json_value_get_from_object_c_str(order, "round")))
                aws_json_value_get_number(value, &round);
            all.verify = false;
            if ((value = aws_json_value_get_from_object_c_str(order, "verify")))
                aws_json_value_get_boolean(value, &all.verify);
        }
        if (!aws_byte_cursor_eq_c_str(&type, "go")) {
            fprintf(stderr, "a line that is no go: %.200s", line);
            exit(EXIT_BAD_PLAN);
        }
        aws_json_value_destroy(order);
        play((unsigned long)round);
    }
    free(line);
}

static void describe(void) {
    puts("{\"type\":\"describe\",\"protocol\":1,\"name\":\"crt-c\",\"client\":\"aws-c-s3\",\"version\":\"of awscrt " AWSCRT_VERSION
         "\",\"language\":\"c\",\"components\":{\"awscrt (source distribution)\":\"" AWSCRT_VERSION
         "\"},\"operations\":[\"get\",\"put\"],\"sinks\":[\"discard\",\"memory\",\"stream\",\"file\"],"
         "\"sources\":[\"memory\",\"file\"],\"settings\":[\"concurrency\",\"part_size\",\"checksums\"],\"tls\":true}");
}

int main(int count, char **arguments) {
    char *line = NULL;
    size_t room = 0;
    if (count == 2 && !strcmp(arguments[1], "describe")) {
        describe();
        return 0;
    }
    if (count != 2 || strcmp(arguments[1], "run")) {
        fprintf(stderr, "usage: crt-c describe|run\n");
        return EXIT_USAGE;
    }
    aws_s3_library_init(aws_default_allocator());
    ssize_t length = getline(&line, &room, stdin);
    plan_parse(&all.plan, line ? line : "", length > 0 ? (size_t)length : 0);
    free(line);
    all.lanes = all.plan.concurrency ? all.plan.concurrency : DEFAULT_ITEMS;
    if (all.lanes > all.plan.items)
        all.lanes = (unsigned)all.plan.items;
    all.memory = calloc(all.lanes, sizeof *all.memory);
    all.transfers = calloc(all.plan.items, sizeof *all.transfers);
    /* A put's one body is where a get's first lane has its memory. */
    if (all.plan.operation == PUT && !all.plan.from_file)
        all.memory[0] = body(all.plan.largest);
    all.client = client_open(&all.plan, all.memory[0], done);
    rounds();
    /* The client's threads have nothing to finish. */
    fflush(stdout);
    _Exit(0);
}
