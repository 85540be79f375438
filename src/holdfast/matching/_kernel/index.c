/* Records: adding a filter's conjunctions as rows, removing them, and the match itself. */
#include "kernel.h"

/* ---- what a filter uses, so that it can be given back */

static int note_use(record *owner, uint32_t number, bool is_string) {
    uint32_t count = owner->attribute_uses + owner->string_uses;
    if (count == 0 || (count >= 4 && (count & (count - 1)) == 0)) { /* room for 4, 8, 16, … */
        uint32_t *grown = PyMem_RawRealloc(owner->uses, (count ? count * 2 : 4) * sizeof(uint32_t));
        if (!grown) return -1;
        owner->uses = grown;
    }
    if (is_string) {
        owner->uses[count] = number;
        owner->string_uses++;
    } else { /* attributes stand before strings */
        owner->uses[count] = owner->uses[owner->attribute_uses];
        owner->uses[owner->attribute_uses++] = number;
    }
    return 0;
}

int use_attribute(kernel_index *self, record *owner, PyObject *name, uint32_t *number) {
    for (uint32_t i = 0; i < owner->attribute_uses; i++)
        if (PyUnicode_Compare(self->attributes[owner->uses[i]]->name, name) == 0) {
            *number = owner->uses[i];
            return 0;
        }
    *number = attribute_acquire(self, name);
    if (*number == NONE) {
        PyErr_NoMemory();
        return -1;
    }
    if (note_use(owner, *number, false) < 0) {
        attribute_release(self, *number);
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

int use_string(kernel_index *self, record *owner, uint32_t attribute, PyObject *bytes, uint32_t *number) {
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "strings are passed as bytes");
        return -1;
    }
    *number = string_acquire(self, PyBytes_AS_STRING(bytes), (uint32_t)PyBytes_GET_SIZE(bytes));
    if (*number == NONE || note_use(owner, *number, true) < 0) {
        if (*number != NONE) string_release(self, *number);
        PyErr_NoMemory();
        return -1;
    }
    self->attributes[attribute]->needs_strings = true; /* stays: a lookup too many costs little */
    return 0;
}

/* ---- one conjunction, on its way from plan.py into rows */

enum { POINT_SETS_MAX = 256 }; /* sets of several values; plan.py makes tests of those beyond its SETS_MAX */

typedef struct {
    box *boxes;
    uint32_t box_count, box_capacity;
    program *program;
    access_choice best;
    uint64_t *best_bits; /* owned */
    uint32_t set_count;
    PyObject *set_tests[POINT_SETS_MAX]; /* borrowed: the test of each finite set, unless the set is the access */
} conjunction;

static int add_box(conjunction *c, box b) {
    if (c->box_count == c->box_capacity) {
        uint32_t capacity = c->box_capacity ? c->box_capacity * 2 : 8;
        box *grown = PyMem_RawRealloc(c->boxes, capacity * sizeof(box));
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        c->boxes = grown;
        c->box_capacity = capacity;
    }
    c->boxes[c->box_count++] = b;
    return 0;
}

/* Keeps the choice if it promises to be reached by fewer events than the best so far. */
static int consider(kernel_index *self, conjunction *c, access_choice choice) {
    access_guess(self, &choice);
    if (choice.share >= c->best.share) return 0;
    if (choice.bits_count) {
        uint64_t *bits = PyMem_RawRealloc(c->best_bits, choice.bits_count * sizeof(uint64_t));
        if (!bits) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(bits, choice.bits, choice.bits_count * sizeof(uint64_t));
        c->best_bits = bits;
        choice.bits = bits;
    }
    c->best = choice;
    return 0;
}

