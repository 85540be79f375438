/* Which filters match the events of a batch of bytes.
 *
 * First all events are matched, and nothing of Python's runs meanwhile: so all of them see the same filters. What
 * matched is kept as *sightings*, each of one *finding*, a filter's, which holds strong references. Then filters that
 * must be asked are asked, of events that are decoded for that. Only then does anybody compare ids. */
#include "kernel.h"

typedef struct { PyObject *id, *filter, *rows; uint32_t record, count, filled, next; } finding;
typedef struct { uint32_t finding, row : 31, ask : 1; } sighting;

typedef struct {
    finding *findings;
    sighting *sightings;
    size_t finding_count, finding_capacity, count, capacity;
    Py_ssize_t rows; /* of the batch */
} found;

enum { TAKEN = -1, FAILED = -2 };

static PyObject *data_name, *offsets_name, *event_name, *attributes_name, *topic_name, *matches_name;

/* ---- matching */

/* The items, perhaps moved, with room for so many; NULL leaves them as they were. */
static void *with_room(void *items, size_t needed, size_t *capacity, size_t size) {
    if (needed <= *capacity) return items;
    size_t wanted = *capacity ? *capacity * 2 : 32;
    while (wanted < needed) wanted *= 2;
    void *grown = PyMem_RawRealloc(items, wanted * size);
    if (grown) *capacity = wanted;
    return grown;
}

static uint32_t finding_of(kernel_index *self, found *all, uint32_t record_number) {
    record *r = &self->records[record_number];
    if (!r->finding) {
        all->findings[all->finding_count] = (finding){.id = Py_NewRef(r->id), .record = record_number};
        r->finding = (uint32_t)++all->finding_count;
    }
    return r->finding - 1;
}

/* Takes over what the index has found for one event. */
static bool note_hits(kernel_index *self, found *all, uint32_t row) {
    if (self->any_will_do) {
        for (size_t i = 0; i < self->hit_count; i++)
            if (!self->hits[i].ask) { /* by which filter is of no interest */
                self->hits[0] = self->hits[i];
                self->hit_count = 1;
            }
    }
    if (!self->hit_count) return true;
    size_t most = all->finding_count + self->hit_count;
    finding *findings = with_room(all->findings, most, &all->finding_capacity, sizeof(finding));
    if (!findings) return false;
    all->findings = findings;
    sighting *sightings = with_room(all->sightings, all->count + self->hit_count, &all->capacity, sizeof(sighting));
    if (!sightings) return false;
    all->sightings = sightings;
    for (size_t i = 0; i < self->hit_count; i++) {
        uint32_t place = finding_of(self, all, self->hits[i].record);
        bool ask = self->hits[i].ask;
        if (ask && !all->findings[place].filter) all->findings[place].filter = Py_NewRef(self->records[self->hits[i].record].filter);
        all->findings[place].count++;
        all->sightings[all->count++] = (sighting){place, row, ask};
    }
    return true;
}

/* An offset, or -1 if it is none: not a number, or beyond the bytes. */
static inline Py_ssize_t offset_at(PyObject *offsets, Py_ssize_t place, Py_ssize_t bytes) {
    PyObject *offset = PyTuple_GET_ITEM(offsets, place);
    if (!PyLong_CheckExact(offset)) return -1;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(offset, &overflow);
    return overflow || value < 0 || value > bytes ? -1 : (Py_ssize_t)value;
}

/* The row of the first event that is not taken, or TAKEN, or FAILED for want of memory. */
static Py_ssize_t match_all(kernel_index *self, found *all, const uint8_t *data, Py_ssize_t bytes, PyObject *offsets) {
    uint32_t topic = attribute_find_text(self, "topic", 5);
    Py_ssize_t begin = offset_at(offsets, 0, bytes);
    for (Py_ssize_t row = 0; row < all->rows; row++) {
        Py_ssize_t end = offset_at(offsets, row + 1, bytes);
        bool is_taken = begin >= 0 && end >= begin && encoded_load(self, topic, data + begin, data + end);
        int outcome = is_taken ? index_match_event(self) : 0;
        event_reset(self);
        if (!is_taken) return row;
        if (outcome < 0 || !note_hits(self, all, (uint32_t)row)) return FAILED;
        begin = end;
    }
    return TAKEN;
}

