/* Attributes and strings as small numbers. Both are counted, and given back when the last filter that uses them
 * is removed: a broker whose subscribers come and go must not grow. */
#include "kernel.h"

/* ---- text as UTF-8 */

typedef struct { const char *bytes; uint32_t length; } string_key;

static uint64_t string_hash(const kernel_index *self, const char *bytes, uint32_t length) {
    uint64_t h = mix(self->seed, length);
    uint64_t word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        h = mix(h, word);
    }
    if (length) {
        word = 0;
        memcpy(&word, bytes, length);
        h = mix(h, word);
    }
    return h;
}

/* ---- attributes: looked up once per attribute of every event, by the hash that a Python string keeps, or by the
 * text where there is no such string */

static inline Py_hash_t name_hash(PyObject *name) {
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    return hash != -1 ? hash : PyObject_Hash(name); /* of a plain str: runs no Python code, can't fail */
}

static uint32_t name_place(const kernel_index *self, PyObject *name, Py_hash_t hash) {
    for (uint32_t at = (uint32_t)hash & self->name_mask;; at = (at + 1) & self->name_mask) {
        uint32_t entry = self->name_table[at];
        if (!entry) return at;
        const attribute *found = self->attributes[entry - 1];
        if (found->name == name || (found->hash == hash && PyUnicode_Compare(found->name, name) == 0)) return at;
    }
}

uint32_t attribute_find(const kernel_index *self, PyObject *name) {
    if (!self->name_count) return NONE;
    uint32_t entry = self->name_table[name_place(self, name, name_hash(name))];
    return entry ? entry - 1 : NONE;
}

static bool name_equal(const void *item, const void *key) {
    const attribute *found = item;
    const string_key *wanted = key;
    return found->length == wanted->length && memcmp(found->text, wanted->bytes, wanted->length) == 0;
}

uint32_t attribute_find_text(const kernel_index *self, const char *bytes, uint32_t length) {
    string_key key = {bytes, length};
    const attribute *found = map_find(&self->names, string_hash(self, bytes, length), name_equal, &key);
    return found ? found->number : NONE;
}

static int name_table_rebuild(kernel_index *self) {
    uint32_t size = 16;
    while (size < (self->name_count + 1) * 2) size *= 2;
    uint32_t *fresh = PyMem_RawCalloc(size, sizeof(uint32_t));
    if (!fresh) return -1;
    PyMem_RawFree(self->name_table);
    self->name_table = fresh;
    self->name_mask = size - 1;
    for (uint32_t i = 0; i < self->attribute_count; i++)
        if (self->attributes[i]) fresh[name_place(self, self->attributes[i]->name, self->attributes[i]->hash)] = i + 1;
    return 0;
}

static int attributes_grow(kernel_index *self) {
    uint32_t capacity = self->attribute_capacity ? self->attribute_capacity * 2 : 32;
    void *grown;
    if (!(grown = PyMem_RawRealloc(self->attributes, capacity * sizeof(attribute *)))) return -1;
    self->attributes = grown;
    if (!(grown = PyMem_RawRealloc(self->free_attributes, capacity * sizeof(uint32_t)))) return -1;
    self->free_attributes = grown;
    if (!(grown = PyMem_RawRealloc(self->touched, capacity * sizeof(uint32_t)))) return -1;
    self->touched = grown;
    if (!(grown = PyMem_RawRealloc(self->seen, capacity * sizeof(seen)))) return -1;
    self->seen = grown;
    if (!(grown = PyMem_RawRealloc(self->slots, (size_t)capacity * SLOTS_PER_ATTRIBUTE * sizeof(double)))) return -1;
    self->slots = grown;
    for (uint32_t i = self->attribute_capacity; i < capacity; i++) {
        self->seen[i] = (seen){0};
        clear_slots(&self->slots[(size_t)i * SLOTS_PER_ATTRIBUTE]);
    }
    self->attribute_capacity = capacity;
    return 0;
}

uint32_t attribute_acquire(kernel_index *self, PyObject *name) {
    uint32_t number = attribute_find(self, name);
    if (number != NONE) {
        self->attributes[number]->uses++;
        return number;
    }
    if (!self->free_attribute_count && self->attribute_count == self->attribute_capacity && attributes_grow(self) < 0)
        return NONE;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    attribute *fresh = text ? PyMem_RawCalloc(1, sizeof(attribute)) : NULL;
    if (!fresh) return NONE;
    uint64_t text_hash = string_hash(self, text, (uint32_t)length);
    bool is_full = !self->name_table || (self->name_count + 1) * 2 > self->name_mask;
    if ((is_full && name_table_rebuild(self) < 0) || map_insert(&self->names, text_hash, fresh) < 0) {
        PyMem_RawFree(fresh);
        return NONE;
    }
    number = self->free_attribute_count ? self->free_attributes[--self->free_attribute_count] : self->attribute_count++;
    fresh->name = Py_NewRef(name);
    fresh->text = text;
    fresh->text_hash = text_hash;
    fresh->length = (uint32_t)length;
    fresh->number = number;
    fresh->hash = name_hash(name);
    fresh->uses = 1;
    for (int k = 0; k < KIND_COUNT; k++) {
        fresh->slots[k].span_low = INFINITY;
        fresh->slots[k].span_high = -INFINITY;
    }
    self->attributes[number] = fresh;
    self->name_table[name_place(self, name, fresh->hash)] = number + 1;
    self->name_count++;
    return number;
}

