/* Where an event's fields lie: `holdfast.model.event.Event`, as an array of five to eight.
 *
 *     publisher, incarnation, sequence, topic, {name: value, …}, payload = "", published_at = 0, lifetime = 0
 *
 * Read in that order: `event_read_head`, then so many times a name and a value, then `event_read_tail`. Like all that
 * reads, these say false of bytes that hold something else; text may not be UTF-8. */
#ifndef HOLDFAST_EVENT_H
#define HOLDFAST_EVENT_H

#include "reader.h"

enum { EVENT_FIELDS_MIN = 5, EVENT_FIELDS_MAX = 8 };

typedef struct {
    uint32_t fields;
    msgpack_text publisher, topic;
    msgpack_integer incarnation, sequence;
    uint32_t attributes; /* that follow, as the bytes claim */
} event_head;

typedef struct {
    msgpack_text payload;
    msgpack_integer published_at, lifetime;
} event_tail;

/* Leaves the reader at the name of the first attribute. */
static inline bool event_read_head(msgpack_reader *r, event_head *head) {
    return msgpack_read_array(r, &head->fields) && head->fields >= EVENT_FIELDS_MIN &&
           head->fields <= EVENT_FIELDS_MAX && msgpack_read_text(r, &head->publisher) &&
           msgpack_read_integer(r, &head->incarnation) && msgpack_read_integer(r, &head->sequence) &&
           msgpack_read_text(r, &head->topic) && msgpack_read_map(r, &head->attributes);
}

static inline bool event_read_attribute(msgpack_reader *r, msgpack_text *name, msgpack_value *value) {
    return msgpack_read_text(r, name) && msgpack_read_value(r, value);
}

/* Leaves the reader behind the event. */
static inline bool event_read_tail(msgpack_reader *r, uint32_t fields, event_tail *tail) {
    *tail = (event_tail){{r->at, 0}, {0, false}, {0, false}};
    return (fields < 6 || msgpack_read_bytes(r, &tail->payload)) &&
           (fields < 7 || msgpack_read_integer(r, &tail->published_at)) &&
           (fields < 8 || msgpack_read_integer(r, &tail->lifetime));
}

/* When it is over: `_deadline` in event.py. 0: never; otherwise at least 1 and at most 2**63 - 1, whatever was said. */
static inline int64_t event_deadline(const event_tail *tail) {
    msgpack_integer a = tail->published_at, b = tail->lifetime;
    if (!b.bits) return 0;
    if (a.negative && b.negative) return 1;
    if (a.negative != b.negative) {
        uint64_t up = a.negative ? b.bits : a.bits, down = 0 - (a.negative ? a.bits : b.bits);
        if (up <= down) return 1;
        return up - down > INT64_MAX ? INT64_MAX : (int64_t)(up - down);
    }
    uint64_t sum = a.bits + b.bits;
    return sum < a.bits || sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

#endif
