/* The compiled primitives of batches of events: what `portable_events` does, from the bytes.
 *
 *   reader.h     msgpack, bounded; knows nothing of Python
 *   event.h      where an event's fields lie
 *   scan.c       is it an event, and does it keep the rules; knows nothing of Python
 *   scanning.c   `scan`: a batch from a stranger, or one that was kept
 *   cutting.c    `take` and `join`: other batches from the bytes of batches
 *   writer.h     msgpack, written
 *   encoding.c   `encode`: a batch of what a program publishes
 *   received.c   `EventFields` and `received`: events as a program gets them
 *   looking.c    `deadlines`, `publishers`, `topics`: what is asked of a batch that was scanned
 *   module.c     the table of functions
 *
 * Nothing here gives up the interpreter lock, or calls anything of Python's, while it holds pointers into a batch. A
 * collection may start where something is made that the collector knows, and run a finaliser: so nothing is held then
 * that it could take away. The bytes are not: who looks at them has a reference or a view, under which they can't be
 * moved. They may change, if they are not `bytes`; so whoever reads them again compares again. What is handed in with a
 * batch, offsets and rows, comes from our own Python code; it is checked all the same, as a wrong number would read
 * beyond the bytes. */
#ifndef HOLDFAST_EVENTS_H
#define HOLDFAST_EVENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "scan.h"

/* The bytes of a batch: any object that gives them in one piece. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
    Py_buffer view; /* .obj is NULL for plain bytes, which need no view */
} encoded;

static inline int encoded_open(PyObject *object, encoded *found) {
    if (PyBytes_CheckExact(object)) {
        found->bytes = (const uint8_t *)PyBytes_AS_STRING(object);
        found->length = (size_t)PyBytes_GET_SIZE(object);
        found->view.obj = NULL;
        return 0;
    }
    if (PyObject_GetBuffer(object, &found->view, PyBUF_SIMPLE) < 0) return -1;
    found->bytes = found->view.buf ? found->view.buf : (const uint8_t *)""; /* there may be no place where nothing lies */
    found->length = (size_t)found->view.len;
    return 0;
}

static inline void encoded_close(encoded *found) {
    if (found->view.obj) PyBuffer_Release(&found->view);
}

static inline int refuse(const char *problem) {
    PyErr_SetString(PyExc_ValueError, problem);
    return -1;
}

/* Offsets as handed in: how many events they are of, or -1. */
static inline Py_ssize_t offsets_rows(PyObject *offsets) {
    if (!PyTuple_Check(offsets) || PyTuple_GET_SIZE(offsets) < 1) return refuse("offsets are a tuple, and never empty");
    return PyTuple_GET_SIZE(offsets) - 1;
}

/* The number at a place of a tuple or list, from `low` on and up to `high`. Runs no Python code, whatever lies there. */
static inline int number_at(PyObject *item, size_t low, size_t high, size_t *number) {
    if (!PyLong_Check(item)) return refuse("rows and offsets are integers");
    Py_ssize_t found = PyLong_AsSsize_t(item);
    if (found == -1 && PyErr_Occurred()) return -1;
    if (found < 0 || (size_t)found < low || (size_t)found > high) return refuse("a row or an offset beyond its batch");
    *number = (size_t)found;
    return 0;
}

static inline PyObject *text_object(msgpack_text text) {
    return PyUnicode_DecodeUTF8((const char *)text.bytes, (Py_ssize_t)text.length, NULL);
}

static inline PyObject *integer_object(msgpack_integer integer) {
    return integer.negative ? PyLong_FromLongLong((int64_t)integer.bits) : PyLong_FromUnsignedLongLong(integer.bits);
}

enum { FAMILIAR_TEXTS = 512, FAMILIAR_BYTES_MAX = 32 };

/* What the module keeps: names of attributes that it asks for, its type, and text that comes again and again. */
typedef struct {
    PyObject *topic, *attributes, *payload, *lifetime, *received;
    PyObject *familiar[FAMILIAR_TEXTS];
} events_state;

/* That of the module that made a type or its base; NULL with TypeError. */
events_state *events_state_of(PyTypeObject *type);

/* scanning.c */
typedef struct { PyObject *list; event_head first; uint32_t count; } publisher_runs;

/* A run begins with the first event; `runs_add` takes the others, `runs_end` gives the list. */
int runs_add(publisher_runs *runs, const event_head *head);
PyObject *runs_end(publisher_runs *runs);

PyObject *events_scan(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* cutting.c */
PyObject *events_take(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *events_join(PyObject *module, PyObject *parts);

/* encoding.c */
PyObject *events_encode(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* received.c */
extern PyType_Spec events_received_spec;
PyObject *events_received(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* looking.c */
PyObject *events_deadlines(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *events_publishers(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *events_topics(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
