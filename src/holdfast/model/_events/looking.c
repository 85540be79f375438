/* What is asked of the bytes of a batch that was scanned. Bytes that were not are refused, or answered wrongly; nothing
 * is read beyond them. */
#include "events.h"

/* The rows of a batch, one by one. */
typedef struct {
    encoded data;
    PyObject *offsets;
    Py_ssize_t rows;
    size_t end; /* of the row that was read last */
} walk;

static int walk_begin(walk *w, PyObject *const *arguments, Py_ssize_t count, const char *signature) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, signature);
        return -1;
    }
    w->offsets = arguments[1];
    w->rows = offsets_rows(w->offsets);
    if (w->rows < 0 || encoded_open(arguments[0], &w->data) < 0) return -1;
    if (number_at(PyTuple_GET_ITEM(w->offsets, 0), 0, w->data.length, &w->end) == 0) return 0;
    encoded_close(&w->data);
    return -1;
}

/* The head of a row; the rows are asked for in their order. */
static int walk_head(walk *w, Py_ssize_t row, msgpack_reader *r, event_head *head) {
    r->at = w->data.bytes + w->end;
    if (number_at(PyTuple_GET_ITEM(w->offsets, row + 1), w->end, w->data.length, &w->end) < 0) return -1;
    r->end = w->data.bytes + w->end;
    return event_read_head(r, head) ? 0 : refuse("bytes are no events");
}

static int walk_deadline(walk *w, Py_ssize_t row, int64_t *deadline) {
    msgpack_reader r;
    event_head head;
    event_tail tail;
    if (walk_head(w, row, &r, &head) < 0) return -1;
    for (uint32_t i = 0; i < head.attributes; i++) {
        msgpack_text name;
        msgpack_value value;
        if (!event_read_attribute(&r, &name, &value)) return refuse("bytes are no events");
    }
    if (!event_read_tail(&r, head.fields, &tail)) return refuse("bytes are no events");
    *deadline = event_deadline(&tail);
    return 0;
}

PyObject *events_deadlines(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    walk w;
    if (walk_begin(&w, arguments, count, "deadlines(encoded, offsets)") < 0) return NULL;
    PyObject *list = PyList_New(w.rows);
    for (Py_ssize_t row = 0; list && row < w.rows; row++) {
        int64_t deadline;
        PyObject *number = walk_deadline(&w, row, &deadline) == 0 ? PyLong_FromLongLong(deadline) : NULL;
        if (number) PyList_SET_ITEM(list, row, number);
        else Py_CLEAR(list);
    }
    encoded_close(&w.data);
    return list;
}

PyObject *events_publishers(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    walk w;
    if (walk_begin(&w, arguments, count, "publishers(encoded, offsets)") < 0) return NULL;
    publisher_runs runs = {PyList_New(0), {0}, 0};
    int outcome = runs.list ? 0 : -1;
    for (Py_ssize_t row = 0; outcome == 0 && row < w.rows; row++) {
        msgpack_reader r;
        event_head head;
        outcome = walk_head(&w, row, &r, &head);
        if (outcome == 0) outcome = runs_add(&runs, &head);
    }
    if (outcome == 0) runs_end(&runs);
    else Py_CLEAR(runs.list);
    encoded_close(&w.data);
    return runs.list;
}

PyObject *events_topics(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    walk w;
    if (walk_begin(&w, arguments, count, "topics(encoded, offsets)") < 0) return NULL;
    PyObject *found = PyDict_New(), *list = NULL;
    msgpack_text before = {w.data.bytes, UINT32_MAX};
    int outcome = found ? 0 : -1;
    for (Py_ssize_t row = 0; outcome == 0 && row < w.rows; row++) {
        msgpack_reader r;
        event_head head;
        if ((outcome = walk_head(&w, row, &r, &head)) < 0) break;
        if (head.topic.length == before.length && memcmp(head.topic.bytes, before.bytes, before.length) == 0) continue;
        before = head.topic;
        PyObject *topic = text_object(head.topic);
        outcome = topic ? PyDict_SetItem(found, topic, Py_None) : -1;
        Py_XDECREF(topic);
    }
    if (outcome == 0) list = PyDict_Keys(found);
    Py_XDECREF(found);
    encoded_close(&w.data);
    return list;
}