static int take_boxes(kernel_index *self, conjunction *c, record *owner, PyObject *boxes) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(boxes); i++) {
        PyObject *name;
        int kind;
        uint32_t number;
        box b;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(boxes, i), "O!idd", &PyUnicode_Type, &name, &kind, &b.low, &b.high) ||
            use_attribute(self, owner, name, &number) < 0)
            return -1;
        if (kind < 0 || kind >= KIND_COUNT) {
            PyErr_SetString(PyExc_TypeError, "no such kind of slot");
            return -1;
        }
        b.slot = number * SLOTS_PER_ATTRIBUTE + (uint32_t)kind;
        access_choice choice = {.box = NONE, .points = NONE};
        uint64_t bits[2];
        bool is_access;
        if (kind == KIND_NUMBER || kind == KIND_KEY) {
            note_span(&self->attributes[number]->slots[kind], &b);
            is_access = access_for_range(&b, &choice, bits);
        } else {
            is_access = b.low == b.high && !(kind == KIND_PRESENCE && b.low == 0.0);
            bits[0] = bits_of(b.low);
            choice = (access_choice){ACCESS_POINT, b.slot, 0, 1, bits, 0, c->box_count, NONE, 0};
        }
        if ((is_access && consider(self, c, choice) < 0) || add_box(c, b) < 0) return -1;
    }
    return 0;
}

static int take_points(kernel_index *self, conjunction *c, record *owner, PyObject *sets) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sets); i++) {
        PyObject *name, *values, *test_description;
        int kind;
        uint32_t number;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(sets, i), "O!iO!O", &PyUnicode_Type, &name, &kind, &PyTuple_Type, &values,
                              &test_description) ||
            use_attribute(self, owner, name, &number) < 0)
            return -1;
        Py_ssize_t count = PyTuple_GET_SIZE(values);
        if ((kind != KIND_NUMBER && kind != KIND_STRING) || count < 1 || c->set_count == POINT_SETS_MAX) {
            PyErr_SetString(PyExc_TypeError, "a finite set holds numbers or strings, and there are few of them");
            return -1;
        }
        uint64_t *bits = PyMem_RawMalloc((size_t)count * sizeof(uint64_t));
        if (!bits) {
            PyErr_NoMemory();
            return -1;
        }
        double value = 0;
        int result = 0;
        for (Py_ssize_t v = 0; v < count && result == 0; v++) {
            uint32_t string;
            if (kind == KIND_STRING) {
                result = use_string(self, owner, number, PyTuple_GET_ITEM(values, v), &string);
                value = string;
            } else {
                value = PyFloat_AsDouble(PyTuple_GET_ITEM(values, v));
                if (PyErr_Occurred()) result = -1;
            }
            bits[v] = bits_of(value);
        }
        uint32_t slot = number * SLOTS_PER_ATTRIBUTE + (uint32_t)kind;
        access_choice choice = {ACCESS_POINT, slot, 0, (uint32_t)count, bits, 0, NONE, NONE, 0};
        if (count == 1) choice.box = c->box_count;
        else choice.points = c->set_count;
        if (result == 0) result = consider(self, c, choice);
        if (result == 0 && count == 1) result = add_box(c, (box){slot, value, value});
        else if (result == 0) c->set_tests[c->set_count++] = test_description;
        PyMem_RawFree(bits);
        if (result < 0) return -1;
    }
    return 0;
}

static int take_prefixes(kernel_index *self, conjunction *c, record *owner, PyObject *prefixes) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(prefixes); i++) {
        PyObject *name, *prefix;
        uint32_t number;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(prefixes, i), "O!O!", &PyUnicode_Type, &name, &PyBytes_Type, &prefix) ||
            use_attribute(self, owner, name, &number) < 0)
            return -1;
        uint32_t length = (uint32_t)PyBytes_GET_SIZE(prefix);
        uint64_t bits = prefix_hash(self, PyBytes_AS_STRING(prefix), length);
        uint32_t slot = number * SLOTS_PER_ATTRIBUTE + KIND_STRING;
        if (consider(self, c, (access_choice){ACCESS_PREFIX, slot, length, 1, &bits, 0, NONE, NONE, 0}) < 0) return -1;
    }
    return 0;
}

