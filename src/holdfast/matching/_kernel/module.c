/* The Python type `Kernel`: arguments in, results out, and the order in which Python code may run. */
#include "kernel.h"

PyObject *event_error;
static PyObject *duplicate_id, *unknown_id, *array_type, *matches_name, *empty_text;

/* ---- results: strong references, taken before any Python code can run */

typedef struct { int64_t row; PyObject *id, *filter, *pair; } result; /* filter: to be asked about pair, or NULL */
typedef struct { result *items; size_t count, capacity; } results;

static int results_take(kernel_index *self, results *out, int64_t row, PyObject *pair) {
    if (out->count + self->hit_count > out->capacity) {
        size_t capacity = out->capacity ? out->capacity * 2 : 256;
        while (capacity < out->count + self->hit_count) capacity *= 2;
        result *grown = PyMem_RawRealloc(out->items, capacity * sizeof(result));
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        out->items = grown;
        out->capacity = capacity;
    }
    for (size_t i = 0; i < self->hit_count; i++) {
        const record *r = &self->records[self->hits[i].record];
        bool ask = self->hits[i].ask;
        out->items[out->count++] = (result){row, Py_NewRef(r->id), ask ? Py_NewRef(r->filter) : NULL, ask ? Py_XNewRef(pair) : NULL};
    }
    return 0;
}

static void results_free(results *gone) {
    for (size_t i = 0; i < gone->count; i++) {
        Py_DECREF(gone->items[i].id);
        Py_XDECREF(gone->items[i].filter);
        Py_XDECREF(gone->items[i].pair);
    }
    PyMem_RawFree(gone->items);
}

/* Asks the filters that must be asked and keeps what holds. */
static int results_decide(kernel_index *self, results *all, PyObject *attributes, PyObject *topic) {
    size_t kept = 0;
    int outcome = 0;
    for (size_t i = 0; i < all->count; i++) {
        result item = all->items[i];
        int holds = 1;
        if (item.filter && outcome == 0) {
            self->work.filters_asked++;
            PyObject *answer = PyObject_CallMethodObjArgs(
                item.filter, matches_name, item.pair ? PyTuple_GET_ITEM(item.pair, 0) : attributes,
                item.pair ? PyTuple_GET_ITEM(item.pair, 1) : topic, NULL);
            holds = answer ? PyObject_IsTrue(answer) : -1;
            Py_XDECREF(answer);
            if (holds < 0) outcome = -1;
        }
        if (holds > 0) {
            all->items[kept++] = item;
        } else {
            Py_DECREF(item.id);
            Py_XDECREF(item.filter);
            Py_XDECREF(item.pair);
        }
    }
    all->count = kept;
    return outcome;
}

static bool any_asked(const kernel_index *self) {
    for (size_t i = 0; i < self->hit_count; i++)
        if (self->hits[i].ask) return true;
    return false;
}

static PyObject *ids_of(const results *all) {
    PyObject *list = PyList_New((Py_ssize_t)all->count);
    for (size_t i = 0; list && i < all->count; i++) PyList_SET_ITEM(list, i, Py_NewRef(all->items[i].id));
    return list;
}

/* ---- matching */

/* The ids that match one event. `scratch` is kept between the events of a batch. */
static PyObject *match_event(kernel_index *self, PyObject *attributes, PyObject *topic, PyObject *row, results *scratch) {
    PyObject *plain = NULL, *list = NULL;
    Py_INCREF(attributes);
    /* A subclass of dict may show other items than it stores: it is read as any mapping is. */
    if (!PyDict_CheckExact(attributes) || event_load(self, attributes, topic) < 0) {
        event_reset(self);
        PyErr_Clear();
        plain = PyObject_CallFunctionObjArgs(self->explainer, attributes, topic, row, NULL);
        Py_DECREF(attributes);
        if (!plain) return NULL;
        if (!PyDict_CheckExact(plain)) {
            PyErr_SetString(PyExc_TypeError, "the explainer gives a dict");
            Py_DECREF(plain);
            return NULL;
        }
        attributes = plain;
        if (!PyUnicode_Check(topic)) topic = empty_text; /* None, or what else was accepted for no topic */
        if (event_load(self, attributes, topic) < 0) {
            event_reset(self);
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a checked event was refused");
            Py_DECREF(attributes);
            return NULL;
        }
    }
    int outcome = index_match_event(self);
    if (outcome < 0) PyErr_NoMemory();
    event_reset(self);
    bool asked = outcome == 0 && any_asked(self);
    scratch->count = 0;
    if (outcome == 0) outcome = results_take(self, scratch, 0, NULL);
    if (outcome == 0 && asked) outcome = results_decide(self, scratch, attributes, topic);
    if (outcome == 0) list = ids_of(scratch);
    for (size_t i = 0; i < scratch->count; i++) {
        Py_DECREF(scratch->items[i].id);
        Py_XDECREF(scratch->items[i].filter);
    }
    scratch->count = 0;
    Py_DECREF(attributes);
    return list;
}

