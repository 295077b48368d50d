#define _GNU_SOURCE
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

static char peek(struct json *json)
{
    while (*json->at && strchr(" \t\r\n", *json->at))
        json->at++;
    return json->bad ? '\0' : *json->at;
}

static bool take(struct json *json, const char *word)
{
    size_t len = strlen(word);
    peek(json);
    if (json->bad || strncmp(json->at, word, len) != 0)
        return false;
    json->at += len;
    return true;
}

static void expect(struct json *json, const char *word)
{
    if (!take(json, word))
        json->bad = true;
}

void json_enter(struct json *json, char open)
{
    expect(json, (char[]){open, '\0'});
}

/* Past the comma between two values; false at `close`, which is taken. */
static bool another(struct json *json, const char *close)
{
    if (json->bad || take(json, close))
        return false;
    const char *before = json->at - 1;
    while (strchr(" \t\r\n", *before))
        before--;
    if (*before != '[' && *before != '{')
        expect(json, ",");
    return !json->bad;
}

bool json_element(struct json *json)
{
    return another(json, "]");
}

bool json_member(struct json *json, char *name, size_t capacity)
{
    if (!another(json, "}"))
        return false;
    char *text = json_text(json);
    if (!text)
        json->bad = true;
    else
        strncpy(name, text, capacity - 1)[capacity - 1] = '\0';
    free(text);
    expect(json, ":");
    return !json->bad;
}

static uint32_t hex4(struct json *json)
{
    char digits[5] = "", *end;
    strncpy(digits, json->at, 4);
    uint32_t value = (uint32_t)strtoul(digits, &end, 16);
    if (end != digits + 4)
        json->bad = true;
    else
        json->at += 4;
    return value;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xFF00u >> (more + 1)) | (c >> (6 * more)));
    while (more--)
        *to++ = (char)(0x80 | ((c >> (6 * more)) & 0x3F));
    return to;
}

static uint32_t escaped(struct json *json)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = *json->at;
    const char *known = c ? strchr(letters, c) : NULL;
    if (known) {
        json->at++;
        return (uint32_t)meant[known - letters];
    }
    if (c != 'u') {
        json->bad = true;
        return 0;
    }
    json->at++;
    uint32_t first = hex4(json);
    if (first < 0xD800 || first > 0xDBFF)
        return first;
    if (json->at[0] != '\\' || json->at[1] != 'u') {
        json->bad = true;
        return 0;
    }
    json->at += 2;
    return 0x10000 + ((first - 0xD800) << 10) + ((hex4(json) - 0xDC00) & 0x3FF);
}

char *json_text(struct json *json)
{
    if (take(json, "null"))
        return NULL;
    expect(json, "\"");
    if (json->bad)
        return NULL;
    /* No escape is shorter than what it stands for. */
    size_t room = 0;
    while (json->at[room] && json->at[room] != '"')
        room += json->at[room] == '\\' && json->at[room + 1] ? 2 : 1;
    char *text = malloc(room + 1), *to = text;
    while (text && !json->bad && *json->at != '"') {
        if (!*json->at)
            json->bad = true;
        else if (*json->at != '\\')
            *to++ = *json->at++;
        else {
            json->at++;
            to = put_utf8(to, escaped(json));
        }
    }
    if (!text || json->bad) {
        json->bad = true;
        free(text);
        return NULL;
    }
    json->at++;
    *to = '\0';
    return text;
}

uint64_t json_number(struct json *json, uint64_t absent)
{
    if (take(json, "null"))
        return absent;
    char *end;
    char first = peek(json);
    if (first < '0' || first > '9') {
        json->bad = true;
        return absent;
    }
    uint64_t value = strtoull(json->at, &end, 10);
    json->at = end;
    if (strchr(".eE", *end) && *end)
        json->bad = true;
    return value;
}

int json_truth(struct json *json)
{
    if (take(json, "null"))
        return -1;
    if (take(json, "true"))
        return 1;
    expect(json, "false");
    return 0;
}

static void skip(struct json *json, int depth)
{
    char name[2];
    char first = peek(json);
    if (depth > DEEPEST) {
        json->bad = true;
    } else if (first == '{') {
        json_enter(json, '{');
        while (json_member(json, name, sizeof name))
            skip(json, depth + 1);
    } else if (first == '[') {
        json_enter(json, '[');
        while (json_element(json))
            skip(json, depth + 1);
    } else if (first == '"') {
        free(json_text(json));
    } else if (first == '-' || (first >= '0' && first <= '9')) {
        char *end;
        (void)strtod(json->at, &end);
        json->at = end;
    } else {
        json_truth(json);
    }
}

void json_skip(struct json *json)
{
    skip(json, 0);
}

bool json_ended(struct json *json)
{
    return !json->bad && !peek(json) && !json->bad;
}