static int take_near(kernel_index *self, program *p, record *owner, PyObject *near) {
    if (!(p->near = PyMem_RawCalloc((size_t)PyTuple_GET_SIZE(near) + 1, sizeof(box)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (; p->near_count < PyTuple_GET_SIZE(near); p->near_count++) {
        PyObject *name;
        uint32_t number;
        box *b = &p->near[p->near_count];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(near, p->near_count), "O!dd", &PyUnicode_Type, &name, &b->low, &b->high) ||
            use_attribute(self, owner, name, &number) < 0)
            return -1;
        b->slot = number * SLOTS_PER_ATTRIBUTE + KIND_NUMBER;
    }
    return 0;
}

static int take_tests(kernel_index *self, conjunction *c, record *owner, PyObject *tests) {
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(tests), kept = 0;
    PyObject **descriptions = PyMem_RawMalloc((count + c->set_count + 1) * sizeof(PyObject *));
    if (!descriptions) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) descriptions[kept++] = PyTuple_GET_ITEM(tests, i);
    for (uint32_t i = 0; i < c->set_count; i++)
        if (c->best.points != i) descriptions[kept++] = c->set_tests[i]; /* else the access says it already */
    int result = program_take_tests(self, c->program, descriptions, kept, owner);
    PyMem_RawFree(descriptions);
    return result;
}

/* Boxes that don't fit into the row go to the program; so does nothing else if nothing is left to test. */
static int split_boxes(conjunction *c, uint32_t *arity) {
    if (c->best.box != NONE) {
        memmove(c->boxes + c->best.box, c->boxes + c->best.box + 1, (c->box_count - c->best.box - 1) * sizeof(box));
        c->box_count--;
    }
    if (c->best.type == ACCESS_AT_LEAST || c->best.type == ACCESS_AT_MOST) /* a rung finds its key in the row */
        for (uint32_t b = 1; b < c->box_count; b++)
            if (c->boxes[b].slot == c->best.slot) {
                box moved = c->boxes[b];
                c->boxes[b] = c->boxes[0];
                c->boxes[0] = moved;
            }
    *arity = c->box_count < ARITY_MAX ? c->box_count : ARITY_MAX;
    uint32_t rest = c->box_count - *arity;
    program *p = c->program;
    if (rest) {
        if (!(p->boxes = PyMem_RawMalloc(rest * sizeof(box)))) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(p->boxes, c->boxes + *arity, rest * sizeof(box));
        p->box_count = rest;
    }
    return 0;
}

static uint32_t ref_new(kernel_index *self) {
    if (self->free_ref != NONE) {
        uint32_t number = self->free_ref;
        self->free_ref = self->refs[number].next;
        return number;
    }
    if (self->ref_count == self->ref_capacity) {
        uint32_t capacity = self->ref_capacity ? self->ref_capacity * 2 : 256;
        ref *grown = PyMem_RawRealloc(self->refs, capacity * sizeof(ref));
        if (!grown) return NONE;
        self->refs = grown;
        self->ref_capacity = capacity;
    }
    return self->ref_count++;
}

static int insert_row(kernel_index *self, conjunction *c, uint32_t record_number, uint32_t arity, uint64_t bits) {
    uint32_t number = ref_new(self);
    cluster *home = number == NONE ? NULL : access_cluster(self, &c->best, bits);
    if (number != NONE) self->refs[number] = (ref){NULL, NULL, 0, record_number, self->free_ref};
    if (!home || cluster_add_row(self, home, c->boxes, arity, number) < 0) {
        if (home && !home->rows) access_drop_cluster(self, home);
        if (number != NONE) self->free_ref = number;
        PyErr_NoMemory();
        return -1;
    }
    program *p = c->program;
    if (p->box_count || p->near_count || p->test_count || p->ask_filter) {
        self->refs[number].program = p;
        p->owners++;
    }
    self->refs[number].next = self->records[record_number].first_ref;
    self->records[record_number].first_ref = number;
    if (home->type == ACCESS_AT_LEAST || home->type == ACCESS_AT_MOST) ladder_split(self, home, c->best.key);
    return 0;
}

