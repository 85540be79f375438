/* Events from the columns of an Arrow record batch, through the Arrow C data interface: any library that speaks it
 * will do, and none is needed to build or to import this module. Columns that no filter reads are not looked at.
 * A null is a missing attribute; the column `topic` is the topic. */
#include "kernel.h"

/* The interface's two structures; their layout is fixed by its specification. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

typedef enum { COLUMN_INTEGER, COLUMN_UNSIGNED, COLUMN_FLOAT, COLUMN_DOUBLE, COLUMN_BOOLEAN, COLUMN_TEXT, COLUMN_LARGE_TEXT, COLUMN_VIEW } column_type;

typedef struct { column_type type; uint32_t width; int64_t offset; const uint8_t *validity; const void **buffers; } values;

typedef struct {
    uint32_t attribute;
    bool is_topic, is_dictionary;
    values own, entries;   /* entries: of the dictionary */
    uint32_t *entry_strings; /* numbers of the dictionary's strings */
    int64_t entry_count;
} column;

struct arrow_batch {
    uint32_t count;
    column columns[];
};

static int type_error(const char *name, const char *format, const char *wanted) {
    PyErr_Format(PyExc_TypeError, "column '%s' has the Arrow format '%s'; %s", name, format, wanted);
    return -1;
}

static int values_open(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t offset, values *out) {
    static const char integers[] = "csil", unsigneds[] = "CSIL";
    const char *format = schema->format, *place;
    out->offset = array->offset + offset;
    out->buffers = array->buffers;
    out->validity = array->n_buffers && array->null_count != 0 ? array->buffers[0] : NULL;
    if (format[0] && !format[1]) {
        if ((place = strchr(integers, format[0]))) {
            out->type = COLUMN_INTEGER;
            out->width = 1u << (place - integers);
            return 0;
        }
        if ((place = strchr(unsigneds, format[0]))) {
            out->type = COLUMN_UNSIGNED;
            out->width = 1u << (place - unsigneds);
            return 0;
        }
        switch (format[0]) {
            case 'f': out->type = COLUMN_FLOAT; return 0;
            case 'g': out->type = COLUMN_DOUBLE; return 0;
            case 'b': out->type = COLUMN_BOOLEAN; return 0;
            case 'u': out->type = COLUMN_TEXT; return 0;
            case 'U': out->type = COLUMN_LARGE_TEXT; return 0;
        }
    }
    if (strcmp(format, "vu") == 0) {
        out->type = COLUMN_VIEW;
        return 0;
    }
    return type_error(schema->name ? schema->name : "", format, "filters read integers, floats, strings and booleans");
}

static bool is_valid(const values *v, int64_t row) {
    int64_t at = v->offset + row;
    return !v->validity || (v->validity[at >> 3] >> (at & 7) & 1);
}

static int64_t integer_at(const values *v, int64_t row) {
    const char *data = v->buffers[1];
    int64_t at = v->offset + row;
    bool is_signed = v->type == COLUMN_INTEGER;
    switch (v->width) {
        case 1: return is_signed ? ((const int8_t *)data)[at] : ((const uint8_t *)data)[at];
        case 2: return is_signed ? ((const int16_t *)data)[at] : ((const uint16_t *)data)[at];
        case 4: return is_signed ? ((const int32_t *)data)[at] : (int64_t)((const uint32_t *)data)[at];
        default: return ((const int64_t *)data)[at];
    }
}

static const char *text_at(const values *v, int64_t row, int64_t *length) {
    int64_t at = v->offset + row;
    if (v->type == COLUMN_VIEW) {
        const int32_t *view = (const int32_t *)((const char *)v->buffers[1] + at * 16);
        *length = view[0];
        return view[0] <= 12 ? (const char *)(view + 1) : (const char *)v->buffers[2 + view[2]] + view[3];
    }
    const char *data = v->buffers[2] ? v->buffers[2] : ""; /* no buffer where all strings are empty */
    if (v->type == COLUMN_LARGE_TEXT) {
        const int64_t *offsets = v->buffers[1];
        *length = offsets[at + 1] - offsets[at];
        return data + offsets[at];
    }
    const int32_t *offsets = v->buffers[1];
    *length = offsets[at + 1] - offsets[at];
    return data + offsets[at];
}

static bool is_text(const values *v) {
    return v->type == COLUMN_TEXT || v->type == COLUMN_LARGE_TEXT || v->type == COLUMN_VIEW;
}

static int column_open(kernel_index *self, const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t offset, column *out) {
    if (values_open(schema, array, offset, &out->own) < 0) return -1;
    if (out->is_topic && !schema->dictionary && !is_text(&out->own)) return type_error("topic", schema->format, "a topic is a string");
    if (!schema->dictionary) return 0;
    out->is_dictionary = true;
    if (values_open(schema->dictionary, array->dictionary, 0, &out->entries) < 0) return -1;
    if (!is_text(&out->entries)) return type_error(schema->name, schema->dictionary->format, "of dictionaries, those of strings are read");
    out->entry_count = array->dictionary->length;
    if (!(out->entry_strings = PyMem_RawMalloc(((size_t)out->entry_count + 1) * sizeof(uint32_t)))) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t i = 0; i < out->entry_count; i++) {
        int64_t length = 0;
        const char *text = is_valid(&out->entries, i) ? text_at(&out->entries, i, &length) : "";
        out->entry_strings[i] = length < NONE ? string_find(self, text, (uint32_t)length) : NONE;
    }
    return 0;
}

