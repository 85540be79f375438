/* The compiled kernel of the filter index.
 *
 * An event becomes a vector of doubles, a few slots for each attribute (see `kind`); a conjunction of predicates
 * becomes a row of boxes "low <= slot <= high". One predicate of each conjunction is its *access*: it decides in
 * which cluster of rows the conjunction is stored, so that an event reaches only the clusters that its own values
 * name. Rows of a cluster are scanned column by column. What boxes can't say exactly is a *program* that is run for
 * the rows that passed; what a program can't say is left to the filter itself, in Python.
 *
 *   map.c       a hash map of pointers
 *   symbols.c   attributes and strings, as small numbers
 *   event.c     one event: loading a dict, slots, reset
 *   arrow.c     events from the columns of an Arrow record batch
 *   encoded.c   events from the bytes in which they travel
 *   rows.c      clusters, tables of rows, scanning
 *   access.c    where a conjunction is stored, and which clusters an event reaches
 *   ladder.c    the access to ranges with one open end
 *   program.c   exact tests
 *   index.c     records: add, remove, match
 *   batch.c     what matches the events of a batch of bytes, by filter or by event
 *   module.c    the Python type
 *
 * No function between the start of a match and the copy of its results runs Python code or gives up the interpreter
 * lock: an id's __eq__, a finaliser or another thread may change the index. What makes a Python object there that the
 * collector knows (`event_as_pair`, the exception of `utf8`) holds the collector off meanwhile. */
#ifndef HOLDFAST_KERNEL_H
#define HOLDFAST_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The slots of an attribute. A slot without a value is NaN, which no box contains. */
typedef enum {
    KIND_NUMBER,   /* the number, rounded to the nearest double */
    KIND_STRING,   /* the number of the interned string */
    KIND_BOOLEAN,  /* 0 or 1 */
    KIND_PRESENCE, /* 1, or 0 if the attribute is missing */
    KIND_KEY,      /* the first bytes of the string as a number, in the order of strings */
    KIND_COUNT,
    SLOTS_PER_ATTRIBUTE = 8
} kind;

enum {
    ARITY_MAX = 4,         /* boxes kept in a row; further ones go to its program */
    TABLE_ROWS_MAX = 4096, /* a larger cluster has several tables, so that no growth copies much */
    RUNG_ROWS_MAX = 512,   /* a rung of a ladder splits beyond this */
    TELLING_ROWS = 64,     /* from here on, rows stored so far say something of how selective an access is */
    LEVEL_BITS = 2,        /* the widths of range buckets are powers of 4 */
    LEVELS = 32,
    KEY_BYTES = 6 /* what a double holds exactly */
};

#define NONE UINT32_MAX

/* ---- hash map: 64-bit hashes to items, in shards so that no single growth takes long */

enum { SHARDS = 64, SHARD_SHIFT = 58 };
typedef struct { uint64_t hash; void *item; } map_entry;
typedef struct { map_entry *entries; uint32_t mask, count; } map_shard;
typedef struct { map_shard shards[SHARDS]; } map;
typedef bool (*map_equal)(const void *item, const void *key);

int map_insert(map *m, uint64_t hash, void *item);
void map_remove(map *m, uint64_t hash, const void *item);
void map_free(map *m);

static inline void *map_find(const map *m, uint64_t hash, map_equal equal, const void *key) {
    const map_shard *shard = &m->shards[hash >> SHARD_SHIFT];
    if (!shard->count) return NULL;
    for (uint64_t at = hash & shard->mask;; at = (at + 1) & shard->mask) {
        const map_entry *entry = &shard->entries[at];
        if (!entry->item) return NULL;
        if (entry->hash == hash && equal(entry->item, key)) return entry->item;
    }
}

static inline uint64_t bits_of(double value) {
    uint64_t bits;
    value += 0.0; /* -0.0 becomes 0.0, which it equals */
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    h = (h ^ (h >> 32) ^ b) * 0xA0761D6478BD642Fu;
    h ^= h >> 32;
    h *= 0xE7037ED1A0B428DBu;
    return h ^ (h >> 29);
}

/* ---- symbols */

typedef struct { uint32_t number, length, uses; uint64_t hash; char bytes[]; } string_symbol;

typedef struct cluster cluster;
typedef struct { cluster **rungs; uint32_t count, capacity; } ladder;

/* What the index knows of one slot: which accesses exist on it, and how selective they may be. */
typedef struct {
    uint32_t point_clusters, point_rows, range_rows;
    uint32_t levels;         /* bit l: some range bucket has level l */
    uint32_t *level_buckets; /* buckets of each level, allocated with the first */
    ladder at_least, at_most;
    double span_low, span_high; /* the finite bounds that filters named so far */
} slot_info;