static int add_conjunction(kernel_index *self, uint32_t record_number, PyObject *description) {
    PyObject *boxes, *points, *prefixes, *tests, *near;
    int ask_filter, result = -1;
    if (!PyArg_ParseTuple(description, "O!O!O!O!O!p", &PyTuple_Type, &boxes, &PyTuple_Type, &points, &PyTuple_Type,
                          &prefixes, &PyTuple_Type, &tests, &PyTuple_Type, &near, &ask_filter))
        return -1;
    conjunction *c = PyMem_RawCalloc(1, sizeof(conjunction));
    if (!c || !(c->program = PyMem_RawCalloc(1, sizeof(program)))) {
        PyMem_RawFree(c);
        PyErr_NoMemory();
        return -1;
    }
    record *owner = &self->records[record_number];
    uint32_t arity;
    c->program->owners = 1;
    c->program->ask_filter = ask_filter;
    c->best = (access_choice){.type = ACCESS_ALWAYS, .box = NONE, .points = NONE, .share = 1.0};
    if (take_points(self, c, owner, points) == 0 && take_boxes(self, c, owner, boxes) == 0 &&
        take_prefixes(self, c, owner, prefixes) == 0 && take_tests(self, c, owner, tests) == 0 &&
        take_near(self, c->program, owner, near) == 0 && split_boxes(c, &arity) == 0) {
        uint32_t rows = c->best.bits_count ? c->best.bits_count : 1;
        result = 0;
        for (uint32_t i = 0; i < rows && result == 0; i++)
            result = insert_row(self, c, record_number, arity, c->best.bits_count ? c->best.bits[i] : 0);
    }
    program_release(c->program);
    PyMem_RawFree(c->best_bits);
    PyMem_RawFree(c->boxes);
    PyMem_RawFree(c);
    return result;
}

/* ---- records */

static uint32_t record_new(kernel_index *self) {
    if (self->free_record != NONE) {
        uint32_t number = self->free_record;
        self->free_record = self->records[number].first_ref;
        return number;
    }
    if (self->record_count == self->record_capacity) {
        uint32_t capacity = self->record_capacity ? self->record_capacity * 2 : 256;
        record *grown = PyMem_RawRealloc(self->records, capacity * sizeof(record));
        if (!grown) return NONE;
        self->records = grown;
        self->record_capacity = capacity;
    }
    return self->record_count++;
}

/* Adds a filter and gives the number of its record; -1 with an exception leaves the index as it was. */
int index_add(kernel_index *self, PyObject *id, PyObject *filter, PyObject *conjunctions) {
    uint32_t number = record_new(self);
    if (number == NONE) {
        PyErr_NoMemory();
        return -1;
    }
    self->records[number] = (record){Py_NewRef(id), Py_NewRef(filter), self->next_order++, NONE, 0, 0, 0, NULL};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(conjunctions); i++)
        if (add_conjunction(self, number, PyTuple_GET_ITEM(conjunctions, i)) < 0) {
            index_remove(self, number);
            return -1;
        }
    return (int)number;
}

void index_remove(kernel_index *self, uint32_t number) {
    record gone = self->records[number];
    for (uint32_t r = gone.first_ref, next; r != NONE; r = next) {
        ref *row = &self->refs[r];
        next = row->next;
        cluster_remove_row(self, row->home, row->row);
        program_release(row->program);
        row->program = NULL;
        row->next = self->free_ref;
        self->free_ref = r;
    }
    for (uint32_t i = 0; i < gone.attribute_uses; i++) attribute_release(self, gone.uses[i]);
    for (uint32_t i = 0; i < gone.string_uses; i++) string_release(self, gone.uses[gone.attribute_uses + i]);
    PyMem_RawFree(gone.uses);
    self->records[number] = (record){.first_ref = self->free_record};
    self->free_record = number;
    /* Last: giving up the caller's objects may run code that uses this index. */
    Py_DECREF(gone.id);
    Py_DECREF(gone.filter);
}