static void found_clear(found *all) {
    for (size_t i = 0; i < all->finding_count; i++) {
        Py_DECREF(all->findings[i].id);
        Py_XDECREF(all->findings[i].filter);
        Py_XDECREF(all->findings[i].rows);
    }
    all->finding_count = all->count = 0;
}

static void found_free(found *all) {
    found_clear(all);
    PyMem_RawFree(all->findings);
    PyMem_RawFree(all->sightings);
}

/* Matches a batch as it is; like `match_all`, and FAILED with an exception set. */
static Py_ssize_t match_once(kernel_index *self, found *all, PyObject *batch, bool any) {
    PyObject *data = PyObject_GetAttr(batch, data_name);
    PyObject *offsets = data ? PyObject_GetAttr(batch, offsets_name) : NULL;
    Py_buffer view;
    Py_ssize_t outcome = FAILED;
    if (offsets && (!PyTuple_Check(offsets) || !PyTuple_GET_SIZE(offsets))) {
        PyErr_SetString(PyExc_TypeError, "the offsets of a batch are a tuple, and one more than its events");
    } else if (offsets && PyTuple_GET_SIZE(offsets) - 1 > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a batch of that many events is matched in parts");
    } else if (offsets && PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) == 0) {
        all->rows = PyTuple_GET_SIZE(offsets) - 1;
        self->any_will_do = any;
        outcome = match_all(self, all, view.buf, view.len, offsets);
        self->any_will_do = false;
        for (size_t i = 0; i < all->finding_count; i++) self->records[all->findings[i].record].finding = 0;
        PyBuffer_Release(&view);
        if (outcome == FAILED) PyErr_NoMemory();
    }
    Py_XDECREF(data);
    Py_XDECREF(offsets);
    return outcome;
}

/* ---- asking */

static PyObject *pair_of(kernel_index *self, PyObject *batch, uint32_t row) {
    PyObject *number = PyLong_FromUnsignedLong(row);
    PyObject *event = number ? PyObject_CallMethodOneArg(batch, event_name, number) : NULL;
    if (!event && PyErr_ExceptionMatches(event_error)) { /* which does not know its row */
        PyErr_Clear();
        event = PyObject_CallFunctionObjArgs(self->rewriter, batch, number, NULL);
        if (event) PyErr_SetString(PyExc_SystemError, "an event could not be read, and now can");
        Py_CLEAR(event);
    }
    Py_XDECREF(number);
    PyObject *attributes = event ? PyObject_GetAttr(event, attributes_name) : NULL;
    PyObject *topic = attributes ? PyObject_GetAttr(event, topic_name) : NULL;
    PyObject *pair = topic ? PyTuple_Pack(2, attributes, topic) : NULL;
    Py_XDECREF(event);
    Py_XDECREF(attributes);
    Py_XDECREF(topic);
    return pair;
}

static int holds(kernel_index *self, PyObject *filter, PyObject *pair) {
    self->work.filters_asked++;
    PyObject *arguments[] = {filter, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)};
    PyObject *answer = PyObject_VectorcallMethod(matches_name, arguments, 3, NULL);
    int outcome = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return outcome;
}

/* Asks the filters that must be asked and keeps what holds; of each row no more than one, if any will do. */
static int ask_filters(kernel_index *self, found *all, PyObject *batch, bool any) {
    PyObject *pair = NULL; /* of the row that was asked of last */
    uint32_t pair_row = 0;
    size_t kept = 0;
    int outcome = 0;
    for (size_t i = 0; i < all->count && outcome >= 0; i++) {
        sighting s = all->sightings[i];
        finding *f = &all->findings[s.finding];
        outcome = !(any && kept && all->sightings[kept - 1].row == s.row);
        if (outcome && s.ask) {
            if (!pair || pair_row != s.row) Py_XSETREF(pair, pair_of(self, batch, s.row));
            pair_row = s.row;
            outcome = pair ? holds(self, f->filter, pair) : -1;
        }
        if (outcome > 0) all->sightings[kept++] = s;
        else f->count--;
    }
    Py_XDECREF(pair);
    all->count = kept;
    return outcome < 0 ? -1 : 0;
}

