/* The classic ways to match one event against many filters of the shape "one equality and two ranges", each in its
 * barest form: numbers only, no removal, no strings, nothing but the search itself. benchmarks/index_alternatives.py
 * compiles and times them, to choose the index's design by measurement (docs/adr/0002). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint32_t eq_slot, slot1, slot2; double value, low1, high1, low2, high2; } filter;

/* ---- scan: every filter, with early exit */

uint32_t scan_match(const filter *f, uint32_t n, const double *event, uint32_t *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        double a = event[f[i].slot1], b = event[f[i].slot2];
        out[count] = i;
        count += (event[f[i].eq_slot] == f[i].value) & (a >= f[i].low1) & (a <= f[i].high1) & (b >= f[i].low2) & (b <= f[i].high2);
    }
    return count;
}

/* ---- shared by counting and marking: the ranges of each slot, by lower bound and by upper bound */

typedef struct { double bound, other; uint32_t filter; } entry;
typedef struct { entry *by_low, *by_high; uint32_t count; } ranges;
typedef struct {
    uint32_t n, slots, values;
    ranges *ranges;
    uint32_t *eq_start, *eq_filters; /* by slot and value */
    uint8_t *counters;
    uint64_t *marks;
} lists;

static int by_bound(const void *a, const void *b) {
    double x = ((const entry *)a)->bound, y = ((const entry *)b)->bound;
    return (x > y) - (x < y);
}

lists *lists_new(const filter *f, uint32_t n, uint32_t slots, uint32_t values) {
    lists *l = calloc(1, sizeof(lists));
    l->n = n, l->slots = slots, l->values = values;
    l->ranges = calloc(slots, sizeof(ranges));
    for (uint32_t s = 0; s < slots; s++) {
        l->ranges[s].by_low = malloc(2 * (size_t)n * sizeof(entry));
        l->ranges[s].by_high = malloc(2 * (size_t)n * sizeof(entry));
    }
    l->eq_start = calloc((size_t)slots * values + 1, sizeof(uint32_t));
    l->eq_filters = malloc((size_t)n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) {
        ranges *r = &l->ranges[f[i].slot1];
        r->by_low[r->count] = (entry){f[i].low1, f[i].high1, i};
        r->by_high[r->count++] = (entry){f[i].high1, f[i].low1, i};
        r = &l->ranges[f[i].slot2];
        r->by_low[r->count] = (entry){f[i].low2, f[i].high2, i};
        r->by_high[r->count++] = (entry){f[i].high2, f[i].low2, i};
        l->eq_start[f[i].eq_slot * values + (uint32_t)f[i].value + 1]++;
    }
    for (uint32_t k = 0; k < slots * values; k++) l->eq_start[k + 1] += l->eq_start[k];
    uint32_t *fill = malloc(((size_t)slots * values + 1) * sizeof(uint32_t));
    memcpy(fill, l->eq_start, ((size_t)slots * values + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) l->eq_filters[fill[f[i].eq_slot * values + (uint32_t)f[i].value]++] = i;
    free(fill);
    for (uint32_t s = 0; s < slots; s++) {
        qsort(l->ranges[s].by_low, l->ranges[s].count, sizeof(entry), by_bound);
        qsort(l->ranges[s].by_high, l->ranges[s].count, sizeof(entry), by_bound);
    }
    l->counters = calloc(n, 1);
    l->marks = calloc(n / 64 + 1, sizeof(uint64_t));
    return l;
}

void lists_free(lists *l) {
    for (uint32_t s = 0; s < l->slots; s++) free(l->ranges[s].by_low), free(l->ranges[s].by_high);
    free(l->ranges), free(l->eq_start), free(l->eq_filters), free(l->counters), free(l->marks), free(l);
}

/* ---- counting (Siena's forwarding table and its kin): count satisfied predicates; three make a match */

uint32_t counting_match(lists *l, const double *event, uint32_t eq_slots, uint32_t *out) {
    memset(l->counters, 0, l->n);
    for (uint32_t s = eq_slots; s < l->slots; s++)
        for (uint32_t i = 0; i < l->ranges[s].count && l->ranges[s].by_low[i].bound <= event[s]; i++)
            l->counters[l->ranges[s].by_low[i].filter] += l->ranges[s].by_low[i].other >= event[s];
    uint32_t count = 0;
    for (uint32_t s = 0; s < eq_slots; s++) {
        uint32_t k = s * l->values + (uint32_t)event[s];
        for (uint32_t i = l->eq_start[k]; i < l->eq_start[k + 1]; i++)
            if (l->counters[l->eq_filters[i]] == 2) out[count++] = l->eq_filters[i];
    }
    return count;
}

/* ---- marking (REIN and the bitset methods): mark what a range excludes; what stays unmarked is left */

uint32_t marking_match(lists *l, const double *event, uint32_t eq_slots, uint32_t *out) {
    memset(l->marks, 0, (l->n / 64 + 1) * sizeof(uint64_t));
    for (uint32_t s = eq_slots; s < l->slots; s++) {
        const ranges *r = &l->ranges[s];
        for (uint32_t i = r->count; i-- > 0 && r->by_low[i].bound > event[s];)
            l->marks[r->by_low[i].filter / 64] |= 1ull << r->by_low[i].filter % 64;
        for (uint32_t i = 0; i < r->count && r->by_high[i].bound < event[s]; i++)
            l->marks[r->by_high[i].filter / 64] |= 1ull << r->by_high[i].filter % 64;
    }
    uint32_t count = 0;
    for (uint32_t s = 0; s < eq_slots; s++) {
        uint32_t k = s * l->values + (uint32_t)event[s];
        for (uint32_t i = l->eq_start[k]; i < l->eq_start[k + 1]; i++) {
            uint32_t f = l->eq_filters[i];
            if (!(l->marks[f / 64] >> f % 64 & 1)) out[count++] = f;
        }
    }
    return count;
}

/* ---- clusters (access predicates): rows stored by their equality, scanned in order */

typedef struct { uint32_t slots, values, *start, *number; filter *rows; } clusters;

clusters *clusters_new(const filter *f, uint32_t n, uint32_t slots, uint32_t values) {
    clusters *c = calloc(1, sizeof(clusters));
    c->slots = slots, c->values = values;
    c->start = calloc((size_t)slots * values + 2, sizeof(uint32_t));
    c->rows = malloc((size_t)n * sizeof(filter));
    c->number = malloc((size_t)n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++) c->start[f[i].eq_slot * values + (uint32_t)f[i].value + 2]++;
    for (uint32_t k = 0; k < slots * values; k++) c->start[k + 2] += c->start[k + 1];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t place = c->start[f[i].eq_slot * values + (uint32_t)f[i].value + 1]++;
        c->rows[place] = f[i], c->number[place] = i;
    }
    return c;
}

void clusters_free(clusters *c) { free(c->start), free(c->rows), free(c->number), free(c); }

uint32_t clusters_match(const clusters *c, const double *event, uint32_t eq_slots, uint32_t *out) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < eq_slots; s++) {
        uint32_t k = s * c->values + (uint32_t)event[s];
        for (uint32_t i = c->start[k]; i < c->start[k + 1]; i++) {
            const filter *f = &c->rows[i];
            double a = event[f->slot1], b = event[f->slot2];
            out[count] = c->number[i];
            count += (a >= f->low1) & (a <= f->high1) & (b >= f->low2) & (b <= f->high2);
        }
    }
    return count;
}
