/* Events from the bytes in which they travel. Whoever made a batch has looked whether these are sound events, so what
 * no filter reads is passed over; but nobody is trusted with memory, and what is read and is no value is not taken. */
#include "../../model/_events/event.h"
#include "kernel.h"

static bool set_text(kernel_index *self, uint32_t attribute, msgpack_text text) {
    if (!msgpack_is_utf8(text)) return false; /* filters compare characters, and Python knows no others */
    const char *bytes = (const char *)text.bytes;
    uint32_t string = self->attributes[attribute]->needs_strings ? string_find(self, bytes, text.length) : NONE;
    event_set_string(self, attribute, bytes, text.length, string);
    return true;
}

static bool set_value(kernel_index *self, uint32_t attribute, const msgpack_value *value) {
    switch (value->kind) {
        case MSGPACK_TEXT: return set_text(self, attribute, value->text);
        case MSGPACK_INTEGER:
            if (!msgpack_is_int64(value->integer)) return false;
            event_set_integer(self, attribute, (int64_t)value->integer.bits);
            return true;
        case MSGPACK_FLOAT:
            if (!isfinite(value->number)) return false;
            event_set_float(self, attribute, value->number);
            return true;
        default: event_set_boolean(self, attribute, value->boolean); return true;
    }
}

/* Loads the event of these bytes; false: it is not taken, and the Python side says why. `topic` is the attribute of
 * that name, or NONE. The event's strings are borrowed: the bytes must outlive the match. */
bool encoded_load(kernel_index *self, uint32_t topic, const uint8_t *begin, const uint8_t *end) {
    msgpack_reader from = {begin, end};
    event_head head;
    if (!self->name_count) return true; /* no filter reads anything */
    if (!event_read_head(&from, &head)) return false;
    /* An empty topic is a missing one. */
    if (topic != NONE && head.topic.length && !set_text(self, topic, head.topic)) return false;
    if (topic != NONE && self->name_count == 1) return true;
    for (; head.attributes; head.attributes--) {
        msgpack_text name;
        msgpack_value value;
        if (!event_read_attribute(&from, &name, &value)) return false;
        uint32_t attribute = attribute_find_text(self, (const char *)name.bytes, name.length);
        if (attribute == NONE) continue;
        if (attribute == topic || !set_value(self, attribute, &value)) return false;
    }
    return true;
}
