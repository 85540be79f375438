/* The module: its functions are described where Python sees them, in _events.pyi. */
#include "events.h"

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

static PyMethodDef functions[] = {
    {"scan", FAST(events_scan), "scan(encoded, bounded)"},
    {"take", FAST(events_take), "take(encoded, offsets, rows)"},
    {"join", events_join, METH_O, "join(parts)"},
    {"encode", FAST(events_encode), "encode(publisher, incarnation, first, contents, published_at)"},
    {"received", FAST(events_received), "received(type, encoded, offsets, log, positions, attempts)"},
    {"deadlines", FAST(events_deadlines), "deadlines(encoded, offsets)"},
    {"publishers", FAST(events_publishers), "publishers(encoded, offsets)"},
    {"topics", FAST(events_topics), "topics(encoded, offsets)"},
    {NULL, NULL, 0, NULL},
};

static int events_exec(PyObject *module) {
    events_state *state = PyModule_GetState(module);
    state->topic = PyUnicode_InternFromString("topic");
    state->attributes = PyUnicode_InternFromString("attributes");
    state->payload = PyUnicode_InternFromString("payload");
    state->lifetime = PyUnicode_InternFromString("lifetime");
    if (!state->topic || !state->attributes || !state->payload || !state->lifetime) return -1;
    state->received = PyType_FromModuleAndSpec(module, &events_received_spec, NULL);
    return state->received ? PyModule_AddType(module, (PyTypeObject *)state->received) : -1;
}

static int events_traverse(PyObject *module, visitproc visit, void *arg) {
    events_state *state = PyModule_GetState(module);
    Py_VISIT(state->received); /* all else is text */
    return 0;
}

static int events_clear(PyObject *module) {
    events_state *state = PyModule_GetState(module);
    Py_CLEAR(state->topic);
    Py_CLEAR(state->attributes);
    Py_CLEAR(state->payload);
    Py_CLEAR(state->lifetime);
    Py_CLEAR(state->received);
    for (int place = 0; place < FAMILIAR_TEXTS; place++) Py_CLEAR(state->familiar[place]);
    return 0;
}

static void events_free(void *module) { events_clear(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)events_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_events",
    "The compiled primitives of batches of events.",
    sizeof(events_state),
    functions,
    slots,
    events_traverse,
    events_clear,
    events_free,
};

events_state *events_state_of(PyTypeObject *type) {
    PyObject *module = PyType_GetModuleByDef(type, &definition);
    return module ? PyModule_GetState(module) : NULL;
}

PyMODINIT_FUNC PyInit__events(void) { return PyModuleDef_Init(&definition); }
