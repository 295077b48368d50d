/* One pass over a line of JSON: each call takes what it names and moves on. A line that is not what was asked for
 * sets `bad` once and for all; the calls after it take nothing, so a caller looks at the end alone. */
#ifndef LIMIT_JSON_H
#define LIMIT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
    const char *at;
    bool bad;
};

/* Enters an array or an object: `open` is its first character. */
void json_enter(struct json *json, char open);
/* Whether there is a next element; false at the array's end, which is then behind. */
bool json_element(struct json *json);
/* The next member's name, cut to `capacity`; false at the object's end, which is then behind. */
bool json_member(struct json *json, char *name, size_t capacity);
/* A text of its own, NULL for null. */
char *json_text(struct json *json);
/* A whole number; `absent` for null. */
uint64_t json_number(struct json *json, uint64_t absent);
/* 1, 0, or -1 for null. */
int json_truth(struct json *json);
/* Whatever value comes. */
void json_skip(struct json *json);
/* Whether the line ends here. */
bool json_ended(struct json *json);

#endif
