/* All that reads the bytes of batches, `_events` and the index's kernel, in an interpreter of its own. The modules are
 * built in, with sanitizers and coverage. Each input is scanned, cut, joined, looked at and matched here, both as if
 * somebody had found it sound and as what it is; one in CHECK_EACH goes to `check` of tests/index/hostile.py as well, which
 * compares every answer, and takes a hundred times as long. */
#define PY_SSIZE_T_CLEAN
#include "../../src/holdfast/model/_events/events.h"
#include "mutation.h"

enum { CHECK_EACH = 1000 };

PyMODINIT_FUNC PyInit__events(void);
PyMODINIT_FUNC PyInit__kernel(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static PyObject *check, *decode, *kernel, *batch, *refusals, *match_encoded, *rows_matching;
static unsigned long inputs;

static void stop(const char *problem) {
    if (PyErr_Occurred()) PyErr_Print();
    fprintf(stderr, "%s\n", problem);
    abort();
}

static PyObject *of(PyObject *module, const char *name) {
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    if (!found) stop(name);
    return found;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    if (PyImport_AppendInittab("holdfast.model._events", PyInit__events) < 0 ||
        PyImport_AppendInittab("holdfast.matching._kernel", PyInit__kernel) < 0)
        stop("the modules are not built in");
    Py_InitializeEx(0);
    PyObject *module = PyImport_ImportModule("tests.index.hostile");
    check = of(module, "check");
    decode = of(module, "_decode");
    kernel = of(module, "KERNEL");
    batch = of(module, "UNREAD");
    refusals = of(module, "REFUSALS");
    match_encoded = of(kernel, "match_encoded");
    rows_matching = of(kernel, "rows_matching");
    return 0;
}

/* Whether there is an answer, which is given up; other exceptions than refusals are mistakes. */
static bool answered(PyObject *answer) {
    if (answer) {
        Py_DECREF(answer);
        return true;
    }
    if (!PyErr_ExceptionMatches(refusals)) stop("another exception than a refusal");
    PyErr_Clear();
    return false;
}

static bool looked_at(PyObject *view, PyObject *offsets) {
    PyObject *pair[] = {view, offsets};
    PyObject_SetAttrString(batch, "data", view);
    PyObject_SetAttrString(batch, "offsets", offsets);
    int answers = answered(events_deadlines(NULL, pair, 2));
    answers += answered(events_publishers(NULL, pair, 2));
    answers += answered(events_topics(NULL, pair, 2));
    answered(PyObject_CallOneArg(match_encoded, batch)); /* which may want an event written anew: `check` does that */
    answered(PyObject_CallOneArg(rows_matching, batch));
    PyObject_SetAttrString(batch, "data", Py_None);
    return answers == 3;
}

/* Bytes that nobody has scanned, under offsets that rise. */
static void as_if_sound(PyObject *view, size_t size, size_t middle) {
    PyObject *offsets = Py_BuildValue("(nnn)", (Py_ssize_t)0, (Py_ssize_t)middle, (Py_ssize_t)size);
    PyObject *behind = Py_BuildValue("(nn)", (Py_ssize_t)(size > 0), (Py_ssize_t)size);
    PyObject *rows = Py_BuildValue("[i]", 1);
    if (!offsets || !behind || !rows) stop("no memory");
    looked_at(view, offsets);
    looked_at(view, behind);
    PyObject *of_take[] = {view, offsets, rows};
    if (!answered(events_take(NULL, of_take, 3))) stop("take refuses offsets that rise");
    PyObject *parts = Py_BuildValue("[(OO)(OO)]", view, offsets, view, behind);
    if (!answered(events_join(NULL, parts))) stop("join refuses offsets that rise");
    Py_XDECREF(parts);
    Py_DECREF(rows);
    Py_DECREF(behind);
    Py_DECREF(offsets);
}

static PyObject *scan_again(PyObject *made) {
    PyObject *arguments[] = {made ? PyTuple_GET_ITEM(made, 0) : NULL, Py_False};
    PyObject *found = made ? events_scan(NULL, arguments, 2) : NULL;
    if (!found) stop("a batch of sound events is none");
    if (PyObject_RichCompareBool(PyTuple_GET_ITEM(found, 0), PyTuple_GET_ITEM(made, 1), Py_EQ) != 1)
        stop("offsets differ");
    Py_DECREF(made);
    return found;
}

static void cut_and_joined(PyObject *view, PyObject *offsets, PyObject *runs) {
    PyObject *rows = PyList_New(0), *pair[] = {view, offsets};
    for (Py_ssize_t row = 0; rows && row < PyTuple_GET_SIZE(offsets) - 1; row += 1 + (row & 1)) {
        PyObject *number = PyLong_FromSsize_t(row);
        if (!number || PyList_Append(rows, number) < 0) stop("no memory");
        Py_DECREF(number);
    }
    PyObject *of_take[] = {view, offsets, rows};
    Py_DECREF(scan_again(events_take(NULL, of_take, 3)));
    PyObject *parts = Py_BuildValue("((OO)(OO))", view, offsets, view, offsets);
    Py_DECREF(scan_again(events_join(NULL, parts)));
    PyObject *found = events_publishers(NULL, pair, 2);
    if (!found || PyObject_RichCompareBool(found, runs, Py_EQ) != 1) stop("publishers differ");
    Py_DECREF(found);
    Py_DECREF(parts);
    Py_DECREF(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = malloc(size ? size : 1); /* exactly so many: the sanitizer sees a step beyond */
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    PyObject *view = PyMemoryView_FromMemory(bytes, (Py_ssize_t)size, PyBUF_READ);
    if (!view) stop("no memory");
    as_if_sound(view, size, size ? (size_t)data[size - 1] % size : 0);
    PyObject *arguments[] = {view, Py_False};
    PyObject *found = events_scan(NULL, arguments, 2);
    bool is_batch = found;
    if (!found && !PyErr_ExceptionMatches(PyExc_ValueError)) stop("another exception than a refusal");
    PyErr_Clear();
    if (answered(PyObject_CallOneArg(decode, view)) != is_batch) stop("msgspec says otherwise");
    if (found) {
        PyObject *offsets = PyTuple_GET_ITEM(found, 0);
        if (!looked_at(view, offsets)) stop("what was scanned is refused");
        cut_and_joined(view, offsets, PyTuple_GET_ITEM(found, 3));
        Py_DECREF(found);
    }
    if (inputs++ % CHECK_EACH == 0 && !answered(PyObject_CallOneArg(check, view))) stop("check refuses");
    if (Py_REFCNT(view) != 1) stop("a reference to the bytes was kept");
    Py_DECREF(view);
    free(bytes);
    return 0;
}
