/* Batches made of the bytes of other batches: copied, never read. */
#include "events.h"

enum { HEADER_MAX = 5 };

static size_t write_header(uint8_t *to, size_t count) {
    if (count < 16) {
        to[0] = (uint8_t)(0x90 | count);
        return 1;
    }
    size_t size = count < 65536 ? 2 : 4;
    to[0] = size == 2 ? 0xdc : 0xdd;
    for (size_t i = 0; i < size; i++) to[1 + i] = (uint8_t)(count >> 8 * (size - 1 - i));
    return size + 1;
}

static int set_offset(PyObject *offsets, Py_ssize_t row, size_t offset) {
    PyObject *number = PyLong_FromSize_t(offset);
    if (!number) return -1;
    PyTuple_SET_ITEM(offsets, row, number);
    return 0;
}

/* Bytes and offsets as they are handed out; both references are given away. */
static PyObject *batch_of(PyObject *bytes, PyObject *offsets) {
    PyObject *pair = PyTuple_New(2);
    if (!pair) {
        Py_DECREF(bytes);
        Py_DECREF(offsets);
        return NULL;
    }
    PyObject_GC_UnTrack(offsets); /* integers only: nothing for the collector to follow */
    PyTuple_SET_ITEM(pair, 0, bytes);
    PyTuple_SET_ITEM(pair, 1, offsets);
    return pair;
}

/* ---- take */

/* Rows of a batch that lie beside one another, to be copied at once. */
typedef struct { size_t start, end; } stretch;

/* The stretches that rows make, and the new offsets; the size of the new batch or 0. */
static size_t plan_take(const encoded *data, PyObject *offsets, PyObject *rows, size_t begin, stretch *stretches,
                        size_t *stretch_count, PyObject *new_offsets) {
    size_t last = (size_t)PyTuple_GET_SIZE(offsets) - 1, size = begin, next = 0, before = 0;
    PyObject **items = PySequence_Fast_ITEMS(rows);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(rows);
    if (count != PyTuple_GET_SIZE(new_offsets) - 1) { /* making the tuple may have run a finaliser; from here on, none */
        refuse("rows changed while they were read");
        return 0;
    }
    if (set_offset(new_offsets, 0, begin) < 0) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t row, start, end;
        if (number_at(items[i], next, last - 1, &row) < 0 ||
            number_at(PyTuple_GET_ITEM(offsets, row), before, data->length, &start) < 0 ||
            number_at(PyTuple_GET_ITEM(offsets, row + 1), start, data->length, &end) < 0)
            return 0;
        if (*stretch_count && stretches[*stretch_count - 1].end == start) stretches[*stretch_count - 1].end = end;
        else stretches[(*stretch_count)++] = (stretch){start, end};
        size += end - start; /* rows and offsets rise: no more in all than the length of the bytes */
        next = row + 1;
        before = end;
        if (set_offset(new_offsets, i + 1, size) < 0) return 0;
    }
    return size;
}

static PyObject *take(const encoded *data, PyObject *offsets, PyObject *rows) {
    stretch few[64], *stretches = few;
    size_t stretch_count = 0, count = (size_t)PySequence_Fast_GET_SIZE(rows);
    uint8_t header[HEADER_MAX];
    if (offsets_rows(offsets) < 0) return NULL;
    if (count > (size_t)PyTuple_GET_SIZE(offsets) - 1) {
        refuse("more rows than the batch has");
        return NULL;
    }
    size_t begin = write_header(header, count);
    if (count > 64 && !(stretches = PyMem_Malloc(count * sizeof(stretch)))) return PyErr_NoMemory();
    PyObject *new_offsets = PyTuple_New((Py_ssize_t)count + 1), *bytes = NULL;
    size_t size =
        new_offsets ? plan_take(data, offsets, rows, begin, stretches, &stretch_count, new_offsets) : 0;
    if (size) bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes) {
        char *to = PyBytes_AS_STRING(bytes);
        memcpy(to, header, begin);
        to += begin;
        for (size_t i = 0; i < stretch_count; i++) {
            memcpy(to, data->bytes + stretches[i].start, stretches[i].end - stretches[i].start);
            to += stretches[i].end - stretches[i].start;
        }
    }
    if (stretches != few) PyMem_Free(stretches);
    if (bytes) return batch_of(bytes, new_offsets);
    Py_XDECREF(new_offsets);
    return NULL;
}

