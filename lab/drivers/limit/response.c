#define _GNU_SOURCE
#include "limit.h"

#include <string.h>
#include <strings.h>

static bool header_is(const char *line, size_t len, const char *name, size_t name_len)
{
    return len > name_len && line[name_len] == ':' && strncasecmp(line, name, name_len) == 0;
}

int response_parse(const char *bytes, size_t len, struct response *out)
{
    const char *end = memmem(bytes, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (end - bytes < 12 || memcmp(bytes, "HTTP/1.1 ", 9) != 0)
        return -1;
    out->status = 0;
    for (int i = 9; i < 12; i++) {
        if (bytes[i] < '0' || bytes[i] > '9')
            return -1;
        out->status = out->status * 10 + (unsigned)(bytes[i] - '0');
    }
    out->head_len = (size_t)(end - bytes) + 4;
    out->close = false;
    bool has_length = false;

    const char *line = memchr(bytes, '\n', out->head_len);
    while (line && ++line < end) {
        const char *line_end = memchr(line, '\r', (size_t)(end - line) + 1);
        size_t line_len = (size_t)(line_end - line);
        char first = line[0] | 0x20;
        if (first == 'c' && header_is(line, line_len, "content-length", 14)) {
            size_t value = 0;
            const char *digit = line + 15;
            while (digit < line_end && *digit == ' ')
                digit++;
            if (digit == line_end)
                return -1;
            for (; digit < line_end; digit++) {
                if (*digit < '0' || *digit > '9' || value > (SIZE_MAX - 9) / 10)
                    return -1;
                value = value * 10 + (size_t)(*digit - '0');
            }
            out->content_length = value;
            has_length = true;
        } else if (first == 'c' && header_is(line, line_len, "connection", 10)) {
            out->close = memmem(line, line_len, "close", 5) != NULL;
        } else if (first == 't' && header_is(line, line_len, "transfer-encoding", 17)) {
            return -1;
        }
        line = memchr(line_end, '\n', out->head_len - (size_t)(line_end - bytes));
    }
    if (!has_length) {
        if (out->status != 204)
            return -1;
        out->content_length = 0;
    }
    return 1;
}
