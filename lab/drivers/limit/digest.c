#include "limit.h"

#include <string.h>

/* CRC-32's polynomial, its coefficients from the highest bit down. */
enum { POLYNOMIAL = 0xEDB88320 };

uint32_t crc32_of(uint32_t before, const unsigned char *bytes, size_t len)
{
    static uint32_t table[256];
    for (uint32_t n = 0; !table[255] && n < 256; n++) {
        uint32_t value = n;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ (uint32_t)POLYNOMIAL : value >> 1;
        table[n] = value;
    }
    uint32_t crc = ~before;
    for (size_t i = 0; i < len; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
    return ~crc;
}

/* The product of two polynomials, modulo CRC-32's. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ (uint32_t)POLYNOMIAL : b >> 1;
    }
    return product;
}

uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t second_len)
{
    /* The first is moved on by x to the power of 8 for each byte of the second. */
    uint32_t power = 1u << 23, moved = first;
    for (; second_len; second_len >>= 1, power = multiply(power, power))
        if (second_len & 1)
            moved = multiply(power, moved);
    return moved ^ second;
}

void fill_body(unsigned char *memory, size_t len)
{
    enum { PERIOD = 1048583 };
    static unsigned char table[PERIOD + 8];
    uint64_t phase = 0xCBF29CE484222325u;
    for (const char *c = "body"; *c; c++)
        phase = (phase ^ (unsigned char)*c) * 0x100000001B3u;
    for (uint64_t n = 0; n * 8 < PERIOD; n++) {
        uint64_t word = (n + 1) * 0x9E3779B97F4A7C15u;
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
        word = (word ^ word >> 27) * 0x94D049BB133111EBu;
        word ^= word >> 31;
        for (int byte = 0; byte < 8; byte++)
            table[n * 8 + (uint64_t)byte] = (unsigned char)(word >> 8 * byte);
    }
    for (size_t at = 0, from = phase % PERIOD; at < len; from = 0) {
        size_t run = PERIOD - from < len - at ? PERIOD - from : len - at;
        memcpy(memory + at, table + from, run);
        at += run;
    }
}
