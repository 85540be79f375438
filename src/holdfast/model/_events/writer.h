/* A writer of msgpack into memory that grows: what an event is made of, byte for byte as msgspec writes it. */
#ifndef HOLDFAST_WRITER_H
#define HOLDFAST_WRITER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct { uint8_t *bytes; size_t length, room; } msgpack_writer;

enum { MSGPACK_NUMBER_MAX = 9 }; /* the bytes of the longest number, or of the longest header */

/* Makes room for so many more bytes; -1 with MemoryError. */
static inline int writer_reserve(msgpack_writer *w, size_t more) {
    if (w->room - w->length >= more) return 0;
    size_t room = w->room * 2;
    if (room < w->length + more) room = w->length + more;
    uint8_t *bytes = room > PY_SSIZE_T_MAX ? NULL : PyMem_Realloc(w->bytes, room);
    if (!bytes) {
        PyErr_NoMemory();
        return -1;
    }
    w->bytes = bytes;
    w->room = room;
    return 0;
}

/* ---- what follows writes into room that was reserved */

static inline void write_byte(msgpack_writer *w, unsigned byte) { w->bytes[w->length++] = (uint8_t)byte; }

static inline void write_bytes(msgpack_writer *w, const void *bytes, size_t length) {
    memcpy(w->bytes + w->length, bytes, length);
    w->length += length;
}

/* A code, and a number of 1, 2, 4 or 8 bytes, big-endian. */
static inline void write_number(msgpack_writer *w, unsigned code, unsigned size, uint64_t number) {
    write_byte(w, code);
    while (size--) write_byte(w, (unsigned)(number >> 8 * size) & 0xff);
}

static inline void write_unsigned(msgpack_writer *w, uint64_t number) {
    if (number < 0x80) write_byte(w, (unsigned)number);
    else if (number <= UINT8_MAX) write_number(w, 0xcc, 1, number);
    else if (number <= UINT16_MAX) write_number(w, 0xcd, 2, number);
    else if (number <= UINT32_MAX) write_number(w, 0xce, 4, number);
    else write_number(w, 0xcf, 8, number);
}

static inline void write_signed(msgpack_writer *w, int64_t number) {
    if (number >= 0) write_unsigned(w, (uint64_t)number);
    else if (number >= -32) write_byte(w, (unsigned)number & 0xff);
    else if (number >= INT8_MIN) write_number(w, 0xd0, 1, (uint64_t)number);
    else if (number >= INT16_MIN) write_number(w, 0xd1, 2, (uint64_t)number);
    else if (number >= INT32_MIN) write_number(w, 0xd2, 4, (uint64_t)number);
    else write_number(w, 0xd3, 8, (uint64_t)number);
}

static inline void write_float(msgpack_writer *w, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    write_number(w, 0xcb, 8, bits);
}

/* Headers of arrays and maps, whose counts have 32 bits. */
static inline void write_count(msgpack_writer *w, unsigned fixed, unsigned wide, size_t count) {
    if (count < 16) write_byte(w, fixed | (unsigned)count);
    else if (count <= UINT16_MAX) write_number(w, wide, 2, count);
    else write_number(w, wide + 1, 4, count);
}

/* Headers of text and of bytes, whose lengths have 32 bits. */
static inline void write_text_header(msgpack_writer *w, size_t length) {
    if (length < 32) write_byte(w, 0xa0 | (unsigned)length);
    else if (length <= UINT8_MAX) write_number(w, 0xd9, 1, length);
    else if (length <= UINT16_MAX) write_number(w, 0xda, 2, length);
    else write_number(w, 0xdb, 4, length);
}

static inline void write_bytes_header(msgpack_writer *w, size_t length) {
    if (length <= UINT8_MAX) write_number(w, 0xc4, 1, length);
    else if (length <= UINT16_MAX) write_number(w, 0xc5, 2, length);
    else write_number(w, 0xc6, 4, length);
}

#endif
