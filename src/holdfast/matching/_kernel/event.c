/* One event at a time: from a dict of attributes to slots, and back to nothing. */
#include "kernel.h"

void clear_slots(double *slots) {
    for (int k = 0; k < SLOTS_PER_ATTRIBUTE; k++) slots[k] = NAN;
    slots[KIND_PRESENCE] = 0.0;
}

static inline double *touch(kernel_index *self, uint32_t attribute, seen_kind kind) {
    double *slots = &self->slots[(size_t)attribute * SLOTS_PER_ATTRIBUTE];
    /* Bytes may name an attribute twice; then the last value counts, as in a dict. */
    if (self->seen[attribute].kind == SEEN_NOTHING) self->touched[self->touched_count++] = attribute;
    else clear_slots(slots);
    self->seen[attribute].kind = (uint8_t)kind;
    slots[KIND_PRESENCE] = 1.0;
    return slots;
}

void event_set_integer(kernel_index *self, uint32_t attribute, int64_t value) {
    double *slots = touch(self, attribute, SEEN_INTEGER);
    double rounded = (double)value;
    slots[KIND_NUMBER] = rounded;
    self->seen[attribute].integer = value;
    /* 2^63 is where a conversion back would overflow; no integer of 64 bits equals it. */
    self->seen[attribute].is_exact = rounded < 0x1p63 && (int64_t)rounded == value;
}

void event_set_float(kernel_index *self, uint32_t attribute, double value) {
    touch(self, attribute, SEEN_FLOAT)[KIND_NUMBER] = value + 0.0; /* -0.0 becomes 0.0 */
    self->seen[attribute].is_exact = true;
}

void event_set_boolean(kernel_index *self, uint32_t attribute, bool value) {
    touch(self, attribute, SEEN_BOOLEAN)[KIND_BOOLEAN] = value;
}

void event_set_string(kernel_index *self, uint32_t attribute, const char *text, uint32_t length, uint32_t string) {
    double *slots = touch(self, attribute, SEEN_STRING);
    seen *value = &self->seen[attribute];
    value->text = text;
    value->length = length;
    value->string = string;
    if (string != NONE) slots[KIND_STRING] = string;
    uint64_t key = 0;
    for (uint32_t i = 0; i < KEY_BYTES; i++) key = key << 8 | (i < length ? (uint8_t)text[i] : 0);
    slots[KIND_KEY] = (double)key;
}

void event_reset(kernel_index *self) {
    for (uint32_t i = 0; i < self->touched_count; i++) {
        uint32_t attribute = self->touched[i];
        double *slots = &self->slots[(size_t)attribute * SLOTS_PER_ATTRIBUTE];
        slots[KIND_NUMBER] = slots[KIND_STRING] = slots[KIND_BOOLEAN] = slots[KIND_KEY] = NAN;
        slots[KIND_PRESENCE] = 0.0;
        self->seen[attribute].kind = SEEN_NOTHING;
    }
    self->touched_count = 0;
}

static inline const char *utf8(PyObject *text, Py_ssize_t *length) {
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        *length = PyUnicode_GET_LENGTH(text);
        return (const char *)PyUnicode_DATA(text);
    }
    /* Kept by the string. Fails for lone surrogates, with an exception, whose making must not start a collection:
     * that could run code that uses this index. */
    int was_enabled = PyGC_Disable();
    const char *bytes = PyUnicode_AsUTF8AndSize(text, length);
    if (was_enabled) PyGC_Enable();
    return bytes;
}

static int set_text(kernel_index *self, uint32_t attribute, PyObject *value) {
    Py_ssize_t length;
    const char *text = utf8(value, &length);
    if (!text || length >= NONE) return -1;
    if (attribute == NONE) return 0;
    uint32_t string = self->attributes[attribute]->needs_strings ? string_find(self, text, (uint32_t)length) : NONE;
    event_set_string(self, attribute, text, (uint32_t)length, string);
    return 0;
}

static int set_value(kernel_index *self, uint32_t attribute, PyObject *value) {
    if (PyFloat_Check(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        if (!isfinite(number)) return -1;
        if (attribute != NONE) event_set_float(self, attribute, number);
    } else if (PyBool_Check(value)) {
        if (attribute != NONE) event_set_boolean(self, attribute, value == Py_True);
    } else if (PyLong_Check(value)) {
        int overflow;
        int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return -1;
        if (attribute != NONE) event_set_integer(self, attribute, number);
    } else if (PyUnicode_Check(value)) {
        return set_text(self, attribute, value);
    } else {
        return -1;
    }
    return 0;
}

/* Loads the event; -1 means that it is refused, and the caller asks the Python side for the reason. The event's
 * strings are borrowed: the dict must outlive the match. */
int event_load(kernel_index *self, PyObject *attributes, PyObject *topic) {
    Py_ssize_t place = 0;
    PyObject *name, *value;
    while (PyDict_Next(attributes, &place, &name, &value)) {
        if (!PyUnicode_CheckExact(name)) return -1;
        if (!PyUnicode_IS_COMPACT_ASCII(name)) {
            Py_ssize_t length;
            if (!utf8(name, &length)) return -1;
        } else if (PyUnicode_GET_LENGTH(name) == 5 && memcmp(PyUnicode_DATA(name), "topic", 5) == 0) {
            return -1;
        } else if (PyUnicode_GET_LENGTH(name) == 0) {
            return -1;
        }
        if (set_value(self, attribute_find(self, name), value) < 0) return -1;
    }
    if (topic != Py_None) {
        if (!PyUnicode_Check(topic)) return -1;
        if (PyUnicode_GET_LENGTH(topic) > 0) {
            static PyObject *topic_name;
            if (!topic_name && !(topic_name = PyUnicode_InternFromString("topic"))) return -1;
            return set_text(self, attribute_find(self, topic_name), topic);
        }
    }
    return 0;
}

static PyObject *value_object(const kernel_index *self, uint32_t number) {
    const seen *value = &self->seen[number];
    const double *slots = &self->slots[(size_t)number * SLOTS_PER_ATTRIBUTE];
    switch ((seen_kind)value->kind) {
        case SEEN_INTEGER: return PyLong_FromLongLong(value->integer);
        case SEEN_FLOAT: return PyFloat_FromDouble(slots[KIND_NUMBER]);
        case SEEN_BOOLEAN: return PyBool_FromLong(slots[KIND_BOOLEAN] == 1.0);
        default: return PyUnicode_DecodeUTF8(value->text, value->length, NULL);
    }
}

/* The event as Python values again, (attributes, topic), for a filter that must be asked about a row of columns. */
PyObject *event_as_pair(const kernel_index *self) {
    int was_enabled = PyGC_Disable(); /* a collection could run code that matches with this index */
    PyObject *attributes = PyDict_New();
    PyObject *topic = PyUnicode_FromString("");
    for (uint32_t i = 0; attributes && topic && i < self->touched_count; i++) {
        PyObject *name = self->attributes[self->touched[i]]->name;
        PyObject *value = value_object(self, self->touched[i]);
        if (value && PyUnicode_CompareWithASCIIString(name, "topic") == 0) {
            Py_SETREF(topic, value);
            continue;
        }
        if (!value || PyDict_SetItem(attributes, name, value) < 0) Py_CLEAR(attributes);
        Py_XDECREF(value);
    }
    PyObject *pair = attributes && topic ? PyTuple_Pack(2, attributes, topic) : NULL;
    Py_XDECREF(attributes);
    Py_XDECREF(topic);
    if (was_enabled) PyGC_Enable();
    return pair;
}