static PyObject *kernel_match(kernel_index *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "match takes attributes and a topic");
        return NULL;
    }
    results scratch = {0};
    PyObject *list = match_event(self, arguments[0], count == 2 ? arguments[1] : empty_text, Py_None, &scratch);
    results_free(&scratch);
    return list;
}

static PyObject *kernel_match_batch(kernel_index *self, PyObject *events) {
    PyObject *sequence = PySequence_Tuple(events);
    if (!sequence) return NULL;
    PyObject *lists = PyList_New(PyTuple_GET_SIZE(sequence));
    results scratch = {0};
    for (Py_ssize_t i = 0; lists && i < PyTuple_GET_SIZE(sequence); i++) {
        PyObject *event = PyTuple_GET_ITEM(sequence, i), *topic = empty_text;
        if (PyTuple_Check(event) && PyTuple_GET_SIZE(event) == 2) {
            topic = PyTuple_GET_ITEM(event, 1);
            event = PyTuple_GET_ITEM(event, 0);
        }
        PyObject *row = PyLong_FromSsize_t(i);
        PyObject *list = row ? match_event(self, event, topic, row, &scratch) : NULL;
        Py_XDECREF(row);
        if (list) PyList_SET_ITEM(lists, i, list);
        else Py_CLEAR(lists);
    }
    results_free(&scratch);
    Py_DECREF(sequence);
    return lists;
}

/* Fills `all` row by row. No Python code runs here: the batch refers to attributes and strings by number. */
static int match_rows(kernel_index *self, arrow_batch *batch, int64_t rows, results *all) {
    for (int64_t row = 0; row < rows; row++) {
        int outcome = arrow_load_row(self, batch, row);
        if (outcome == 0 && index_match_event(self) < 0) {
            PyErr_NoMemory();
            outcome = -1;
        }
        PyObject *pair = NULL;
        if (outcome == 0 && any_asked(self) && !(pair = event_as_pair(self))) outcome = -1;
        event_reset(self);
        if (outcome == 0) outcome = results_take(self, all, row, pair);
        Py_XDECREF(pair);
        if (outcome < 0) return -1;
    }
    return 0;
}

static PyObject *kernel_match_columns(kernel_index *self, PyObject *columns) {
    PyObject *capsules = PyObject_CallMethod(columns, "__arrow_c_array__", NULL);
    if (!capsules) return NULL;
    int64_t rows;
    results all = {0};
    arrow_batch *batch = PyTuple_Check(capsules) ? arrow_open(self, capsules, &rows) : NULL;
    PyObject *answer = NULL, *ids = NULL, *row_array = NULL;
    if (batch) {
        int outcome = match_rows(self, batch, rows, &all);
        arrow_close(batch);
        if (outcome == 0 && results_decide(self, &all, NULL, NULL) == 0 && (ids = ids_of(&all))) {
            PyObject *numbers = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(all.count * sizeof(int64_t)));
            for (size_t i = 0; numbers && i < all.count; i++) ((int64_t *)PyBytes_AS_STRING(numbers))[i] = all.items[i].row;
            if (numbers) row_array = PyObject_CallFunction(array_type, "sO", "q", numbers);
            Py_XDECREF(numbers);
            if (row_array) answer = PyTuple_Pack(2, row_array, ids);
        }
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "__arrow_c_array__ gives a pair of capsules");
    }
    results_free(&all);
    Py_XDECREF(ids);
    Py_XDECREF(row_array);
    Py_DECREF(capsules);
    return answer;
}

