/* Clusters of rows, kept by columns. All tables of a cluster and an arity are full but the first, so a removal
 * fills its hole with the last row of the first table. */
#include "kernel.h"

static inline size_t columns_size(uint32_t arity, uint32_t capacity) {
    return (size_t)capacity * (sizeof(uint32_t) * (1 + arity) + 2 * sizeof(double) * arity);
}

static void place_columns(table *t, void *block) {
    t->bounds = block; /* the doubles first: they need the alignment */
    t->slots = (uint32_t *)(t->bounds + (size_t)2 * t->arity * t->capacity);
    t->refs = t->slots + (size_t)t->arity * t->capacity;
}

static table *table_new(cluster *home, uint32_t arity, uint32_t capacity) {
    table *t = PyMem_RawCalloc(1, sizeof(table));
    void *block = t ? PyMem_RawMalloc(columns_size(arity, capacity)) : NULL;
    if (!block) {
        PyMem_RawFree(t);
        return NULL;
    }
    t->home = home;
    t->arity = arity;
    t->capacity = capacity;
    place_columns(t, block);
    return t;
}

static void table_free(table *t) {
    PyMem_RawFree(t->bounds);
    PyMem_RawFree(t);
}

static int table_grow(table *t) {
    table old = *t;
    uint32_t capacity = old.capacity < 8 ? old.capacity * 2 : old.capacity + old.capacity / 2;
    if (capacity > TABLE_ROWS_MAX) capacity = TABLE_ROWS_MAX;
    void *block = PyMem_RawMalloc(columns_size(t->arity, capacity));
    if (!block) return -1;
    t->capacity = capacity;
    place_columns(t, block);
    memcpy(t->refs, old.refs, old.count * sizeof(uint32_t));
    for (uint32_t b = 0; b < t->arity; b++) {
        memcpy(t->slots + (size_t)b * capacity, old.slots + (size_t)b * old.capacity, old.count * sizeof(uint32_t));
        for (uint32_t side = 2 * b; side < 2 * b + 2; side++)
            memcpy(t->bounds + (size_t)side * capacity, old.bounds + (size_t)side * old.capacity,
                   old.count * sizeof(double));
    }
    PyMem_RawFree(old.bounds);
    return 0;
}

/* The table that takes the next row, with room for it. */
static table *table_with_room(cluster *home, uint32_t arity) {
    table *first = home->tables[arity];
    if (first && first->count < first->capacity) return first;
    if (first && first->capacity < TABLE_ROWS_MAX) return table_grow(first) < 0 ? NULL : first;
    table *fresh = table_new(home, arity, first ? TABLE_ROWS_MAX : 2);
    if (!fresh) return NULL;
    fresh->next = first;
    home->tables[arity] = fresh;
    return fresh;
}

int cluster_add_row(kernel_index *self, cluster *home, const box *boxes, uint32_t arity, uint32_t ref_number) {
    table *t = table_with_room(home, arity);
    if (!t) return -1;
    uint32_t row = t->count++;
    for (uint32_t b = 0; b < arity; b++) {
        t->slots[(size_t)b * t->capacity + row] = boxes[b].slot;
        t->bounds[(size_t)(2 * b) * t->capacity + row] = boxes[b].low;
        t->bounds[(size_t)(2 * b + 1) * t->capacity + row] = boxes[b].high;
    }
    t->refs[row] = ref_number;
    self->refs[ref_number].home = t;
    self->refs[ref_number].row = row;
    home->rows++;
    self->row_count++;
    note_rows(self, home, 1);
    return 0;
}

static void copy_row(kernel_index *self, const table *from, uint32_t row, table *to, uint32_t place) {
    for (uint32_t b = 0; b < to->arity; b++) {
        to->slots[(size_t)b * to->capacity + place] = from->slots[(size_t)b * from->capacity + row];
        for (uint32_t side = 2 * b; side < 2 * b + 2; side++)
            to->bounds[(size_t)side * to->capacity + place] = from->bounds[(size_t)side * from->capacity + row];
    }
    to->refs[place] = from->refs[row];
    self->refs[to->refs[place]].home = to;
    self->refs[to->refs[place]].row = place;
}

