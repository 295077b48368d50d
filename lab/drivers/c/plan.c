/* Reads a plan and refuses what it must. */
#include "driver.h"

#include <aws/common/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bad(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(EXIT_BAD_PLAN);
}

static void skip(const char *why) {
    printf("{\"type\":\"skip\",\"reason\":\"%s\"}\n", why);
    fflush(stdout);
    exit(EXIT_SKIP);
}

static const struct aws_json_value *member(const struct aws_json_value *object, const char *name) {
    const struct aws_json_value *value = aws_json_value_get_from_object_c_str(object, name);
    return value && !aws_json_value_is_null(value) ? value : NULL;
}

/* A copy of a text, or NULL. */
static char *text(const struct aws_json_value *object, const char *name) {
    const struct aws_json_value *value = member(object, name);
    struct aws_byte_cursor said;
    if (!value)
        return NULL;
    if (aws_json_value_get_string(value, &said))
        bad("a text of the plan is none");
    return strndup((const char *)said.ptr, said.len);
}

static double number(const struct aws_json_value *object, const char *name, double missing) {
    const struct aws_json_value *value = member(object, name);
    double said;
    if (!value)
        return missing;
    if (aws_json_value_get_number(value, &said) || said < 0)
        bad("a number of the plan is none, or negative");
    return said;
}

static int add_item(size_t n, const struct aws_json_value *value, bool *go_on, void *data) {
    struct plan *plan = data;
    struct item *item = &plan->work[n];
    (void)go_on;
    if (!aws_json_value_is_object(value))
        bad("an item of the plan is no object");
    item->key = text(value, "key");
    item->end = (uint64_t)number(value, "size", 0);
    const struct aws_json_value *range = member(value, "range");
    if (range) {
        double first = -1, end = -1;
        uint64_t size = item->end;
        if (aws_json_get_array_size(range) == 2) {
            aws_json_value_get_number(aws_json_get_array_element(range, 0), &first);
            aws_json_value_get_number(aws_json_get_array_element(range, 1), &end);
        }
        if (first < 0 || first >= end || end > (double)size)
            bad("a range of the plan is outside its object");
        item->first = (uint64_t)first;
        item->end = (uint64_t)end;
        item->ranged = true;
    }
    if (!item->key || !*item->key)
        bad("an item of the plan has no key");
    if (item->end - item->first > plan->largest)
        plan->largest = item->end - item->first;
    return AWS_OP_SUCCESS;
}

static void operation(struct plan *plan, const struct aws_json_value *line) {
    char *name = text(line, "operation"), *sink = text(line, "sink"), *source = text(line, "source");
    static const char *const sinks[] = {"discard", "memory", "stream", "file"};
    if (!name)
        bad("the plan names no operation");
    if (!strcmp(name, "put"))
        plan->operation = PUT;
    else if (strcmp(name, "get"))
        skip("aws-c-s3 offers gets and puts alone");
    if (member(line, "listing"))
        skip("aws-c-s3 offers no listing");
    plan->from_file = source && !strcmp(source, "file");
    size_t which = 0;
    while (plan->operation == GET && (!sink || strcmp(sink, sinks[which])))
        if (++which == sizeof sinks / sizeof *sinks)
            skip("a sink that it does not have");
    plan->sink = (enum sink)which;
    free(name);
    free(sink);
    free(source);
}

void plan_parse(struct plan *plan, const char *line, size_t length) {
    struct aws_json_value *value =
        aws_json_value_new_from_string(aws_default_allocator(), aws_byte_cursor_from_array(line, length));
    if (!value || !aws_json_value_is_object(value))
        bad("the plan's line is no JSON object");
    char *type = text(value, "type");
    if (!type || strcmp(type, "plan"))
        bad("the first line's type is not \"plan\"");
    free(type);
    if (number(value, "version", 0) != 1)
        bad("the plan's version is not 1, which is what this driver speaks");
    const struct aws_json_value *work = member(value, "work");
    if (!work || !aws_json_value_is_array(work) || !(plan->items = aws_json_get_array_size(work)))
        bad("the plan has no work");
    operation(plan, value);
    plan->work = calloc(plan->items, sizeof *plan->work);
    aws_json_const_iterate_array(work, add_item, plan);
    if (member(value, "concurrency") && !(plan->concurrency = (unsigned)number(value, "concurrency", 0)))
        bad("the plan's concurrency is 0");
    if (member(value, "part_size") && !(plan->part_size = (uint64_t)number(value, "part_size", 0)))
        bad("the plan's part size is 0");
    const struct aws_json_value *checksums = member(value, "checksums");
    if (checksums)
        aws_json_value_get_boolean(checksums, &plan->checksums);
    plan->endpoint = text(value, "endpoint");
    plan->region = text(value, "region");
    plan->bucket = text(value, "bucket");
    plan->ca_file = text(value, "ca_file");
    plan->folder = text(value, "folder");
    if (!plan->endpoint || !plan->region || !plan->bucket)
        bad("the plan names no endpoint, no region or no bucket");
    if ((plan->from_file || plan->sink == INTO_FILE) && !plan->folder)
        bad("the plan has files and names no folder");
    aws_json_value_destroy(value);
}