static void attribute_free(attribute *gone) {
    for (int k = 0; k < KIND_COUNT; k++) {
        PyMem_RawFree(gone->slots[k].level_buckets);
        PyMem_RawFree(gone->slots[k].at_least.rungs);
        PyMem_RawFree(gone->slots[k].at_most.rungs);
    }
    PyMem_RawFree(gone->prefixes);
    Py_DECREF(gone->name); /* a plain str: runs no Python code */
    PyMem_RawFree(gone);
}

void attribute_release(kernel_index *self, uint32_t number) {
    attribute *gone = self->attributes[number];
    if (--gone->uses) return;
    uint32_t hole = name_place(self, gone->name, gone->hash);
    self->name_table[hole] = 0;
    for (uint32_t at = (hole + 1) & self->name_mask; self->name_table[at]; at = (at + 1) & self->name_mask) {
        uint32_t own = (uint32_t)self->attributes[self->name_table[at] - 1]->hash & self->name_mask;
        if (((at - own) & self->name_mask) >= ((at - hole) & self->name_mask)) {
            self->name_table[hole] = self->name_table[at];
            self->name_table[at] = 0;
            hole = at;
        }
    }
    map_remove(&self->names, gone->text_hash, gone);
    self->name_count--;
    self->attributes[number] = NULL;
    self->free_attributes[self->free_attribute_count++] = number;
    attribute_free(gone);
}

/* ---- strings: what filters compare with for equality */

static bool string_equal(const void *item, const void *key) {
    const string_symbol *symbol = item;
    const string_key *wanted = key;
    return symbol->length == wanted->length && memcmp(symbol->bytes, wanted->bytes, wanted->length) == 0;
}

uint32_t string_find(const kernel_index *self, const char *bytes, uint32_t length) {
    string_key key = {bytes, length};
    const string_symbol *found = map_find(&self->strings, string_hash(self, bytes, length), string_equal, &key);
    return found ? found->number : NONE;
}

uint32_t string_acquire(kernel_index *self, const char *bytes, uint32_t length) {
    string_key key = {bytes, length};
    uint64_t hash = string_hash(self, bytes, length);
    string_symbol *symbol = map_find(&self->strings, hash, string_equal, &key);
    if (symbol) {
        symbol->uses++;
        return symbol->number;
    }
    if (!self->free_string_count && self->string_count == self->string_capacity) {
        uint32_t capacity = self->string_capacity ? self->string_capacity * 2 : 64;
        void *grown = PyMem_RawRealloc(self->string_by_number, capacity * sizeof(string_symbol *));
        if (!grown) return NONE;
        self->string_by_number = grown;
        if (!(grown = PyMem_RawRealloc(self->free_strings, capacity * sizeof(uint32_t)))) return NONE;
        self->free_strings = grown;
        self->string_capacity = capacity;
    }
    symbol = PyMem_RawMalloc(sizeof(string_symbol) + length);
    if (!symbol) return NONE;
    if (map_insert(&self->strings, hash, symbol) < 0) {
        PyMem_RawFree(symbol);
        return NONE;
    }
    symbol->number = self->free_string_count ? self->free_strings[--self->free_string_count] : self->string_count++;
    symbol->length = length;
    symbol->uses = 1;
    symbol->hash = hash;
    memcpy(symbol->bytes, bytes, length);
    self->string_by_number[symbol->number] = symbol;
    return symbol->number;
}

void string_release(kernel_index *self, uint32_t number) {
    string_symbol *symbol = self->string_by_number[number];
    if (--symbol->uses) return;
    map_remove(&self->strings, symbol->hash, symbol);
    self->string_by_number[number] = NULL;
    self->free_strings[self->free_string_count++] = number;
    PyMem_RawFree(symbol);
}

void symbols_free(kernel_index *self) {
    for (uint32_t i = 0; i < self->attribute_count; i++)
        if (self->attributes[i]) attribute_free(self->attributes[i]);
    for (uint32_t i = 0; i < self->string_count; i++) PyMem_RawFree(self->string_by_number[i]);
    map_free(&self->strings);
    map_free(&self->names);
    PyMem_RawFree(self->attributes);
    PyMem_RawFree(self->free_attributes);
    PyMem_RawFree(self->name_table);
    PyMem_RawFree(self->string_by_number);
    PyMem_RawFree(self->free_strings);
    PyMem_RawFree(self->slots);
    PyMem_RawFree(self->seen);
    PyMem_RawFree(self->touched);
}