typedef struct {
    PyObject *name;
    const char *text; /* the name as UTF-8, kept by `name` */
    Py_hash_t hash;
    uint64_t text_hash;
    uint32_t length, number, uses;
    bool needs_strings; /* some filter compares it with strings for equality */
    uint32_t prefix_rows, prefix_count, prefix_capacity;
    struct { uint32_t length, clusters; } *prefixes; /* in use, by length in bytes, ascending */
    slot_info slots[KIND_COUNT];
} attribute;

/* ---- events */

typedef enum { SEEN_NOTHING, SEEN_INTEGER, SEEN_FLOAT, SEEN_STRING, SEEN_BOOLEAN } seen_kind;

typedef struct {
    uint8_t kind;
    bool is_exact; /* the number equals its slot */
    uint32_t length, string;
    const char *text;
    int64_t integer;
} seen;

/* ---- rows */

typedef struct { uint32_t slot; double low, high; } box;

typedef struct table {
    struct table *next;
    cluster *home;
    uint32_t count, capacity, arity;
    uint32_t *refs;  /* [capacity] */
    uint32_t *slots; /* [arity][capacity] */
    double *bounds;  /* [arity][low, high][capacity] */
} table;

typedef enum { ACCESS_POINT, ACCESS_RANGE, ACCESS_PREFIX, ACCESS_AT_LEAST, ACCESS_AT_MOST, ACCESS_ALWAYS } access_type;

struct cluster {
    uint64_t hash;
    union {
        uint64_t bits;      /* the point, the bucket, or the hash of the prefix */
        double frequent_key; /* of a rung: rows with this key don't make it worth a split; or NaN */
    };
    uint32_t slot;
    union {
        uint32_t level;    /* of a bucket; of a prefix: its length */
        uint32_t split_at; /* of a rung: the number of rows at which to try to split it */
    };
    uint32_t rows;
    uint8_t type;
    double fence; /* of a rung: no key in it is lower */
    table *tables[ARITY_MAX + 1]; /* by arity; only the first of each list may have room */
};

/* ---- programs: what is left to test when a row's boxes have passed */

typedef struct { uint32_t attribute; uint32_t count; bool negated; uint32_t *lengths; char **segments; } like_test;
typedef struct {
    uint32_t attribute;
    uint32_t number_count, point_count, range_count;
    double *numbers;  /* low, high, low, high, … */
    uint32_t *points; /* numbers of strings, ascending */
    struct { char *low, *high; uint32_t low_length, high_length; } *ranges; /* high NULL: no end */
    uint8_t booleans; /* bit 0: false, bit 1: true */
    bool missing;
} domain_test;

typedef struct { bool is_like; union { like_test like; domain_test domain; }; } test;

typedef struct {
    uint32_t owners;
    uint32_t box_count, near_count, test_count;
    box *boxes; /* beyond ARITY_MAX */
    box *near;  /* boxes whose bounds are not exact: certain inside, to be asked in Python at the edge */
    test *tests;
    bool ask_filter; /* the filter itself has the last word */
} program;

typedef enum { NO_MATCH, MATCH, ASK_FILTER } verdict;

/* ---- the index */

extern PyObject *event_error; /* holdfast.errors.EventError */

typedef struct { table *home; program *program; uint32_t row, record, next; } ref;

typedef struct {
    PyObject *id, *filter;
    uint64_t order;
    uint32_t first_ref;
    uint32_t attribute_uses, string_uses;
    uint32_t finding; /* its place among what was found in this batch so far, and 1; or 0 */
    uint32_t *uses; /* attributes, then strings */
} record;

typedef struct { uint64_t order; uint32_t record; uint32_t ask; } hit;

typedef struct {
    uint64_t events, clusters_scanned, rows_scanned, programs_run, filters_asked;
} work_counters;

typedef struct {
    PyObject_HEAD
    PyObject *numbers[SHARDS]; /* dicts: id to number of the record; in shards, since a dict of a million takes 100 ms to grow */
    Py_ssize_t length;
    PyObject *explainer;       /* called with an event that was refused: raises the reason, or gives it in plain types */
    PyObject *rewriter;        /* called with a batch and the row of an event that was refused: raises the reason, or
                                * gives the batch with that event written anew */
    uint64_t seed, next_order;

    attribute **attributes;
    uint32_t attribute_count, attribute_capacity, free_attribute_count;
    uint32_t *free_attributes;
    uint32_t *name_table; /* open addressing over the names' own hashes: attribute number + 1, or 0 */
    uint32_t name_mask, name_count;
    map names; /* the attributes once more, by their names as UTF-8 */

    map strings;
    string_symbol **string_by_number;
    uint32_t string_count, string_capacity, free_string_count;
    uint32_t *free_strings;

    double *slots; /* of the event being matched */
    seen *seen;
    uint32_t *touched, touched_count;

    map clusters;
    cluster *always;
    uint64_t row_count, cluster_count;

    ref *refs;
    uint32_t ref_count, ref_capacity, free_ref;
    record *records;
    uint32_t record_count, record_capacity, free_record;

    hit *hits, *hits_spare;
    size_t hit_count, hit_capacity;
    bool any_will_do; /* a match ends with the first filter that certainly matches */
    work_counters work;
} kernel_index;

