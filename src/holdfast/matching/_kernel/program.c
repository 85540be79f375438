/* Programs: the exact tests behind a row's boxes. No test calls Python; what none can say is ASK_FILTER. */
#define _GNU_SOURCE /* memmem, which is linear */
#include "kernel.h"

/* ---- parsing what plan.py describes; a malformed description is a TypeError, never a crash
 *
 * All tests of a program and all that they compare with lie in one block: a match reads them in one go. */

typedef struct { char *next, *end; } block;

static inline size_t aligned(size_t size) { return (size + 7) & ~(size_t)7; }

static void *take(block *space, size_t size) {
    char *piece = space->next;
    space->next += aligned(size);
    if (space->next <= space->end) return piece;
    PyErr_SetString(PyExc_SystemError, "a test is larger than it was measured");
    return NULL;
}

/* The space for what a test compares with: every bytes object and every number in its tuples. */
static size_t test_space(PyObject *description) {
    size_t size = 0;
    for (Py_ssize_t i = 0; PyTuple_Check(description) && i < PyTuple_GET_SIZE(description); i++) {
        PyObject *values = PyTuple_GET_ITEM(description, i);
        for (Py_ssize_t v = 0; PyTuple_Check(values) && v < PyTuple_GET_SIZE(values); v++) {
            PyObject *value = PyTuple_GET_ITEM(values, v);
            size += 32 + (PyBytes_Check(value) ? aligned((size_t)PyBytes_GET_SIZE(value)) : 0);
        }
        size += 16;
    }
    return size;
}

static bool copy_bytes(block *space, PyObject *bytes, char **copy, uint32_t *length) {
    if (!PyBytes_Check(bytes)) {
        PyErr_SetString(PyExc_TypeError, "a test compares with bytes");
        return false;
    }
    *length = (uint32_t)PyBytes_GET_SIZE(bytes);
    if (!(*copy = take(space, *length))) return false;
    memcpy(*copy, PyBytes_AS_STRING(bytes), *length);
    return true;
}