/* ---- changing */

static PyObject *raise_id(PyObject *type, const char *format, PyObject *id) {
    PyObject *problem = PyUnicode_FromFormat(format, id);
    PyObject *error = problem ? PyObject_CallFunctionObjArgs(type, problem, id, NULL) : NULL;
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(problem);
    Py_XDECREF(error);
    return NULL;
}

static const char duplicate_text[] = "the index already holds a filter under the id %R; remove it first";

/* The dict that an id belongs to; NULL if the id can't be hashed. May run the id's own code. */
static PyObject *numbers_of(kernel_index *self, PyObject *id) {
    Py_hash_t hash = PyObject_Hash(id);
    return hash == -1 ? NULL : self->numbers[mix((uint64_t)hash, 0) >> SHARD_SHIFT];
}

static PyObject *kernel_add(kernel_index *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count != 3 || !PyTuple_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "add takes an id, a filter and a tuple of conjunctions");
        return NULL;
    }
    PyObject *id = arguments[0];
    PyObject *numbers = numbers_of(self, id);
    int present = numbers ? PyDict_Contains(numbers, id) : -1;
    if (present) return present < 0 ? NULL : raise_id(duplicate_id, duplicate_text, id);
    int number = index_add(self, id, arguments[1], arguments[2]);
    if (number < 0) return NULL;
    PyObject *object = PyLong_FromLong(number);
    /* The id's own __eq__ may run here, and may have added the same id in the meantime. */
    PyObject *known = object ? PyDict_SetDefault(numbers, id, object) : NULL;
    bool is_new = known == object;
    Py_XDECREF(object);
    if (known && is_new) {
        self->length++;
        Py_RETURN_NONE;
    }
    index_remove(self, (uint32_t)number);
    return known ? raise_id(duplicate_id, duplicate_text, id) : NULL;
}

static const char unknown_text[] = "the index holds no filter under the id %R";

static PyObject *kernel_remove(kernel_index *self, PyObject *id) {
    PyObject *numbers = numbers_of(self, id);
    PyObject *number = numbers ? PyObject_CallMethod(numbers, "pop", "OO", id, Py_None) : NULL;
    if (!number) return NULL;
    if (number == Py_None) {
        Py_DECREF(number);
        return raise_id(unknown_id, unknown_text, id);
    }
    self->length--;
    index_remove(self, (uint32_t)PyLong_AsLong(number));
    Py_DECREF(number);
    Py_RETURN_NONE;
}

static PyObject *kernel_filter(kernel_index *self, PyObject *id) {
    PyObject *numbers = numbers_of(self, id);
    PyObject *number = numbers ? PyDict_GetItemWithError(numbers, id) : NULL;
    if (number) return Py_NewRef(self->records[PyLong_AsLong(number)].filter);
    return PyErr_Occurred() ? NULL : raise_id(unknown_id, unknown_text, id);
}

/* All (id, filter) pairs in the order of addition. */
static PyObject *kernel_items(kernel_index *self, PyObject *unused) {
    (void)unused;
    results all = {0};
    self->hit_count = 0;
    if (hits_reserve(self, self->record_count) < 0) return PyErr_NoMemory();
    for (uint32_t i = 0; i < self->record_count; i++)
        if (self->records[i].id) self->hits[self->hit_count++] = (hit){self->records[i].order, i, true};
    sort_hits(self);
    PyObject *list = NULL;
    if (results_take(self, &all, 0, NULL) == 0) list = PyList_New((Py_ssize_t)all.count);
    for (size_t i = 0; list && i < all.count; i++) {
        PyObject *pair = PyTuple_Pack(2, all.items[i].id, all.items[i].filter);
        if (pair) PyList_SET_ITEM(list, i, pair);
        else Py_CLEAR(list);
    }
    results_free(&all);
    return list;
}

static PyObject *kernel_counters(kernel_index *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("{sKsKsKsKsKsKsKsIsI}", "events", self->work.events, "clusters_scanned", self->work.clusters_scanned,
                         "rows_scanned", self->work.rows_scanned, "programs_run", self->work.programs_run, "filters_asked",
                         self->work.filters_asked, "rows", self->row_count, "clusters", self->cluster_count, "attributes",
                         self->name_count, "strings", self->string_count - self->free_string_count);
}

