/* Mutations that know msgpack: most of what bytes at random become is refused at its first byte. The elements of the
 * input are found, however damaged it is, and one of them is replaced by something of another kind or form, copied over
 * or behind another, or taken out; the count of what it belongs to is changed with it, or, now and then, is not. */
#ifndef FUZZING_MUTATION_H
#define FUZZING_MUTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);

enum { ELEMENTS_MAX = 2048, DEPTH_MAX = 6, NOBODY = -1 };

typedef struct { size_t start, end; int parent; } element;

static uint64_t draw_state;

static uint32_t draw(uint32_t below) {
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((draw_state >> 33) % below);
}

static uint64_t big_endian(const uint8_t *p, size_t left, unsigned size) {
    uint64_t number = 0;
    for (unsigned i = 0; i < size && i < left; i++) number = number << 8 | p[i];
    return number;
}

/* The length of an element without what it contains, and how many elements that is. */
static size_t measure(const uint8_t *p, size_t left, uint64_t *children) {
    uint8_t c = *p;
    size_t behind = left - 1;
    *children = 0;
    if (c >= 0x80 && c <= 0x8f) *children = 2 * (c & 15);
    else if (c >= 0x90 && c <= 0x9f) *children = c & 15;
    else if (c >= 0xa0 && c <= 0xbf) return 1 + (c & 31);
    else if (c >= 0xc4 && c <= 0xc9) { /* bin, ext */
        unsigned size = 1u << ((c - 0xc4) % 3);
        return 1 + size + (c > 0xc6) + big_endian(p + 1, behind, size);
    } else if (c == 0xca) return 5;
    else if (c == 0xcb) return 9;
    else if (c >= 0xcc && c <= 0xd3) return 1 + (1u << (c & 3));
    else if (c >= 0xd4 && c <= 0xd8) return 2 + (1u << (c - 0xd4));
    else if (c >= 0xd9 && c <= 0xdb) {
        unsigned size = 1u << (c - 0xd9);
        return 1 + size + big_endian(p + 1, behind, size);
    } else if (c >= 0xdc) { /* wide arrays and maps; above them, small negative numbers */
        if (c >= 0xe0) return 1;
        unsigned size = c & 1 ? 4 : 2;
        *children = big_endian(p + 1, behind, size) * (c >= 0xde ? 2 : 1);
        return 1 + size;
    }
    return 1;
}

static int find_elements(const uint8_t *data, size_t size, element *found) {
    struct { int owner; uint64_t left; } open[DEPTH_MAX];
    int count = 0, depth = 0;
    size_t at = 0;
    while (at < size && count < ELEMENTS_MAX) {
        uint64_t children;
        size_t length = measure(data + at, size - at, &children);
        if (length > size - at) length = size - at;
        found[count] = (element){at, at + length, depth ? open[depth - 1].owner : NOBODY};
        at += length;
        if (children && depth < DEPTH_MAX) {
            open[depth].owner = count;
            open[depth++].left = children;
            count++;
            continue;
        }
        count++;
        while (depth && --open[depth - 1].left == 0) found[open[--depth].owner].end = at;
    }
    while (depth) found[open[--depth].owner].end = at;
    return count;
}

/* Puts other bytes in the place of some; the new size, or the old one if there is no room. */
static size_t splice(uint8_t *data, size_t size, size_t size_max, size_t start, size_t end, const uint8_t *with, size_t length) {
    if (size - (end - start) + length > size_max) return size;
    memmove(data + start + length, data + end, size - end);
    memcpy(data + start, with, length);
    return size - (end - start) + length;
}

/* Changes the count in a header by one for an array, if it has the room. */
static void count_changes(uint8_t *header, int change) {
    uint8_t c = *header;
    if ((c >= 0x80 && c <= 0x9f) && (change > 0 ? (c & 15) < 15 : (c & 15) > 0)) *header = (uint8_t)(c + change);
    else if (c == 0xdc || c == 0xde) header[2] = (uint8_t)(header[2] + change);
    else if (c == 0xdd || c == 0xdf) header[4] = (uint8_t)(header[4] + change);
}