static int like_parse(kernel_index *self, PyObject *description, like_test *out, record *owner, block *space) {
    PyObject *name, *segments;
    int kind, negated;
    if (!PyArg_ParseTuple(description, "iO!pO!", &kind, &PyUnicode_Type, &name, &negated, &PyTuple_Type, &segments) ||
        use_attribute(self, owner, name, &out->attribute) < 0)
        return -1;
    out->count = (uint32_t)PyTuple_GET_SIZE(segments);
    out->negated = negated;
    if (!out->count) {
        PyErr_SetString(PyExc_TypeError, "a pattern has at least one segment");
        return -1;
    }
    if (!(out->lengths = take(space, out->count * sizeof(uint32_t))) ||
        !(out->segments = take(space, out->count * sizeof(char *))))
        return -1;
    for (uint32_t i = 0; i < out->count; i++)
        if (!copy_bytes(space, PyTuple_GET_ITEM(segments, i), &out->segments[i], &out->lengths[i])) return -1;
    return 0;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int domain_parse(kernel_index *self, PyObject *description, domain_test *out, record *owner, block *space) {
    PyObject *name, *numbers, *points, *ranges;
    int kind, missing;
    if (!PyArg_ParseTuple(description, "iO!O!O!O!bp", &kind, &PyUnicode_Type, &name, &PyTuple_Type, &numbers,
                          &PyTuple_Type, &points, &PyTuple_Type, &ranges, &out->booleans, &missing) ||
        use_attribute(self, owner, name, &out->attribute) < 0)
        return -1;
    out->missing = missing;
    out->number_count = (uint32_t)(PyTuple_GET_SIZE(numbers) / 2);
    out->point_count = (uint32_t)PyTuple_GET_SIZE(points);
    out->range_count = (uint32_t)(PyTuple_GET_SIZE(ranges) / 2);
    if (!(out->numbers = take(space, 2 * out->number_count * sizeof(double))) ||
        !(out->points = take(space, out->point_count * sizeof(uint32_t))) ||
        !(out->ranges = take(space, out->range_count * sizeof(*out->ranges))))
        return -1;
    for (uint32_t i = 0; i < 2 * out->number_count; i++) {
        out->numbers[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(numbers, i));
        if (PyErr_Occurred()) return -1;
    }
    for (uint32_t i = 0; i < out->point_count; i++)
        if (use_string(self, owner, out->attribute, PyTuple_GET_ITEM(points, i), &out->points[i]) < 0) return -1;
    qsort(out->points, out->point_count, sizeof(uint32_t), by_number);
    for (uint32_t i = 0; i < out->range_count; i++) {
        PyObject *high = PyTuple_GET_ITEM(ranges, 2 * i + 1);
        out->ranges[i].high = NULL;
        if (!copy_bytes(space, PyTuple_GET_ITEM(ranges, 2 * i), &out->ranges[i].low, &out->ranges[i].low_length) ||
            (high != Py_None && !copy_bytes(space, high, &out->ranges[i].high, &out->ranges[i].high_length)))
            return -1;
    }
    return 0;
}

static int test_parse(kernel_index *self, PyObject *description, test *out, record *owner, block *space) {
    if (!PyTuple_Check(description) || PyTuple_GET_SIZE(description) < 1) {
        PyErr_SetString(PyExc_TypeError, "a test is described by a tuple");
        return -1;
    }
    long kind = PyLong_AsLong(PyTuple_GET_ITEM(description, 0));
    if (kind == -1 && PyErr_Occurred()) return -1;
    out->is_like = kind == 1;
    return out->is_like ? like_parse(self, description, &out->like, owner, space)
                        : domain_parse(self, description, &out->domain, owner, space);
}

int program_take_tests(kernel_index *self, program *p, PyObject *const *descriptions, uint32_t count, record *owner) {
    if (!count) return 0;
    size_t size = aligned(count * sizeof(test));
    for (uint32_t i = 0; i < count; i++) size += test_space(descriptions[i]);
    if (!(p->tests = PyMem_RawCalloc(1, size))) {
        PyErr_NoMemory();
        return -1;
    }
    block space = {(char *)p->tests + aligned(count * sizeof(test)), (char *)p->tests + size};
    for (uint32_t i = 0; i < count; i++)
        if (test_parse(self, descriptions[i], &p->tests[i], owner, &space) < 0) return -1;
    p->test_count = count;
    return 0;
}

void program_release(program *p) {
    if (!p || --p->owners) return;
    PyMem_RawFree(p->tests);
    PyMem_RawFree(p->boxes);
    PyMem_RawFree(p->near);
    PyMem_RawFree(p);
}

/* ---- running */

static bool like_matches(const like_test *t, const char *text, uint32_t length) {
    uint32_t last = t->count - 1;
    if (last == 0) return length == t->lengths[0] && memcmp(text, t->segments[0], length) == 0;
    if ((uint64_t)t->lengths[0] + t->lengths[last] > length) return false;
    const char *end = text + length - t->lengths[last];
    if (memcmp(text, t->segments[0], t->lengths[0]) != 0 || memcmp(end, t->segments[last], t->lengths[last]) != 0)
        return false;
    const char *at = text + t->lengths[0];
    for (uint32_t i = 1; i < last; i++) {
        const char *place = memmem(at, (size_t)(end - at), t->segments[i], t->lengths[i]);
        if (!place) return false;
        at = place + t->lengths[i];
    }
    return true;
}

static int compare_text(const char *a, uint32_t a_length, const char *b, uint32_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static bool string_in_domain(const domain_test *t, const seen *value) {
    if (t->point_count && value->string != NONE &&
        bsearch(&value->string, t->points, t->point_count, sizeof(uint32_t), by_number))
        return true;
    for (uint32_t i = 0; i < t->range_count; i++) {
        if (compare_text(value->text, value->length, t->ranges[i].low, t->ranges[i].low_length) < 0) return false;
        if (!t->ranges[i].high ||
            compare_text(value->text, value->length, t->ranges[i].high, t->ranges[i].high_length) < 0)
            return true;
    }
    return false;
}

static bool number_in_domain(const domain_test *t, double value) {
    for (uint32_t i = 0; i < t->number_count; i++)
        if (value <= t->numbers[2 * i + 1]) return value >= t->numbers[2 * i];
    return false;
}

static bool test_passes(const kernel_index *self, const test *t) {
    uint32_t number = t->is_like ? t->like.attribute : t->domain.attribute;
    const seen *value = &self->seen[number];
    const double *slots = &self->slots[(size_t)number * SLOTS_PER_ATTRIBUTE];
    if (t->is_like) {
        if (value->kind == SEEN_NOTHING) return false;
        bool matches = value->kind == SEEN_STRING && like_matches(&t->like, value->text, value->length);
        return matches != t->like.negated;
    }
    switch ((seen_kind)value->kind) {
        case SEEN_NOTHING: return t->domain.missing;
        case SEEN_BOOLEAN: return t->domain.booleans & (slots[KIND_BOOLEAN] == 1.0 ? 2 : 1);
        case SEEN_STRING: return string_in_domain(&t->domain, value);
        default: return number_in_domain(&t->domain, slots[KIND_NUMBER]);
    }
}

/* A bound of 2^53 and more, or an event's integer that large, may differ from its double by less than one step.
 * Two steps inside the bound nothing is left to doubt. */
static bool is_certain(const box *b, double value) {
    return value > nextafter(b->low, INFINITY) && value < nextafter(b->high, -INFINITY);
}

verdict program_run(const kernel_index *self, const program *p) {
    for (uint32_t i = 0; i < p->box_count; i++) {
        double value = self->slots[p->boxes[i].slot];
        if (!(value >= p->boxes[i].low && value <= p->boxes[i].high)) return NO_MATCH;
    }
    for (uint32_t i = 0; i < p->test_count; i++)
        if (!test_passes(self, &p->tests[i])) return NO_MATCH;
    if (p->ask_filter) return ASK_FILTER;
    for (uint32_t i = 0; i < p->near_count; i++)
        if (!is_certain(&p->near[i], self->slots[p->near[i].slot])) return ASK_FILTER;
    return MATCH;
}
