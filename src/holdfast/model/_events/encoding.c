/* Events as their publisher makes them: a batch of what a program said, checked in the same pass.
 *
 * Only plain contents are written here: a dict of text to numbers, text and booleans, within all limits. Whatever is
 * anything else, be it a mistake or an unusual type, makes the answer None; then Python looks at the events one by one,
 * and says in its words which is wrong, and how. */
#include "events.h"
#include "writer.h"
#include <math.h>

typedef enum { FAILED = -1, WRITTEN = 0, UNUSUAL = 1 } outcome;

/* An error of Python's: one of memory is passed on, others make the contents unusual. */
static outcome not_plain(void) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return FAILED;
    PyErr_Clear();
    return UNUSUAL;
}

/* The UTF-8 of a text of at most so many bytes. Runs no Python code. */
static outcome text_of(PyObject *object, size_t most, const char **text, size_t *length) {
    Py_ssize_t size;
    if (!PyUnicode_CheckExact(object)) return UNUSUAL;
    if (!(*text = PyUnicode_AsUTF8AndSize(object, &size))) return not_plain();
    *length = (size_t)size;
    return *length <= most ? WRITTEN : UNUSUAL;
}

static outcome write_text(msgpack_writer *w, PyObject *object, size_t most) {
    const char *text;
    size_t length;
    outcome found = text_of(object, most, &text, &length);
    if (found != WRITTEN) return found;
    if (writer_reserve(w, MSGPACK_NUMBER_MAX + length) < 0) return FAILED;
    write_text_header(w, length);
    write_bytes(w, text, length);
    return WRITTEN;
}

/* An integer of 64 bits, with or without a sign. */
static outcome write_integer(msgpack_writer *w, PyObject *object) {
    int overflow;
    if (!PyLong_CheckExact(object)) return UNUSUAL;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (writer_reserve(w, MSGPACK_NUMBER_MAX) < 0) return FAILED;
    if (overflow == 0) {
        write_signed(w, number);
        return WRITTEN;
    }
    if (overflow < 0) return UNUSUAL;
    unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (large == (unsigned long long)-1 && PyErr_Occurred()) return not_plain();
    write_unsigned(w, large);
    return WRITTEN;
}

static outcome write_value(msgpack_writer *w, PyObject *value) {
    if (PyUnicode_CheckExact(value)) return write_text(w, value, STRING_BYTES_MAX);
    if (writer_reserve(w, MSGPACK_NUMBER_MAX) < 0) return FAILED;
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        if (!isfinite(number)) return UNUSUAL;
        write_float(w, number);
    } else if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return UNUSUAL;
        write_signed(w, number);
    } else if (PyBool_Check(value)) {
        write_byte(w, value == Py_True ? 0xc3 : 0xc2);
    } else {
        return UNUSUAL;
    }
    return WRITTEN;
}

static outcome write_attributes(msgpack_writer *w, PyObject *attributes) {
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_CheckExact(attributes) || PyDict_GET_SIZE(attributes) > ATTRIBUTES_MAX) return UNUSUAL;
    if (writer_reserve(w, MSGPACK_NUMBER_MAX) < 0) return FAILED;
    write_count(w, 0x80, 0xde, (size_t)PyDict_GET_SIZE(attributes));
    while (PyDict_Next(attributes, &at, &name, &value)) { /* nothing here runs Python code, which could change it */
        size_t begin = w->length;
        outcome found = write_text(w, name, NAME_BYTES_MAX);
        if (found != WRITTEN) return found;
        size_t length = w->length - begin;
        if (length == 1 || (length == 6 && memcmp(w->bytes + begin + 1, "topic", 5) == 0)) return UNUSUAL;
        if ((found = write_value(w, value)) != WRITTEN) return found;
    }
    return WRITTEN;
}

static outcome write_payload(msgpack_writer *w, PyObject *payload) {
    if (!PyBytes_CheckExact(payload) || PyBytes_GET_SIZE(payload) > PAYLOAD_BYTES_MAX) return UNUSUAL;
    size_t length = (size_t)PyBytes_GET_SIZE(payload);
    if (writer_reserve(w, MSGPACK_NUMBER_MAX + length) < 0) return FAILED;
    write_bytes_header(w, length);
    write_bytes(w, PyBytes_AS_STRING(payload), length);
    return WRITTEN;
}

/* What all events of the batch have in common, encoded. */
typedef struct { msgpack_writer publisher, published_at; } common;

/* What a program said of one event. Asking for it may run Python code: nothing else is held meanwhile. */
typedef struct { PyObject *topic, *attributes, *payload, *lifetime; } contents;

static outcome contents_open(const events_state *state, PyObject *object, contents *found) {
    found->topic = PyObject_GetAttr(object, state->topic);
    found->attributes = found->topic ? PyObject_GetAttr(object, state->attributes) : NULL;
    found->payload = found->attributes ? PyObject_GetAttr(object, state->payload) : NULL;
    found->lifetime = found->payload ? PyObject_GetAttr(object, state->lifetime) : NULL;
    return found->lifetime ? WRITTEN : not_plain();
}