/* Matches the batch, or the one that is written anew where an event is not taken as it is. */
static int match_batch(kernel_index *self, found *all, PyObject *batch, bool any) {
    Py_INCREF(batch);
    int outcome = -1;
    for (Py_ssize_t last = -1, row;; last = row) {
        row = match_once(self, all, batch, any);
        if (row == TAKEN) outcome = ask_filters(self, all, batch, any);
        if (row < 0) break;
        found_clear(all);
        if (row <= last) {
            PyErr_SetString(PyExc_SystemError, "an event that was written anew was refused");
            break;
        }
        PyObject *fresh = PyObject_CallFunction(self->rewriter, "On", batch, row);
        Py_SETREF(batch, fresh);
        if (!batch) break;
    }
    Py_XDECREF(batch);
    return outcome;
}

/* ---- answers */

static PyObject *all_rows(Py_ssize_t rows) { return PyObject_CallFunction((PyObject *)&PyRange_Type, "n", rows); }

/* Gives each finding its rows; findings that are seen stand in the order in which they are seen first. */
static bool fill_rows(found *all, uint32_t *first) {
    PyObject *everything = NULL;
    uint32_t *place = first;
    *first = NONE;
    for (size_t i = 0; i < all->count; i++) {
        sighting s = all->sightings[i];
        finding *f = &all->findings[s.finding];
        if (!f->rows) {
            if (f->count < all->rows) f->rows = PyList_New(f->count);
            else if (everything || (everything = all_rows(all->rows))) f->rows = Py_NewRef(everything);
            if (!f->rows) break;
            *place = s.finding;
            place = &f->next;
            *place = NONE;
        }
        if (f->count == all->rows) continue;
        PyObject *row = PyLong_FromUnsignedLong(s.row);
        if (!row) break;
        PyList_SET_ITEM(f->rows, f->filled++, row);
    }
    Py_XDECREF(everything);
    return !PyErr_Occurred();
}

/* The rows of each id. Comparing ids runs their own code, so all else is done by then. */
PyObject *batch_match(kernel_index *self, PyObject *batch) {
    found all = {0};
    uint32_t next = NONE;
    PyObject *answer = PyDict_New();
    if (!answer || !self->row_count) return answer;
    if (match_batch(self, &all, batch, false) < 0 || !fill_rows(&all, &next)) Py_CLEAR(answer);
    for (; answer && next != NONE; next = all.findings[next].next)
        if (PyDict_SetItem(answer, all.findings[next].id, all.findings[next].rows) < 0) Py_CLEAR(answer);
    found_free(&all);
    return answer;
}

/* The rows that any filter matches. */
PyObject *batch_rows_matching(kernel_index *self, PyObject *batch) {
    found all = {0};
    PyObject *answer = NULL;
    if (match_batch(self, &all, batch, true) == 0) {
        if (all.count == (size_t)all.rows) answer = all_rows(all.rows);
        else answer = PyList_New((Py_ssize_t)all.count);
        for (size_t i = 0; answer && all.count < (size_t)all.rows && i < all.count; i++) {
            PyObject *row = PyLong_FromUnsignedLong(all.sightings[i].row);
            if (row) PyList_SET_ITEM(answer, i, row);
            else Py_CLEAR(answer);
        }
    }
    found_free(&all);
    return answer;
}

int batch_names(void) {
    return (data_name = PyUnicode_InternFromString("data")) && (offsets_name = PyUnicode_InternFromString("offsets")) &&
                   (event_name = PyUnicode_InternFromString("event")) &&
                   (attributes_name = PyUnicode_InternFromString("attributes")) &&
                   (topic_name = PyUnicode_InternFromString("topic")) && (matches_name = PyUnicode_InternFromString("matches"))
               ? 0
               : -1;
}