#define TEXT(literal) {sizeof(literal) - 1, literal}
static const struct { size_t length; const char *bytes; } odd[] = {
    TEXT("\x00"), TEXT("\x01"), TEXT("\x7f"), TEXT("\xff"), TEXT("\xe0"), TEXT("\xcc\x00"), TEXT("\xcc\xff"),
    TEXT("\xcd\x00\x05"), TEXT("\xcd\xff\xff"), TEXT("\xce\x00\x00\x00\x01"), TEXT("\xce\xff\xff\xff\xff"),
    TEXT("\xcf\x00\x00\x00\x00\x00\x00\x00\x01"), TEXT("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"),
    TEXT("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"), TEXT("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), TEXT("\xd0\x80"),
    TEXT("\xd0\x01"), TEXT("\xd1\x80\x00"), TEXT("\xd2\x80\x00\x00\x00"), TEXT("\xd2\xff\xff\xff\xff"),
    TEXT("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), TEXT("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"),
    TEXT("\xd3\x00\x00\x00\x00\x00\x00\x00\x02"), TEXT("\xca\x3f\x80\x00\x00"), TEXT("\xca\x7f\xc0\x00\x00"),
    TEXT("\xca\xff\x80\x00\x00"), TEXT("\xca\x00\x00\x00\x01"), TEXT("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00"),
    TEXT("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"), TEXT("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"),
    TEXT("\xcb\x80\x00\x00\x00\x00\x00\x00\x00"), TEXT("\xcb\x43\xe0\x00\x00\x00\x00\x00\x00"), TEXT("\xc0"), TEXT("\xc1"),
    TEXT("\xc2"), TEXT("\xc3"), TEXT("\xa0"), TEXT("\xa1x"), TEXT("\xa1s"), TEXT("\xa5topic"), TEXT("\xd9\x05topic"),
    TEXT("\xda\x00\x01x"), TEXT("\xdb\x00\x00\x00\x01x"), TEXT("\xd9\x00"), TEXT("\xdb\xff\xff\xff\xff"), TEXT("\xda\xff\xffx"),
    TEXT("\xa2\xc3\xa4"), TEXT("\xa3\xe2\x82\xac"), TEXT("\xa4\xf0\x9f\x98\x80"), TEXT("\xa1\x80"), TEXT("\xa2\xc0\x80"),
    TEXT("\xa3\xed\xa0\x80"), TEXT("\xa3\xe0\x80\x80"), TEXT("\xa4\xf4\x90\x80\x80"), TEXT("\xa4\xf5\x80\x80\x80"),
    TEXT("\xa2\xe2\x82"), TEXT("\xa9" "12345678\xff"), TEXT("\xc4\x00"), TEXT("\xc4\x01p"), TEXT("\xc5\x00\x01p"),
    TEXT("\xc6\x00\x00\x00\x01p"), TEXT("\xc6\xff\xff\xff\xff"), TEXT("\xc7\x01\x01x"), TEXT("\xd4\x01x"), TEXT("\xd8\x01"),
    TEXT("\x80"), TEXT("\x81\xa1x\x01"), TEXT("\x82\xa1x\x01\xa1x\x02"), TEXT("\xde\x00\x00"), TEXT("\xdf\x00\x00\x00\x00"),
    TEXT("\xdf\xff\xff\xff\xff"), TEXT("\xdc\x00\x00"), TEXT("\x90"), TEXT("\xdd\xff\xff\xff\xff"), TEXT("\xdc\x20\x01"),
    TEXT("\x95\xa1p\x01\x02\xa0\x80"), TEXT("\x98\xa1p\x01\x03\xa1t\x81\xa1x\x01\xc4\x00\x05\x07"),
};

/* The header of text or bytes in a wider form, an integer in nine bytes. */
static size_t rewrite(uint8_t *data, size_t size, size_t size_max, element e) {
    uint8_t fresh[9], c = data[e.start];
    if (c >= 0xa0 && c <= 0xbf) {
        unsigned width = 1u << draw(3);
        memset(fresh, 0, sizeof(fresh));
        fresh[0] = (uint8_t)(width == 1 ? 0xd9 : width == 2 ? 0xda : 0xdb);
        fresh[width] = c & 31;
        return splice(data, size, size_max, e.start, e.start + 1, fresh, width + 1);
    }
    if (c < 0x80 || c >= 0xe0) {
        uint64_t number = (uint64_t)(int64_t)(int8_t)c;
        fresh[0] = draw(2) ? 0xd3 : 0xcf;
        for (int i = 0; i < 8; i++) fresh[1 + i] = (uint8_t)(number >> 8 * (7 - i));
        return splice(data, size, size_max, e.start, e.start + 1, fresh, 9);
    }
    if (c >= 0x80 && c <= 0x9f) {
        bool wide = draw(2);
        memset(fresh, 0, sizeof(fresh));
        fresh[0] = (uint8_t)((c < 0x90 ? 0xde : 0xdc) + wide);
        fresh[wide ? 4 : 2] = c & 15;
        return splice(data, size, size_max, e.start, e.start + 1, fresh, wide ? 5 : 3);
    }
    return size;
}

static size_t mutate_once(uint8_t *data, size_t size, size_t size_max) {
    static element found[ELEMENTS_MAX];
    static uint8_t copy[4096];
    int count = find_elements(data, size, found);
    if (!count) return splice(data, size, size_max, 0, 0, (const uint8_t *)"\x91\x95\xa1p\x01\x02\xa0\x80", 8);
    element e = found[draw((uint32_t)count)], other = found[draw((uint32_t)count)];
    size_t length = other.end - other.start;
    if (length > sizeof(copy)) length = sizeof(copy);
    memcpy(copy, data + other.start, length);
    uint32_t which = draw((uint32_t)(sizeof(odd) / sizeof(*odd)));
    const uint8_t *strange = (const uint8_t *)odd[which].bytes;
    size_t before = size;
    switch (draw(8)) {
        case 0:
        case 1: return splice(data, size, size_max, e.start, e.end, strange, odd[which].length);
        case 2: return splice(data, size, size_max, e.start, e.end, copy, length);
        case 3:
        case 4: /* one more, behind this one; in a map, a name and a value */
            size = splice(data, size, size_max, e.end, e.end, copy, length);
            if (size != before && e.parent != NOBODY && draw(8)) count_changes(data + found[e.parent].start, 1);
            return size;
        case 5:
            size = splice(data, size, size_max, e.start, e.end, strange, 0);
            if (e.parent != NOBODY && draw(8)) count_changes(data + found[e.parent].start, -1);
            return size;
        case 6: return rewrite(data, size, size_max, e);
        default: return e.end - e.start ? (data[e.start + draw((uint32_t)(e.end - e.start))] = (uint8_t)draw(256), size) : size;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned int seed) {
    draw_state = seed;
    if (draw(4) == 0) return LLVMFuzzerMutate(data, size, size_max);
    for (uint32_t steps = 1 + draw(3); steps; steps--) size = mutate_once(data, size, size_max);
    return size;
}

#endif