static void contents_close(contents *found) {
    Py_XDECREF(found->topic);
    Py_XDECREF(found->attributes);
    Py_XDECREF(found->payload);
    Py_XDECREF(found->lifetime);
}

static outcome write_event(msgpack_writer *w, const common *all, uint64_t sequence, const contents *said) {
    size_t begin = w->length;
    outcome found;
    if (writer_reserve(w, 1 + all->publisher.length + MSGPACK_NUMBER_MAX) < 0) return FAILED;
    write_byte(w, 0x90 | EVENT_FIELDS_MAX);
    write_bytes(w, all->publisher.bytes, all->publisher.length);
    write_unsigned(w, sequence);
    if ((found = write_text(w, said->topic, STRING_BYTES_MAX)) != WRITTEN) return found;
    if ((found = write_attributes(w, said->attributes)) != WRITTEN) return found;
    if ((found = write_payload(w, said->payload)) != WRITTEN) return found;
    if (writer_reserve(w, all->published_at.length) < 0) return FAILED;
    write_bytes(w, all->published_at.bytes, all->published_at.length);
    if ((found = write_integer(w, said->lifetime)) != WRITTEN) return found;
    return w->length - begin <= EVENT_BYTES_MAX ? WRITTEN : UNUSUAL;
}

/* All events behind a header, and where they lie. */
static outcome write_batch(msgpack_writer *w, const events_state *state, const common *all, uint64_t first,
                           PyObject *events, PyObject *offsets, bool *expires) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(events);
    if (writer_reserve(w, MSGPACK_NUMBER_MAX + 64 * (size_t)count) < 0) return FAILED;
    write_count(w, 0x90, 0xdc, (size_t)count);
    for (Py_ssize_t row = 0;; row++) {
        contents said = {0};
        PyObject *offset = PyLong_FromSize_t(w->length);
        if (!offset) return FAILED;
        PyTuple_SET_ITEM(offsets, row, offset);
        if (row == count) return WRITTEN;
        if (PySequence_Fast_GET_SIZE(events) != count) return UNUSUAL; /* what ran for the one before has changed it */
        PyObject *event = Py_NewRef(PySequence_Fast_GET_ITEM(events, row));
        outcome found = contents_open(state, event, &said);
        if (found == WRITTEN) found = write_event(w, all, first + (uint64_t)row, &said);
        if (found == WRITTEN) *expires |= PyObject_IsTrue(said.lifetime) == 1; /* it is an integer: that can't fail */
        contents_close(&said);
        Py_DECREF(event);
        if (found != WRITTEN) return found;
    }
}

static PyObject *batch_or_none(outcome found, const msgpack_writer *w, PyObject *offsets, bool expires) {
    if (found == FAILED) return NULL;
    if (found == UNUSUAL) Py_RETURN_NONE;
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)w->bytes, (Py_ssize_t)w->length);
    PyObject *result = bytes ? PyTuple_New(3) : NULL;
    if (!result) {
        Py_XDECREF(bytes);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, bytes);
    PyTuple_SET_ITEM(result, 1, Py_NewRef(offsets));
    PyTuple_SET_ITEM(result, 2, Py_NewRef(expires ? Py_True : Py_False));
    return result;
}

/* Of contents in a list or a tuple. */
static PyObject *encode(const events_state *state, PyObject *const *arguments, PyObject *events) {
    uint64_t first = PyLong_AsUnsignedLongLong(arguments[2]);
    if (first == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    Py_ssize_t rows = PySequence_Fast_GET_SIZE(events);
    if ((uint64_t)rows > UINT32_MAX || first > UINT64_MAX - (uint64_t)rows) Py_RETURN_NONE;
    common all = {{0}, {0}};
    msgpack_writer w = {0};
    bool expires = false;
    PyObject *offsets = PyTuple_New(rows + 1);
    if (offsets) PyObject_GC_UnTrack(offsets); /* integers only: nothing for the collector to follow */
    outcome found = offsets ? write_text(&all.publisher, arguments[0], UINT32_MAX) : FAILED;
    if (found == WRITTEN) found = write_integer(&all.publisher, arguments[1]);
    if (found == WRITTEN) found = write_integer(&all.published_at, arguments[4]);
    if (found == WRITTEN) found = write_batch(&w, state, &all, first, events, offsets, &expires);
    PyObject *result = batch_or_none(found, &w, offsets, expires);
    Py_XDECREF(offsets);
    PyMem_Free(all.publisher.bytes);
    PyMem_Free(all.published_at.bytes);
    PyMem_Free(w.bytes);
    return result;
}

PyObject *events_encode(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "encode(publisher, incarnation, first, contents, published_at)");
        return NULL;
    }
    PyObject *events = PySequence_Fast(arguments[3], "contents are a sequence");
    if (!events) return NULL;
    PyObject *result = encode(PyModule_GetState(module), arguments, events);
    Py_DECREF(events);
    return result;
}