arrow_batch *arrow_open(kernel_index *self, PyObject *capsules, int64_t *rows) {
    PyObject *schema_capsule, *array_capsule;
    if (!PyArg_ParseTuple(capsules, "OO", &schema_capsule, &array_capsule)) return NULL;
    const struct ArrowSchema *schema = PyCapsule_GetPointer(schema_capsule, "arrow_schema");
    const struct ArrowArray *array = PyCapsule_GetPointer(array_capsule, "arrow_array");
    if (!schema || !array) return NULL;
    if (!schema->release || !array->release) {
        PyErr_SetString(PyExc_ValueError, "the Arrow data was taken by another reader already");
        return NULL;
    }
    if (strcmp(schema->format, "+s") != 0) {
        PyErr_SetString(PyExc_TypeError, "match_columns takes a record batch: a struct array with one field an attribute");
        return NULL;
    }
    values whole = {.offset = array->offset, .validity = array->null_count && array->n_buffers ? array->buffers[0] : NULL};
    for (int64_t row = 0; whole.validity && row < array->length; row++)
        if (!is_valid(&whole, row)) {
            PyErr_SetString(PyExc_ValueError, "a record batch has values that are null, but no rows that are");
            return NULL;
        }
    arrow_batch *batch = PyMem_RawCalloc(1, sizeof(arrow_batch) + (size_t)schema->n_children * sizeof(column));
    if (!batch) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < schema->n_children; i++) {
        PyObject *name = PyUnicode_FromString(schema->children[i]->name ? schema->children[i]->name : "");
        uint32_t attribute = name ? attribute_find(self, name) : NONE;
        bool is_topic = name && PyUnicode_CompareWithASCIIString(name, "topic") == 0;
        Py_XDECREF(name);
        if (!name) goto failed;
        if (attribute == NONE) continue;
        for (uint32_t known = 0; known < batch->count; known++)
            if (batch->columns[known].attribute == attribute) {
                PyErr_Format(PyExc_ValueError, "two columns are named '%s'", schema->children[i]->name);
                goto failed;
            }
        column *c = &batch->columns[batch->count++];
        c->attribute = attribute;
        c->is_topic = is_topic;
        if (column_open(self, schema->children[i], array->children[i], array->offset, c) < 0) goto failed;
    }
    *rows = array->length;
    return batch;
failed:
    arrow_close(batch);
    return NULL;
}

void arrow_close(arrow_batch *batch) {
    for (uint32_t i = 0; i < batch->count; i++) PyMem_RawFree(batch->columns[i].entry_strings);
    PyMem_RawFree(batch);
}

/* Runs Python code, which may use or change this index: the event is given up first. */
static int refuse(kernel_index *self, const column *c, int64_t row, const char *problem) {
    PyObject *name = Py_NewRef(self->attributes[c->attribute]->name);
    event_reset(self);
    PyObject *text = PyUnicode_FromFormat("attribute %R %s", name, problem);
    PyObject *error = text ? PyObject_CallFunction(event_error, "OOL", text, name, (long long)row) : NULL;
    if (error) PyErr_SetObject(event_error, error);
    Py_XDECREF(text);
    Py_XDECREF(error);
    Py_DECREF(name);
    return -1;
}

static int load_text(kernel_index *self, const column *c, const values *v, int64_t at, uint32_t known, int64_t row) {
    int64_t length;
    const char *text = text_at(v, at, &length);
    if (length < 0 || length >= NONE) return refuse(self, c, row, "is longer than 4 GiB");
    if (c->is_topic && !length) return 0; /* an empty topic is a missing one */
    uint32_t string = known;
    if (v == &c->own) string = self->attributes[c->attribute]->needs_strings ? string_find(self, text, (uint32_t)length) : NONE;
    event_set_string(self, c->attribute, text, (uint32_t)length, string);
    return 0;
}

static int load_value(kernel_index *self, const column *c, int64_t row) {
    const values *v = &c->own;
    int64_t at = v->offset + row;
    if (!is_valid(v, row)) return 0;
    if (c->is_dictionary) {
        int64_t entry = integer_at(v, row);
        if (entry < 0 || entry >= c->entry_count) return refuse(self, c, row, "is outside its dictionary");
        return is_valid(&c->entries, entry) ? load_text(self, c, &c->entries, entry, c->entry_strings[entry], row) : 0;
    }
    switch (v->type) {
        case COLUMN_INTEGER:
        case COLUMN_UNSIGNED: {
            int64_t value = integer_at(v, row);
            if (v->type == COLUMN_UNSIGNED && v->width == 8 && value < 0)
                return refuse(self, c, row, "is an integer outside the range of 64 bits");
            event_set_integer(self, c->attribute, value);
            return 0;
        }
        case COLUMN_FLOAT:
        case COLUMN_DOUBLE: {
            double value = v->type == COLUMN_FLOAT ? ((const float *)v->buffers[1])[at] : ((const double *)v->buffers[1])[at];
            if (!isfinite(value)) return refuse(self, c, row, "is not finite; only finite numbers can be compared");
            event_set_float(self, c->attribute, value);
            return 0;
        }
        case COLUMN_BOOLEAN:
            event_set_boolean(self, c->attribute, ((const uint8_t *)v->buffers[1])[at >> 3] >> (at & 7) & 1);
            return 0;
        default:
            return load_text(self, c, v, row, NONE, row);
    }
}

int arrow_load_row(kernel_index *self, arrow_batch *batch, int64_t row) {
    for (uint32_t i = 0; i < batch->count; i++)
        if (load_value(self, &batch->columns[i], row) < 0) return -1;
    return 0;
}
