/* A batch from a stranger: offsets, whether some event has a lifetime, doubtful rows, runs of publishers. */
#include "events.h"

static int runs_close(publisher_runs *runs) {
    if (!runs->count) return 0;
    PyObject *run = PyTuple_New(4);
    if (!run) return -1;
    PyTuple_SET_ITEM(run, 0, text_object(runs->first.publisher));
    PyTuple_SET_ITEM(run, 1, integer_object(runs->first.incarnation));
    PyTuple_SET_ITEM(run, 2, integer_object(runs->first.sequence));
    PyTuple_SET_ITEM(run, 3, PyLong_FromUnsignedLong(runs->count));
    int outcome = -1;
    if (PyTuple_GET_ITEM(run, 0) && PyTuple_GET_ITEM(run, 1) && PyTuple_GET_ITEM(run, 2) && PyTuple_GET_ITEM(run, 3))
        outcome = PyList_Append(runs->list, run);
    Py_DECREF(run);
    return outcome;
}

int runs_add(publisher_runs *runs, const event_head *head) {
    if (runs->count && scan_continues(&runs->first, runs->count, head)) {
        runs->count++;
        return 0;
    }
    if (runs_close(runs) < 0) return -1;
    runs->first = *head;
    runs->count = 1;
    return 0;
}

PyObject *runs_end(publisher_runs *runs) {
    if (runs_close(runs) < 0) Py_CLEAR(runs->list);
    return runs->list;
}

typedef struct {
    PyObject *offsets, *doubtful; /* the latter NULL as long as nothing is */
    publisher_runs runs;
    bool expires;
} scanned;

static int note_doubtful(scanned *found, uint32_t row) {
    if (!found->doubtful && !(found->doubtful = PyList_New(0))) return -1;
    PyObject *number = PyLong_FromUnsignedLong(row);
    int outcome = number ? PyList_Append(found->doubtful, number) : -1;
    Py_XDECREF(number);
    return outcome;
}

static int scan_all(const encoded *data, uint32_t most, scanned *found) {
    msgpack_reader r = {data->bytes, data->bytes + data->length};
    event_facts facts[2]; /* of this event, and of the one before it */
    uint32_t count;
    if (!scan_batch(&r, most, &count)) return refuse("bytes are no events");
    if (!(found->offsets = PyTuple_New((Py_ssize_t)count + 1))) return -1;
    if (!(found->runs.list = PyList_New(0))) return -1;
    for (uint32_t row = 0;; row++) {
        PyObject *offset = PyLong_FromSsize_t(r.at - data->bytes);
        if (!offset) return -1;
        PyTuple_SET_ITEM(found->offsets, row, offset);
        if (row == count) break;
        event_facts *now = &facts[row & 1];
        if (!scan_event(&r, row ? &facts[~row & 1] : NULL, now)) return refuse("bytes are no events");
        found->expires |= now->expires;
        if (now->doubtful && note_doubtful(found, row) < 0) return -1;
        if (runs_add(&found->runs, &now->head) < 0) return -1;
    }
    if (msgpack_left(&r)) return refuse("bytes follow the events");
    PyObject_GC_UnTrack(found->offsets); /* integers only: nothing for the collector to follow */
    return runs_end(&found->runs) ? 0 : -1;
}

PyObject *events_scan(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    encoded data;
    scanned found = {0};
    PyObject *result = NULL;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "scan(encoded, bounded)");
        return NULL;
    }
    uint32_t most = arguments[1] == Py_False ? UINT32_MAX : BATCH_EVENTS_MAX;
    if (encoded_open(arguments[0], &data) < 0) return NULL;
    if (scan_all(&data, most, &found) == 0) {
        PyObject *doubtful = found.doubtful ? PyList_AsTuple(found.doubtful) : PyTuple_New(0);
        result = doubtful ? PyTuple_New(4) : NULL;
        if (result) {
            PyTuple_SET_ITEM(result, 0, Py_NewRef(found.offsets));
            PyTuple_SET_ITEM(result, 1, Py_NewRef(found.expires ? Py_True : Py_False));
            PyTuple_SET_ITEM(result, 2, doubtful);
            PyTuple_SET_ITEM(result, 3, Py_NewRef(found.runs.list));
        } else {
            Py_XDECREF(doubtful);
        }
    }
    encoded_close(&data);
    Py_XDECREF(found.offsets);
    Py_XDECREF(found.doubtful);
    Py_XDECREF(found.runs.list);
    return result;
}