/* Takes the row out and leaves an empty cluster behind, if it was the last, for the caller to drop. */
static void take_out(kernel_index *self, table *t, uint32_t row) {
    cluster *home = t->home;
    table *first = home->tables[t->arity];
    uint32_t last = first->count - 1;
    if (t != first || row != last) copy_row(self, first, last, t, row);
    first->count = last;
    if (!last) {
        home->tables[first->arity] = first->next;
        table_free(first);
    }
    home->rows--;
    self->row_count--;
}

void cluster_remove_row(kernel_index *self, table *t, uint32_t row) {
    cluster *home = t->home;
    take_out(self, t, row);
    note_rows(self, home, -1);
    ladder_shrink(home);
    if (!home->rows) access_drop_cluster(self, home);
}

int cluster_move_row(kernel_index *self, table *from, uint32_t row, cluster *to) {
    table *t = table_with_room(to, from->arity);
    if (!t) return -1;
    copy_row(self, from, row, t, t->count++);
    to->rows++;
    self->row_count++;
    take_out(self, from, row);
    return 0;
}

void cluster_free(cluster *home) {
    for (uint32_t arity = 0; arity <= ARITY_MAX; arity++)
        for (table *t = home->tables[arity], *next; t; t = next) {
            next = t->next;
            table_free(t);
        }
    PyMem_RawFree(home);
}

/* ---- scanning */

int hits_reserve(kernel_index *self, size_t more) {
    size_t needed = self->hit_count + more;
    if (needed <= self->hit_capacity) return 0;
    size_t capacity = self->hit_capacity ? self->hit_capacity : 1024;
    while (capacity < needed) capacity *= 2;
    hit *grown = PyMem_RawRealloc(self->hits, capacity * sizeof(hit));
    if (!grown) return -1;
    self->hits = grown;
    if (!(grown = PyMem_RawRealloc(self->hits_spare, capacity * sizeof(hit)))) return -1;
    self->hits_spare = grown;
    self->hit_capacity = capacity;
    return 0;
}

/* The rows of a table whose boxes all contain the event, without a branch that the processor could mispredict. */
static uint32_t rows_inside(const table *t, const double *restrict event, uint32_t *restrict rows) {
    const uint32_t *restrict slots = t->slots;
    const double *restrict low = t->bounds;
    const double *restrict high = t->bounds + t->capacity;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        double value = event[slots[i]];
        rows[count] = i;
        count += (value >= low[i]) & (value <= high[i]);
    }
    for (uint32_t b = 1; b < t->arity && count; b++) {
        uint32_t candidates = count;
        slots += t->capacity;
        low += (size_t)2 * t->capacity;
        high += (size_t)2 * t->capacity;
        count = 0;
        for (uint32_t c = 0; c < candidates; c++) {
            uint32_t i = rows[c];
            double value = event[slots[i]];
            rows[count] = i;
            count += (value >= low[i]) & (value <= high[i]);
        }
    }
    return count;
}

/* Whether that is all that is asked for; `any`: a filter that certainly matches is. */
static inline bool take_hit(kernel_index *self, uint32_t ref_number, bool any) {
    const ref *r = &self->refs[ref_number];
    verdict result = MATCH;
    if (r->program) {
        self->work.programs_run++;
        result = program_run(self, r->program);
        if (result == NO_MATCH) return false;
    }
    self->hits[self->hit_count++] = (hit){self->records[r->record].order, r->record, result == ASK_FILTER};
    return any && result == MATCH;
}

/* 1: nothing more is asked for; -1: no memory. */
int cluster_scan(kernel_index *self, const cluster *home) {
    uint32_t rows[TABLE_ROWS_MAX];
    const bool any = self->any_will_do;
    self->work.clusters_scanned++;
    self->work.rows_scanned += home->rows;
    if (hits_reserve(self, home->rows) < 0) return -1;
    for (const table *t = home->tables[0]; t; t = t->next)
        for (uint32_t i = 0; i < t->count; i++)
            if (take_hit(self, t->refs[i], any)) return 1;
    for (uint32_t arity = 1; arity <= ARITY_MAX; arity++)
        for (const table *t = home->tables[arity]; t; t = t->next) {
            uint32_t count = rows_inside(t, self->slots, rows);
            for (uint32_t i = 0; i < count; i++)
                if (take_hit(self, t->refs[rows[i]], any)) return 1;
        }
    return 0;
}