/* symbols.c */
uint32_t attribute_find(const kernel_index *self, PyObject *name);
uint32_t attribute_find_text(const kernel_index *self, const char *bytes, uint32_t length);
uint32_t attribute_acquire(kernel_index *self, PyObject *name);
void attribute_release(kernel_index *self, uint32_t number);
uint32_t string_find(const kernel_index *self, const char *bytes, uint32_t length);
uint32_t string_acquire(kernel_index *self, const char *bytes, uint32_t length);
void string_release(kernel_index *self, uint32_t number);
void symbols_free(kernel_index *self);

/* event.c */
int event_load(kernel_index *self, PyObject *attributes, PyObject *topic);
void event_reset(kernel_index *self);
void event_set_integer(kernel_index *self, uint32_t attribute, int64_t value);
void event_set_float(kernel_index *self, uint32_t attribute, double value);
void event_set_boolean(kernel_index *self, uint32_t attribute, bool value);
void event_set_string(kernel_index *self, uint32_t attribute, const char *text, uint32_t length, uint32_t string);
PyObject *event_as_pair(const kernel_index *self);
void clear_slots(double *slots);

/* rows.c */
int cluster_add_row(kernel_index *self, cluster *home, const box *boxes, uint32_t arity, uint32_t ref_number);
void cluster_remove_row(kernel_index *self, table *home, uint32_t row);
int cluster_move_row(kernel_index *self, table *from, uint32_t row, cluster *to);
void cluster_free(cluster *home);
int cluster_scan(kernel_index *self, const cluster *home);
int hits_reserve(kernel_index *self, size_t more);

/* access.c */
typedef struct {
    access_type type;
    uint32_t slot, level;
    uint32_t bits_count;
    const uint64_t *bits; /* one cluster each */
    double key;           /* of a ladder */
    uint32_t box;         /* the box that the access makes superfluous, or NONE */
    uint32_t points;      /* the finite set that it stands for, or NONE */
    double share;         /* the guessed share of events that reach it */
} access_choice;

uint64_t prefix_hash(const kernel_index *self, const char *bytes, uint32_t length);
void access_guess(const kernel_index *self, access_choice *choice);
bool access_for_range(const box *b, access_choice *choice, uint64_t bits[2]);
cluster *access_cluster(kernel_index *self, const access_choice *choice, uint64_t bits);
cluster *cluster_new(kernel_index *self, access_type type, uint32_t slot, uint32_t level, uint64_t bits);
void access_drop_cluster(kernel_index *self, cluster *home);
int access_probe(kernel_index *self);
void note_span(slot_info *slot, const box *b);
void note_rows(kernel_index *self, const cluster *home, int change);

static inline slot_info *info_of(const kernel_index *self, uint32_t slot) {
    return &self->attributes[slot / SLOTS_PER_ATTRIBUTE]->slots[slot % SLOTS_PER_ATTRIBUTE];
}

/* ladder.c */
cluster *ladder_rung(kernel_index *self, const access_choice *choice);
void ladder_split(kernel_index *self, cluster *rung, double new_key);
void ladder_shrink(cluster *rung);
void ladder_remove(kernel_index *self, cluster *rung);
double ladder_share(const ladder *l, double key);
int ladder_probe(kernel_index *self, const ladder *l, double key);

/* program.c */
int program_take_tests(kernel_index *self, program *p, PyObject *const *descriptions, uint32_t count, record *owner);
void program_release(program *p);
verdict program_run(const kernel_index *self, const program *p);

/* index.c */
int index_add(kernel_index *self, PyObject *id, PyObject *filter, PyObject *conjunctions);
void index_remove(kernel_index *self, uint32_t number);
int index_match_event(kernel_index *self);
void sort_hits(kernel_index *self);
void index_clear(kernel_index *self);
int use_attribute(kernel_index *self, record *owner, PyObject *name, uint32_t *number);
int use_string(kernel_index *self, record *owner, uint32_t attribute, PyObject *bytes, uint32_t *number);

/* arrow.c */
typedef struct arrow_batch arrow_batch;
arrow_batch *arrow_open(kernel_index *self, PyObject *capsules, int64_t *rows);
int arrow_load_row(kernel_index *self, arrow_batch *batch, int64_t row);
void arrow_close(arrow_batch *batch);

/* encoded.c */
bool encoded_load(kernel_index *self, uint32_t topic, const uint8_t *begin, const uint8_t *end);

/* batch.c */
PyObject *batch_match(kernel_index *self, PyObject *batch);
PyObject *batch_rows_matching(kernel_index *self, PyObject *batch);
int batch_names(void);

#endif
