/* One pass over an event that comes from a stranger: is it one, and does it keep the rules? Without Python, so that it
 * can be fuzzed alone. */
#ifndef HOLDFAST_SCAN_H
#define HOLDFAST_SCAN_H

#include "event.h"

/* The limits of event.py, whose tests hold the two together. */
enum {
    BATCH_EVENTS_MAX = 8192, /* of strangers */
    EVENT_BYTES_MIN = 6, /* a header and a byte for each field that has no default */
    EVENT_BYTES_MAX = 1024 * 1024 - 1024,
    ATTRIBUTES_MAX = 64,
    NAME_BYTES_MAX = 128,
    STRING_BYTES_MAX = 64 * 1024,
    PAYLOAD_BYTES_MAX = 512 * 1024
};

typedef struct {
    event_head head;
    bool expires;  /* it has a lifetime, of whatever length */
    bool doubtful; /* it breaks a rule of `check_event` */
} event_facts;

/* The header of a batch, at whose end the first event begins. A count beyond `most`, and one that can't be true, is
 * refused before anybody makes room for it. */
bool scan_batch(msgpack_reader *r, uint32_t most, uint32_t *count);

/* The next event; false if it is none. `before`: the facts of the one before it, or NULL. */
bool scan_event(msgpack_reader *r, const event_facts *before, event_facts *facts);

/* Whether the second event goes on where a run of `count`, whose first is `first`, ends. */
bool scan_continues(const event_head *first, uint32_t count, const event_head *next);

#endif