/* ---- the type */

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *explainer, *rewriter;
    if ((keywords && PyDict_GET_SIZE(keywords)) || !PyArg_ParseTuple(arguments, "OO", &explainer, &rewriter)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Kernel takes no keywords");
        return NULL;
    }
    kernel_index *self = (kernel_index *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->free_ref = self->free_record = NONE;
    /* The interpreter's own secret (PYTHONHASHSEED): hashes are seeded, results do not depend on them. */
    self->seed = (uint64_t)PyObject_Hash(matches_name) | 1;
    self->explainer = Py_NewRef(explainer);
    self->rewriter = Py_NewRef(rewriter);
    for (int i = 0; i < SHARDS; i++)
        if (!(self->numbers[i] = PyDict_New())) {
            Py_DECREF(self);
            return NULL;
        }
    return (PyObject *)self;
}

static int kernel_traverse(kernel_index *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < SHARDS; i++) Py_VISIT(self->numbers[i]);
    Py_VISIT(self->explainer);
    Py_VISIT(self->rewriter);
    for (uint32_t i = 0; i < self->record_count; i++) {
        Py_VISIT(self->records[i].id);
        Py_VISIT(self->records[i].filter);
    }
    return 0;
}

static int kernel_clear(kernel_index *self) {
    for (int i = 0; i < SHARDS; i++)
        if (self->numbers[i]) PyDict_Clear(self->numbers[i]);
    self->length = 0;
    index_clear(self);
    return 0;
}

static void kernel_dealloc(kernel_index *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    for (int i = 0; i < SHARDS; i++) Py_XDECREF(self->numbers[i]);
    Py_XDECREF(self->explainer);
    Py_XDECREF(self->rewriter);
    type->tp_free(self);
    Py_DECREF(type);
}

static Py_ssize_t kernel_length(kernel_index *self) { return self->length; }

static PyMethodDef methods[] = {
    {"add", (PyCFunction)(void (*)(void))kernel_add, METH_FASTCALL, "add(id, filter, conjunctions)"},
    {"remove", (PyCFunction)kernel_remove, METH_O, "remove(id)"},
    {"match", (PyCFunction)(void (*)(void))kernel_match, METH_FASTCALL, "match(attributes, topic)"},
    {"match_batch", (PyCFunction)kernel_match_batch, METH_O, "match_batch(events)"},
    {"match_columns", (PyCFunction)kernel_match_columns, METH_O, "match_columns(batch)"},
    {"match_encoded", (PyCFunction)batch_match, METH_O, "match_encoded(batch)"},
    {"rows_matching", (PyCFunction)batch_rows_matching, METH_O, "rows_matching(batch)"},
    {"filter", (PyCFunction)kernel_filter, METH_O, "filter(id)"},
    {"items", (PyCFunction)kernel_items, METH_NOARGS, "items()"},
    {"counters", (PyCFunction)kernel_counters, METH_NOARGS, "counters()"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_methods, methods},
    {Py_mp_length, kernel_length},
    {Py_tp_doc, "The compiled engine of the filter index."},
    {0, NULL},
};

static PyType_Spec spec = {
    "holdfast.matching._kernel.Kernel", sizeof(kernel_index), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots,
};

static PyObject *imported(const char *module_name, const char *name) {
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return found;
}

static int module_exec(PyObject *module) {
    if (!(event_error = imported("holdfast.errors", "EventError")) ||
        !(duplicate_id = imported("holdfast.errors", "DuplicateId")) ||
        !(unknown_id = imported("holdfast.errors", "UnknownId")) || !(array_type = imported("array", "array")) ||
        batch_names() < 0 || !(matches_name = PyUnicode_InternFromString("matches")) || !(empty_text = PyUnicode_InternFromString("")))
        return -1;
    PyObject *type = PyType_FromSpec(&spec);
    int outcome = type ? PyModule_AddObjectRef(module, "Kernel", type) : -1;
    Py_XDECREF(type);
    return outcome;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernel", "The compiled kernel of the filter index.", 0, NULL, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
