/* A reader of msgpack: what an event is made of, and nothing else.
 *
 * The bytes come from strangers. A reader has a place and an end; every function compares what it is about to read with
 * what is left, before it reads or adds, and says false where the bytes are cut or hold another type. Lengths have 32
 * bits at most, and are compared with a distance, never added to a pointer first. Nothing here recurses, allocates, or
 * knows of Python. After false, the place means nothing.
 *
 * It accepts what msgspec's strict decoding accepts for the types of an event's fields: integers in any of their forms
 * (-2**63 to 2**64 - 1), floats of both sizes, text, bytes, true and false, arrays and maps in any of their forms.
 * Whether text is UTF-8 is a question of its own (`msgpack_is_utf8`), which need not be asked again of bytes that were
 * once found sound. */
#ifndef HOLDFAST_READER_H
#define HOLDFAST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { const uint8_t *at, *end; } msgpack_reader;

/* Text or bytes where they lie. */
typedef struct { const uint8_t *bytes; uint32_t length; } msgpack_text;

/* An integer of 64 bits, with or without a sign: the number's bits in two's complement, and whether it is negative. */
typedef struct { uint64_t bits; bool negative; } msgpack_integer;

typedef enum { MSGPACK_INTEGER, MSGPACK_FLOAT, MSGPACK_TEXT, MSGPACK_BOOLEAN } msgpack_kind;

typedef struct {
    msgpack_kind kind;
    union {
        msgpack_integer integer;
        double number;
        msgpack_text text;
        bool boolean;
    };
} msgpack_value;

static inline size_t msgpack_left(const msgpack_reader *r) { return (size_t)(r->end - r->at); }

/* ---- big-endian numbers, which the caller knows to be there */

static inline uint16_t msgpack_load16(const uint8_t *p) { return (uint16_t)((unsigned)p[0] << 8 | p[1]); }

static inline uint32_t msgpack_load32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t msgpack_load64(const uint8_t *p) {
    return (uint64_t)msgpack_load32(p) << 32 | msgpack_load32(p + 4);
}

/* The number of `size` bytes behind the first one, 1, 2, 4 or 8. */
static inline bool msgpack_load_behind(msgpack_reader *r, unsigned size, uint64_t *number) {
    if (msgpack_left(r) <= size) return false;
    const uint8_t *p = r->at + 1;
    *number = size == 1 ? p[0] : size == 2 ? msgpack_load16(p) : size == 4 ? msgpack_load32(p) : msgpack_load64(p);
    r->at += size + 1;
    return true;
}

/* ---- headers of arrays and maps. The count is only what the bytes claim. */

static inline bool msgpack_read_count(msgpack_reader *r, uint8_t fixed, uint8_t wide, uint32_t *count) {
    if (!msgpack_left(r)) return false;
    uint8_t code = *r->at;
    if ((code & 0xf0) == fixed) {
        *count = code & 0x0f;
        r->at++;
        return true;
    }
    uint64_t number;
    if (code != wide && code != wide + 1) return false;
    if (!msgpack_load_behind(r, code == wide ? 2 : 4, &number)) return false;
    *count = (uint32_t)number;
    return true;
}

static inline bool msgpack_read_array(msgpack_reader *r, uint32_t *count) {
    return msgpack_read_count(r, 0x90, 0xdc, count);
}

/* The names and values follow. A name may come twice: then the last value holds, as in a dict. */
static inline bool msgpack_read_map(msgpack_reader *r, uint32_t *count) {
    return msgpack_read_count(r, 0x80, 0xde, count);
}

/* ---- text and bytes */

static inline bool msgpack_take(msgpack_reader *r, uint64_t length, msgpack_text *text) {
    if (msgpack_left(r) < length) return false;
    text->bytes = r->at;
    text->length = (uint32_t)length;
    r->at += length;
    return true;
}

