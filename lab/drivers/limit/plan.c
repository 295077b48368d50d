#define _GNU_SOURCE
#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { VERSION = 1 };

/* The line's members that the loop looks at. */
struct line {
    char *type, *operation, *sink, *source, *endpoint, *bucket, *listing;
    uint64_t version, concurrency, part;
    int checksums, path_style;
};

struct reason {
    char *text;
    size_t capacity;
};

static enum verdict because(struct reason *why, enum verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, why->capacity, format, arguments);
    va_end(arguments);
    return verdict;
}

static void read_item(struct json *json, struct item *item)
{
    char name[16];
    *item = (struct item){0};
    json_enter(json, '{');
    while (json_member(json, name, sizeof name)) {
        if (!item->name && (strcmp(name, "key") == 0 || strcmp(name, "prefix") == 0)) {
            item->name = json_text(json);
        } else if (strcmp(name, "size") == 0) {
            item->size = json_number(json, 0);
        } else if (strcmp(name, "range") == 0 && json->at[strspn(json->at, " ")] == '[') {
            item->ranged = true;
            json_enter(json, '[');
            if (json_element(json))
                item->from = json_number(json, 0);
            if (json_element(json))
                item->to = json_number(json, 0);
            if (json_element(json))
                json->bad = true;
        } else {
            json_skip(json);
        }
    }
    if (!item->ranged)
        item->to = item->size;
    if (!item->name || item->from > item->to || item->to > item->size || (item->ranged && item->from == item->to))
        json->bad = true;
}

static void read_work(struct json *json, struct plan *plan)
{
    size_t capacity = 0;
    json_enter(json, '[');
    while (json_element(json)) {
        if (plan->count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            struct item *more = realloc(plan->items, capacity * sizeof *more);
            if (!more) {
                json->bad = true;
                return;
            }
            plan->items = more;
        }
        read_item(json, &plan->items[plan->count++]);
    }
}

static void read_line(struct json *json, struct line *line, struct plan *plan)
{
    char name[16];
    struct { const char *name; char **to; } texts[] = {
        {"type", &line->type}, {"operation", &line->operation}, {"sink", &line->sink},
        {"source", &line->source}, {"endpoint", &line->endpoint}, {"bucket", &line->bucket},
        {"listing", &line->listing},
    };
    json_enter(json, '{');
    while (json_member(json, name, sizeof name)) {
        char **to = NULL;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (strcmp(name, texts[i].name) == 0)
                to = texts[i].to;
        if (to && !*to)
            *to = json_text(json);
        else if (strcmp(name, "version") == 0)
            line->version = json_number(json, 0);
        else if (strcmp(name, "concurrency") == 0)
            line->concurrency = json_number(json, plan->options.connections);
        else if (strcmp(name, "part_size") == 0)
            line->part = json_number(json, plan->options.part);
        else if (strcmp(name, "checksums") == 0)
            line->checksums = json_truth(json);
        else if (strcmp(name, "path_style") == 0)
            line->path_style = json_truth(json);
        else if (strcmp(name, "work") == 0 && !plan->items)
            read_work(json, plan);
        else
            json_skip(json);
    }
}

static enum verdict judge(struct line *line, struct plan *plan, struct reason *why)
{
    static const char *const modes[] = {[MODE_GET] = "get", [MODE_PUT] = "put", [MODE_LIST] = "list"};
    struct options *o = &plan->options;
    unsigned port = 80;
    size_t mode = 0;
    char slash;
    while (mode < 3 && strcmp(modes[mode], line->operation) != 0)
        mode++;
    if (mode == 3)
        return because(why, PLAN_BAD, "there is no operation %s", line->operation);
    o->mode = (enum mode)mode;
    const char *sink = line->sink ? line->sink : "discard";
    if (o->mode == MODE_GET && strcmp(sink, "discard") != 0 && strcmp(sink, "memory") != 0)
        return because(why, PLAN_SKIP, "the raw loop has no sink %s", sink);
    o->sink = o->mode == MODE_GET && *sink == 'm' ? SINK_MEMORY : SINK_DISCARD;
    if (o->mode == MODE_PUT && line->source && strcmp(line->source, "memory") != 0)
        return because(why, PLAN_SKIP, "the raw loop has no source %s", line->source);
    if (line->listing)
        return because(why, PLAN_SKIP, "the raw loop doesn't list what it gets");
    if (line->checksums == 1)
        return because(why, PLAN_SKIP, "the raw loop looks at no checksums");
    if (line->path_style == 0)
        return because(why, PLAN_SKIP, "the raw loop names buckets in the path alone");
    if (strncmp(line->endpoint, "https:", 6) == 0)
        return because(why, PLAN_SKIP, "the raw loop has no TLS");
    int fields = sscanf(line->endpoint, "http://%255[^:/]:%u%c", o->host, &port, &slash);
    if (fields < 1 || (fields == 3 && slash != '/') || !port || port > 65535)
        return because(why, PLAN_BAD, "the endpoint must be http://HOST:PORT, not %s", line->endpoint);
    o->port = (uint16_t)port;
    o->bucket = line->bucket;
    line->bucket = NULL;
    if (!line->concurrency || !line->part || line->concurrency > 100000)
        return because(why, PLAN_BAD, "concurrency and part_size are at least 1, concurrency at most 100000");
    o->connections = plan->concurrency = line->concurrency;
    o->part = line->part;
    plan->split = o->mode == MODE_GET && plan->count == 1 && plan->items->to - plan->items->from > o->part;
    for (size_t i = 0; i < plan->count; i++)
        if (o->mode == MODE_PUT && plan->items[i].ranged)
            return because(why, PLAN_SKIP, "a range of an object can't be put");
    return PLAN_READY;
}

enum verdict plan_read(const char *text, struct plan *plan, char *why, size_t capacity)
{
    struct reason reason = {why, capacity};
    struct json json = {text, false};
    struct line line = {.concurrency = plan->options.connections, .part = plan->options.part, .path_style = 1};
    enum verdict verdict;
    read_line(&json, &line, plan);
    if (!json_ended(&json))
        verdict = because(&reason, PLAN_BAD, "the plan is malformed at its byte %zu: \"%.40s\"", (size_t)(json.at - text),
                          json.at);
    else if (!line.type || strcmp(line.type, "plan") != 0)
        verdict = because(&reason, PLAN_BAD, "the first line must be a plan");
    else if (line.version != VERSION)
        verdict = because(&reason, PLAN_BAD, "the plan is of version %llu; this driver understands %d",
                          (unsigned long long)line.version, VERSION);
    else if (!line.operation || !line.endpoint || !line.bucket || !plan->count)
        verdict = because(&reason, PLAN_BAD, "the plan needs an operation, an endpoint, a bucket and work");
    else
        verdict = judge(&line, plan, &reason);
    free(line.type);
    free(line.operation);
    free(line.sink);
    free(line.source);
    free(line.endpoint);
    free(line.bucket);
    free(line.listing);
    return verdict;
}
