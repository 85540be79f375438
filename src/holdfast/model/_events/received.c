/* Events as a subscriber's program gets them: the bytes of each, and its fields as objects once they are asked for.
 *
 * An event owns a copy of its bytes, so that one that is kept keeps nothing else in memory. They were scanned when they
 * came: no field that is asked for is refused. */
#include "events.h"

enum { PUBLISHER, INCARNATION, SEQUENCE, TOPIC, ATTRIBUTES, PAYLOAD, PUBLISHED_AT, LIFETIME };

typedef struct {
    PyObject_VAR_HEAD
    PyObject *fields[EVENT_FIELDS_MAX]; /* those that were asked for; the others are NULL */
    PyObject *log;                      /* that has it, or NULL */
    PyObject *number;                   /* of its position there */
    PyObject *attempt;
    uint8_t bytes[]; /* as many as the object's size says */
} received_event;

/* Text of strangers that comes again and again: names of attributes, topics, publishers. Which text has which place is
 * theirs to choose; the worst of it is that all of it is made anew. */
static PyObject *familiar_text(events_state *state, msgpack_text text) {
    if (text.length > FAMILIAR_BYTES_MAX || !text.length || !msgpack_is_ascii(text.bytes, text.length))
        return text_object(text);
    uint32_t hash = text.length;
    for (uint32_t i = 0; i < text.length; i++) hash = (hash ^ text.bytes[i]) * 16777619u;
    PyObject **place = &state->familiar[(hash ^ hash >> 15) % FAMILIAR_TEXTS];
    if (*place && (uint32_t)PyUnicode_GET_LENGTH(*place) == text.length &&
        memcmp(PyUnicode_1BYTE_DATA(*place), text.bytes, text.length) == 0)
        return Py_NewRef(*place);
    PyObject *made = text_object(text);
    if (made) Py_XSETREF(*place, Py_NewRef(made));
    return made;
}

static PyObject *value_object(const msgpack_value *value) {
    switch (value->kind) {
        case MSGPACK_INTEGER: return integer_object(value->integer);
        case MSGPACK_FLOAT: return PyFloat_FromDouble(value->number);
        case MSGPACK_TEXT: return text_object(value->text);
        default: return PyBool_FromLong(value->boolean);
    }
}

/* A dict of so many names and values, of which of equal names the last holds. */
static PyObject *attributes_object(events_state *state, msgpack_reader *r, uint32_t count) {
    PyObject *attributes = PyDict_New();
    for (uint32_t i = 0; attributes && i < count; i++) {
        msgpack_text name;
        msgpack_value value;
        PyObject *key = NULL, *item = NULL;
        int outcome = event_read_attribute(r, &name, &value) ? 0 : refuse("bytes are no events");
        if (outcome == 0) key = familiar_text(state, name);
        if (key) item = value_object(&value);
        outcome = item ? PyDict_SetItem(attributes, key, item) : -1;
        Py_XDECREF(key);
        Py_XDECREF(item);
        if (outcome < 0) Py_CLEAR(attributes);
    }
    return attributes;
}

static PyObject *tail_object(msgpack_reader *r, const event_head *head, intptr_t field) {
    event_tail tail;
    for (uint32_t i = 0; i < head->attributes; i++) {
        msgpack_text name;
        msgpack_value value;
        if (!event_read_attribute(r, &name, &value)) break;
    }
    if (!event_read_tail(r, head->fields, &tail)) {
        refuse("bytes are no events");
        return NULL;
    }
    if (field == PUBLISHED_AT) return integer_object(tail.published_at);
    if (field == LIFETIME) return integer_object(tail.lifetime);
    return PyBytes_FromStringAndSize((const char *)tail.payload.bytes, (Py_ssize_t)tail.payload.length);
}

static PyObject *read_field(events_state *state, received_event *self, intptr_t field) {
    msgpack_reader r = {self->bytes, self->bytes + Py_SIZE(self)};
    event_head head;
    if (!event_read_head(&r, &head)) {
        refuse("bytes are no events");
        return NULL;
    }
    switch (field) {
        case PUBLISHER: return familiar_text(state, head.publisher);
        case INCARNATION: return integer_object(head.incarnation);
        case SEQUENCE: return integer_object(head.sequence);
        case TOPIC: return familiar_text(state, head.topic);
        case ATTRIBUTES: return attributes_object(state, &r, head.attributes);
        default: return tail_object(&r, &head, field);
    }
}

/* Python's closure is the field's number. */
static PyObject *get_field(PyObject *object, void *closure) {
    received_event *self = (received_event *)object;
    intptr_t field = (intptr_t)closure;
    if (!self->fields[field]) {
        events_state *state = events_state_of(Py_TYPE(object));
        PyObject *found = state ? read_field(state, self, field) : NULL;
        if (!found) return NULL;
        /* A collection may have run a finaliser meanwhile, which asked for it, too: there is one answer. */
        if (self->fields[field]) Py_DECREF(found);
        else self->fields[field] = found;
    }
    return Py_NewRef(self->fields[field]);
}

