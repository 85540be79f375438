/* The rules of event.py and values.py, on bytes. */
#include "scan.h"
#include <math.h>

static inline bool same_text(msgpack_text a, msgpack_text b) {
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

static inline bool breaks_a_rule(const msgpack_value *value) {
    switch (value->kind) {
        case MSGPACK_INTEGER: return !msgpack_is_int64(value->integer);
        case MSGPACK_FLOAT: return !isfinite(value->number);
        case MSGPACK_TEXT: return value->text.length > STRING_BYTES_MAX;
        default: return false;
    }
}

static inline bool is_name(msgpack_text name) {
    if (name.length == 5) return memcmp(name.bytes, "topic", 5) != 0;
    return name.length > 0 && name.length <= NAME_BYTES_MAX;
}

/* Whether sound attributes break a rule when of equal names the last one holds, which is what a dict makes of them. Asked
 * only of the rare event that would break one if they all held. Gives up at one name too many, so each name is compared
 * with few others. */
static bool last_ones_break_a_rule(msgpack_reader r, uint32_t count) {
    struct { msgpack_text name; bool broken; } seen[ATTRIBUTES_MAX];
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        msgpack_text name;
        msgpack_value value;
        uint32_t at = 0;
        if (!event_read_attribute(&r, &name, &value)) return true; /* never: they are sound */
        while (at < distinct && !same_text(seen[at].name, name)) at++;
        if (at == ATTRIBUTES_MAX) return true;
        if (at == distinct) seen[distinct++].name = name;
        seen[at].broken = breaks_a_rule(&value);
    }
    for (uint32_t at = 0; at < distinct; at++)
        if (seen[at].broken) return true;
    return false;
}

/* Reads the attributes; false if they are none. */
static bool scan_attributes(msgpack_reader *r, uint32_t count, bool *doubtful) {
    msgpack_reader begin = *r;
    bool bad_name = false, bad_value = count > ATTRIBUTES_MAX;
    if (count > msgpack_left(r) / 2) return false;
    for (uint32_t i = 0; i < count; i++) {
        msgpack_text name;
        msgpack_value value;
        if (!event_read_attribute(r, &name, &value) || !msgpack_is_utf8(name)) return false;
        if (value.kind == MSGPACK_TEXT && !msgpack_is_utf8(value.text)) return false;
        bad_name |= !is_name(name);
        bad_value |= breaks_a_rule(&value);
    }
    *doubtful = bad_name || (bad_value && last_ones_break_a_rule(begin, count));
    return true;
}

bool scan_batch(msgpack_reader *r, uint32_t most, uint32_t *count) {
    return msgpack_read_array(r, count) && *count <= most && *count <= msgpack_left(r) / EVENT_BYTES_MIN;
}

bool scan_event(msgpack_reader *r, const event_facts *before, event_facts *facts) {
    const uint8_t *begin = r->at;
    event_head *head = &facts->head;
    event_tail tail;
    if (!event_read_head(r, head)) return false;
    /* Most events of a batch have the publisher and the topic of the one before, whose text is known to be UTF-8. */
    if (!(before && same_text(before->head.publisher, head->publisher)) && !msgpack_is_utf8(head->publisher)) return false;
    if (!(before && same_text(before->head.topic, head->topic)) && !msgpack_is_utf8(head->topic)) return false;
    if (!scan_attributes(r, head->attributes, &facts->doubtful)) return false;
    if (!event_read_tail(r, head->fields, &tail)) return false;
    facts->expires = tail.lifetime.bits != 0;
    if (head->topic.length > STRING_BYTES_MAX || tail.payload.length > PAYLOAD_BYTES_MAX ||
        r->at - begin > EVENT_BYTES_MAX)
        facts->doubtful = true;
    return true;
}

bool scan_continues(const event_head *first, uint32_t count, const event_head *next) {
    msgpack_integer expected = first->sequence;
    expected.bits += count;
    if (first->sequence.negative) expected.negative = expected.bits >> 63; /* it may have risen to 0 */
    else if (expected.bits < count) return false;                         /* beyond 64 bits, where there is none */
    return expected.bits == next->sequence.bits && expected.negative == next->sequence.negative &&
           first->incarnation.bits == next->incarnation.bits &&
           first->incarnation.negative == next->incarnation.negative && same_text(first->publisher, next->publisher);
}