/* Leaves an empty index that works: a collector may clear it while others still hold it. */
void index_clear(kernel_index *self) {
    record *records = self->records;
    uint32_t count = self->record_count;
    for (uint32_t i = 0; i < self->ref_count; i++) program_release(self->refs[i].program);
    for (int s = 0; s < SHARDS; s++)
        for (uint32_t i = 0; self->clusters.shards[s].entries && i <= self->clusters.shards[s].mask; i++)
            if (self->clusters.shards[s].entries[i].item) cluster_free(self->clusters.shards[s].entries[i].item);
    for (uint32_t a = 0; a < self->attribute_count; a++)
        for (int k = 0; self->attributes[a] && k < KIND_COUNT; k++) {
            slot_info *info = &self->attributes[a]->slots[k];
            for (uint32_t i = 0; i < info->at_least.count; i++) cluster_free(info->at_least.rungs[i]);
            for (uint32_t i = 0; i < info->at_most.count; i++) cluster_free(info->at_most.rungs[i]);
        }
    if (self->always) cluster_free(self->always);
    map_free(&self->clusters);
    symbols_free(self);
    PyMem_RawFree(self->refs);
    PyMem_RawFree(self->hits);
    PyMem_RawFree(self->hits_spare);
    kernel_index kept = *self;
    memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
    memcpy(self->numbers, kept.numbers, sizeof(self->numbers));
    self->explainer = kept.explainer;
    self->rewriter = kept.rewriter;
    self->seed = kept.seed;
    self->free_ref = self->free_record = NONE;
    for (uint32_t i = 0; i < count; i++) {
        PyMem_RawFree(records[i].uses);
        Py_XDECREF(records[i].id);
        Py_XDECREF(records[i].filter);
    }
    PyMem_RawFree(records);
}

/* ---- the match */

static void sort_small(hit *hits, size_t count) {
    for (size_t i = 1; i < count; i++) {
        hit moving = hits[i];
        size_t at = i;
        for (; at && hits[at - 1].order > moving.order; at--) hits[at] = hits[at - 1];
        hits[at] = moving;
    }
}

/* Radix sort on the bits in which orders differ: linear, and most indexes need two or three passes. */
void sort_hits(kernel_index *self) {
    enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };
    size_t count = self->hit_count;
    if (count <= 32) {
        sort_small(self->hits, count);
        return;
    }
    for (uint32_t shift = 0; shift < 64 && self->next_order >> shift; shift += DIGIT_BITS) {
        size_t places[DIGITS] = {0}, place = 0;
        for (size_t i = 0; i < count; i++) places[self->hits[i].order >> shift & (DIGITS - 1)]++;
        for (size_t d = 0; d < DIGITS; d++) {
            size_t size = places[d];
            places[d] = place;
            place += size;
        }
        for (size_t i = 0; i < count; i++)
            self->hits_spare[places[self->hits[i].order >> shift & (DIGITS - 1)]++] = self->hits[i];
        hit *sorted = self->hits_spare;
        self->hits_spare = self->hits;
        self->hits = sorted;
    }
}

/* Fills `hits` for the loaded event: each record once, in the order of addition. */
int index_match_event(kernel_index *self) {
    self->hit_count = 0;
    self->work.events++;
    if (access_probe(self) < 0) return -1;
    sort_hits(self);
    size_t kept = 0;
    for (size_t i = 0; i < self->hit_count; i++) {
        if (kept && self->hits[kept - 1].record == self->hits[i].record)
            self->hits[kept - 1].ask &= self->hits[i].ask; /* one certain conjunction is enough */
        else
            self->hits[kept++] = self->hits[i];
    }
    self->hit_count = kept;
    return 0;
}