/* Text, which may not be UTF-8. */
static inline bool msgpack_read_text(msgpack_reader *r, msgpack_text *text) {
    if (!msgpack_left(r)) return false;
    uint8_t code = *r->at;
    uint64_t length;
    if ((code & 0xe0) == 0xa0) {
        r->at++;
        return msgpack_take(r, code & 0x1f, text);
    }
    if (code < 0xd9 || code > 0xdb) return false;
    return msgpack_load_behind(r, 1u << (code - 0xd9), &length) && msgpack_take(r, length, text);
}

static inline bool msgpack_read_bytes(msgpack_reader *r, msgpack_text *bytes) {
    if (!msgpack_left(r)) return false;
    uint8_t code = *r->at;
    uint64_t length;
    if (code < 0xc4 || code > 0xc6) return false;
    return msgpack_load_behind(r, 1u << (code - 0xc4), &length) && msgpack_take(r, length, bytes);
}

/* ---- numbers */

static inline bool msgpack_read_integer(msgpack_reader *r, msgpack_integer *integer) {
    if (!msgpack_left(r)) return false;
    uint8_t code = *r->at;
    if (code < 0x80 || code >= 0xe0) {
        integer->bits = (uint64_t)(int64_t)(int8_t)code;
        integer->negative = code >= 0xe0;
        r->at++;
        return true;
    }
    if (code < 0xcc || code > 0xd3) return false;
    unsigned size = 1u << (code & 3);
    uint64_t number;
    if (!msgpack_load_behind(r, size, &number)) return false;
    integer->negative = false;
    if (code >= 0xd0) {
        uint64_t sign = 1ull << (8 * size - 1);
        number = (number ^ sign) - sign; /* the sign's bit, spread upwards */
        integer->negative = number >> 63;
    }
    integer->bits = number;
    return true;
}

/* Whether an integer has the range of attributes, -2**63 to 2**63 - 1; then `bits` are those of an int64_t. */
static inline bool msgpack_is_int64(msgpack_integer integer) { return integer.negative || !(integer.bits >> 63); }

/* The value of an attribute; text may not be UTF-8, and a float may not be finite. */
static inline bool msgpack_read_value(msgpack_reader *r, msgpack_value *value) {
    if (!msgpack_left(r)) return false;
    uint8_t code = *r->at;
    uint64_t number;
    if ((code >= 0xa0 && code <= 0xbf) || (code >= 0xd9 && code <= 0xdb)) {
        value->kind = MSGPACK_TEXT;
        return msgpack_read_text(r, &value->text);
    }
    if (code == 0xcb) {
        value->kind = MSGPACK_FLOAT;
        if (!msgpack_load_behind(r, 8, &number)) return false;
        memcpy(&value->number, &number, sizeof(value->number));
        return true;
    }
    if (code == 0xc2 || code == 0xc3) {
        value->kind = MSGPACK_BOOLEAN;
        value->boolean = code == 0xc3;
        r->at++;
        return true;
    }
    if (code == 0xca) {
        if (!msgpack_load_behind(r, 4, &number)) return false;
        uint32_t bits = (uint32_t)number;
        float single;
        memcpy(&single, &bits, sizeof(single));
        value->kind = MSGPACK_FLOAT;
        value->number = (double)single;
        return true;
    }
    value->kind = MSGPACK_INTEGER;
    return msgpack_read_integer(r, &value->integer);
}

/* ---- text */

static inline bool msgpack_is_ascii(const uint8_t *p, size_t length) {
    uint64_t word, found = 0;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        found |= word;
    }
    for (; length; p++, length--) found |= *p;
    return !(found & 0x8080808080808080u);
}

/* The bytes of the character that begins here, 0 if none does: shortest forms only, no surrogates, at most U+10FFFF. */
static inline unsigned msgpack_utf8_step(const uint8_t *p, size_t left) {
    uint8_t first = p[0];
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    unsigned size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (left < size) return 0;
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    for (unsigned i = 2; i < size; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return size;
}

/* Whether Python could decode it. */
static inline bool msgpack_is_utf8(msgpack_text text) {
    if (msgpack_is_ascii(text.bytes, text.length)) return true;
    for (size_t at = 0; at < text.length;) {
        unsigned size = msgpack_utf8_step(text.bytes + at, text.length - at);
        if (!size) return false;
        at += size;
    }
    return true;
}

#endif