PyObject *events_take(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    encoded data;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "take(encoded, offsets, rows)");
        return NULL;
    }
    PyObject *rows = PySequence_Fast(arguments[2], "rows are a sequence");
    if (!rows) return NULL;
    PyObject *result = NULL;
    if (encoded_open(arguments[0], &data) == 0) {
        result = take(&data, arguments[1], rows);
        encoded_close(&data);
    }
    Py_DECREF(rows);
    return result;
}

/* ---- join */

/* How many events the parts have, and how many bytes; -1 if they are no parts. */
static int plan_join(PyObject *parts, size_t *events, size_t *size) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts); i++) {
        PyObject *part = PySequence_Fast_GET_ITEM(parts, i);
        if (!PyTuple_Check(part) || PyTuple_GET_SIZE(part) != 2) return refuse("a part is a pair of bytes and offsets");
        PyObject *offsets = PyTuple_GET_ITEM(part, 1);
        Py_ssize_t rows = offsets_rows(offsets);
        size_t start, end;
        if (rows < 0 || number_at(PyTuple_GET_ITEM(offsets, 0), 0, PY_SSIZE_T_MAX, &start) < 0 ||
            number_at(PyTuple_GET_ITEM(offsets, rows), start, PY_SSIZE_T_MAX, &end) < 0)
            return -1;
        if (end - start > PY_SSIZE_T_MAX - HEADER_MAX - *size) return refuse("parts of more bytes than there can be");
        *events += (size_t)rows; /* each takes a pointer in memory: no overflow */
        *size += end - start;
    }
    return 0;
}

/* One part behind the `size` bytes and `row` events that stand there. */
static int join_part(PyObject *part, char *to, size_t size, PyObject *new_offsets, Py_ssize_t row) {
    PyObject *offsets = PyTuple_GET_ITEM(part, 1);
    Py_ssize_t rows = PyTuple_GET_SIZE(offsets) - 1;
    encoded data;
    size_t start, last, offset;
    if (encoded_open(PyTuple_GET_ITEM(part, 0), &data) < 0) return -1;
    int outcome = number_at(PyTuple_GET_ITEM(offsets, 0), 0, data.length, &start);
    if (outcome == 0) outcome = number_at(PyTuple_GET_ITEM(offsets, rows), start, data.length, &last);
    if (outcome == 0) memcpy(to + size, data.bytes + start, last - start);
    offset = start;
    for (Py_ssize_t i = 1; outcome == 0 && i <= rows; i++) {
        PyObject *item = PyTuple_GET_ITEM(offsets, i);
        outcome = number_at(item, offset, last, &offset);
        if (outcome < 0) break;
        if (start == size) PyTuple_SET_ITEM(new_offsets, row + i, Py_NewRef(item)); /* they stay where they were */
        else outcome = set_offset(new_offsets, row + i, offset - start + size);
    }
    encoded_close(&data);
    return outcome;
}

static PyObject *join(PyObject *parts) {
    size_t events = 0, size = 0;
    uint8_t header[HEADER_MAX];
    if (plan_join(parts, &events, &size) < 0) return NULL;
    size_t at = write_header(header, events);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(at + size));
    PyObject *new_offsets = PyTuple_New((Py_ssize_t)events + 1);
    int outcome = bytes && new_offsets ? set_offset(new_offsets, 0, at) : -1;
    if (outcome == 0) memcpy(PyBytes_AS_STRING(bytes), header, at);
    Py_ssize_t row = 0;
    for (Py_ssize_t i = 0; outcome == 0 && i < PySequence_Fast_GET_SIZE(parts); i++) {
        PyObject *part = PySequence_Fast_GET_ITEM(parts, i), *offsets = PyTuple_GET_ITEM(part, 1);
        Py_ssize_t rows = PyTuple_GET_SIZE(offsets) - 1;
        outcome = join_part(part, PyBytes_AS_STRING(bytes), at, new_offsets, row);
        at += (size_t)(PyLong_AsSsize_t(PyTuple_GET_ITEM(offsets, rows)) - PyLong_AsSsize_t(PyTuple_GET_ITEM(offsets, 0)));
        row += rows;
    }
    if (outcome == 0) return batch_of(bytes, new_offsets);
    Py_XDECREF(bytes);
    Py_XDECREF(new_offsets);
    return NULL;
}

PyObject *events_join(PyObject *module, PyObject *object) {
    (void)module;
    PyObject *parts = PySequence_Tuple(object); /* ours alone: nobody changes it while a buffer is asked for */
    if (!parts) return NULL;
    PyObject *result = join(parts);
    Py_DECREF(parts);
    return result;
}