static PyObject *get_log(PyObject *object, void *closure) {
    (void)closure;
    PyObject *log = ((received_event *)object)->log;
    return Py_NewRef(log ? log : Py_None);
}

static PyObject *get_number(PyObject *object, void *closure) {
    (void)closure;
    PyObject *number = ((received_event *)object)->number;
    return number ? Py_NewRef(number) : PyLong_FromLong(0);
}

static PyObject *get_attempt(PyObject *object, void *closure) {
    (void)closure;
    PyObject *attempt = ((received_event *)object)->attempt;
    return attempt ? Py_NewRef(attempt) : PyLong_FromLong(1);
}

static void received_dealloc(PyObject *object) {
    received_event *self = (received_event *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int field = 0; field < EVENT_FIELDS_MAX; field++) Py_XDECREF(self->fields[field]);
    Py_XDECREF(self->log);
    Py_XDECREF(self->number);
    Py_XDECREF(self->attempt);
    type->tp_free(object);
    Py_DECREF(type);
}

#define FIELD(name, place) {name, get_field, NULL, NULL, (void *)(intptr_t)place}

static PyGetSetDef getters[] = {
    FIELD("publisher", PUBLISHER),
    FIELD("incarnation", INCARNATION),
    FIELD("sequence", SEQUENCE),
    FIELD("topic", TOPIC),
    FIELD("attributes", ATTRIBUTES),
    FIELD("payload", PAYLOAD),
    FIELD("published_at", PUBLISHED_AT),
    FIELD("lifetime", LIFETIME),
    {"log", get_log, NULL, NULL, NULL},
    {"number", get_number, NULL, NULL, NULL},
    {"attempt", get_attempt, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot received_slots[] = {
    {Py_tp_dealloc, (void *)received_dealloc},
    {Py_tp_getset, getters},
    {Py_tp_doc, "An event's fields, read from its bytes when they are asked for."},
    {0, NULL},
};

PyType_Spec events_received_spec = {
    "holdfast.model._events.EventFields",
    offsetof(received_event, bytes),
    1,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    received_slots,
};

/* ---- a batch of them */

/* What is said of the events of a batch beside their bytes: nothing, or something of each. */
static PyObject *said_of(PyObject *said, Py_ssize_t rows) {
    PyObject *sequence = PySequence_Fast(said, "positions and attempts are sequences");
    if (!sequence) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    if (count && count != rows) {
        Py_DECREF(sequence);
        refuse("positions and attempts are as many as the events, or none");
        return NULL;
    }
    return sequence;
}

static PyObject *item_or_null(PyObject *sequence, Py_ssize_t row) {
    return row < PySequence_Fast_GET_SIZE(sequence) ? Py_NewRef(PySequence_Fast_GET_ITEM(sequence, row)) : NULL;
}

/* All events, in a list. Making them runs no Python code: the type's allocation is its base's. */
static PyObject *make_events(PyTypeObject *type, const encoded *data, PyObject *offsets, PyObject *log,
                             PyObject *positions, PyObject *attempts) {
    Py_ssize_t rows = PyTuple_GET_SIZE(offsets) - 1;
    PyObject *list = PyList_New(rows);
    size_t start, end;
    if (list && number_at(PyTuple_GET_ITEM(offsets, 0), 0, data->length, &start) < 0) Py_CLEAR(list);
    for (Py_ssize_t row = 0; list && row < rows; row++, start = end) {
        if (number_at(PyTuple_GET_ITEM(offsets, row + 1), start, data->length, &end) < 0) {
            Py_CLEAR(list);
            break;
        }
        received_event *made = (received_event *)PyType_GenericAlloc(type, (Py_ssize_t)(end - start));
        if (!made) {
            Py_CLEAR(list);
            break;
        }
        memcpy(made->bytes, data->bytes + start, end - start);
        made->number = item_or_null(positions, row);
        made->log = made->number ? Py_NewRef(log) : NULL;
        made->attempt = item_or_null(attempts, row);
        PyList_SET_ITEM(list, row, (PyObject *)made);
    }
    return list;
}

PyObject *events_received(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    events_state *state = PyModule_GetState(module);
    if (count != 6 || !PyType_Check(arguments[0]) ||
        !PyType_IsSubtype((PyTypeObject *)arguments[0], (PyTypeObject *)state->received)) {
        PyErr_SetString(PyExc_TypeError, "received(type, encoded, offsets, log, positions, attempts)");
        return NULL;
    }
    Py_ssize_t rows = offsets_rows(arguments[2]);
    PyObject *positions = rows < 0 ? NULL : said_of(arguments[4], rows), *list = NULL;
    PyObject *attempts = positions ? said_of(arguments[5], rows) : NULL;
    encoded data;
    if (attempts && encoded_open(arguments[1], &data) == 0) {
        list = make_events((PyTypeObject *)arguments[0], &data, arguments[2], arguments[3], positions, attempts);
        encoded_close(&data);
    }
    Py_XDECREF(positions);
    Py_XDECREF(attempts);
    return list;
}
