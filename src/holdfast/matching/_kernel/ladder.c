/* Ladders: the access to ranges with one open end, rungs of rows ordered by their bound. A rung's key is the bound,
 * negated where the bound is an upper one, so that an event climbs to its own value in both cases. */
#include "kernel.h"

static double ladder_key(const cluster *rung, const table *t, uint32_t row) {
    for (uint32_t b = 0; b < t->arity; b++)
        if (t->slots[(size_t)b * t->capacity + row] == rung->slot) {
            const double *bounds = t->bounds + (size_t)(2 * b) * t->capacity + row;
            return rung->type == ACCESS_AT_LEAST ? bounds[0] : -bounds[t->capacity];
        }
    return -INFINITY; /* not reached: a ladder's row keeps the box that it is stored by */
}

static ladder *ladder_of(const kernel_index *self, const cluster *rung) {
    slot_info *info = info_of(self, rung->slot);
    return rung->type == ACCESS_AT_LEAST ? &info->at_least : &info->at_most;
}

/* The number of rungs whose fence is not above the key. */
static uint32_t rungs_up_to(const ladder *l, double key) {
    uint32_t low = 0, high = l->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (l->rungs[middle]->fence <= key) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int ladder_insert(ladder *l, uint32_t place, cluster *rung) {
    if (l->count == l->capacity) {
        uint32_t capacity = l->capacity ? l->capacity * 2 : 4;
        cluster **grown = PyMem_RawRealloc(l->rungs, capacity * sizeof(cluster *));
        if (!grown) return -1;
        l->rungs = grown;
        l->capacity = capacity;
    }
    memmove(l->rungs + place + 1, l->rungs + place, (l->count - place) * sizeof(cluster *));
    l->rungs[place] = rung;
    l->count++;
    return 0;
}

/* Fences ascend; equal ones may stand side by side where memory was short. */
static uint32_t rung_place(const ladder *l, const cluster *rung) {
    uint32_t place = rungs_up_to(l, rung->fence) - 1;
    while (l->rungs[place] != rung) place--;
    return place;
}

static uint32_t rung_limit(const cluster *rung) {
    return (rung->rows < RUNG_ROWS_MAX ? 1 : rung->rows) + RUNG_ROWS_MAX;
}

static cluster *rung_new(kernel_index *self, ladder *l, uint8_t type, uint32_t slot, uint32_t place, double fence) {
    cluster *fresh = cluster_new(self, (access_type)type, slot, 0, 0);
    if (!fresh) return NULL;
    fresh->fence = fence;
    fresh->frequent_key = NAN;
    fresh->split_at = rung_limit(fresh);
    if (ladder_insert(l, place, fresh) == 0) return fresh;
    self->cluster_count--;
    PyMem_RawFree(fresh);
    return NULL;
}

cluster *ladder_rung(kernel_index *self, const access_choice *choice) {
    slot_info *info = info_of(self, choice->slot);
    ladder *l = choice->type == ACCESS_AT_LEAST ? &info->at_least : &info->at_most;
    if (!l->count) return rung_new(self, l, (uint8_t)choice->type, choice->slot, 0, choice->key);
    uint32_t count = rungs_up_to(l, choice->key);
    cluster *rung = l->rungs[count ? count - 1 : 0];
    if (choice->key < rung->fence) rung->fence = choice->key; /* the lowest rung takes what is lower still */
    return rung;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where to split a rung: near its median key, and above its lowest. INFINITY if all its keys are equal. */
static double fence_between(const cluster *rung, double *median) {
    enum { SAMPLE_MAX = 1024 };
    double sample[SAMPLE_MAX], lowest = INFINITY, second = INFINITY;
    uint32_t step = rung->rows / SAMPLE_MAX + 1, seen_rows = 0, count = 0;
    for (uint32_t arity = 1; arity <= ARITY_MAX; arity++)
        for (const table *t = rung->tables[arity]; t; t = t->next)
            for (uint32_t row = 0; row < t->count; row++) {
                double key = ladder_key(rung, t, row);
                if (seen_rows++ % step == 0) sample[count++] = key;
                if (key < lowest) {
                    second = lowest;
                    lowest = key;
                } else if (key > lowest && key < second) {
                    second = key;
                }
            }
    qsort(sample, count, sizeof(double), by_value);
    *median = sample[count / 2];
    return *median > lowest ? *median : second;
}

/* Splits a rung that has grown too large. The smaller part moves, so that many equal keys stay where they are.
 * What can't be done for want of memory is left undone: that costs time, never a match. */
void ladder_split(kernel_index *self, cluster *rung, double new_key) {
    /* A rung of equal keys can't be split: it is looked at again when enough others have come. */
    if (new_key == rung->frequent_key) rung->split_at++;
    if (rung->rows < rung->split_at) return;
    ladder *l = ladder_of(self, rung);
    uint32_t place = rung_place(l, rung);
    double fence = fence_between(rung, &rung->frequent_key);
    rung->split_at = rung_limit(rung);
    if (fence == INFINITY || (place + 1 < l->count && l->rungs[place + 1]->fence <= fence)) return;
    uint32_t *refs = PyMem_RawMalloc(rung->rows * sizeof(uint32_t));
    if (!refs) return;
    uint32_t lower_count = 0, upper_count = 0; /* from the front, and from the back */
    for (uint32_t arity = 1; arity <= ARITY_MAX; arity++)
        for (const table *t = rung->tables[arity]; t; t = t->next)
            for (uint32_t row = 0; row < t->count; row++) {
                if (ladder_key(rung, t, row) < fence) refs[lower_count++] = t->refs[row];
                else refs[rung->rows - ++upper_count] = t->refs[row];
            }
    bool is_upper = upper_count <= lower_count;
    cluster *fresh = rung_new(self, l, rung->type, rung->slot, place + is_upper, is_upper ? fence : rung->fence);
    if (fresh) {
        const uint32_t *moving = is_upper ? refs + lower_count : refs;
        uint32_t count = is_upper ? upper_count : lower_count, moved = 0;
        while (moved < count && cluster_move_row(self, self->refs[moving[moved]].home, self->refs[moving[moved]].row, fresh) == 0)
            moved++;
        /* Rows that had to stay are found still: no event that they match is below the fence of the old rung. */
        if (!moved) access_drop_cluster(self, fresh);
        if (moved == count) {
            if (!is_upper) rung->fence = fence;
            fresh->split_at = rung_limit(fresh);
            rung->split_at = rung_limit(rung);
        }
    }
    PyMem_RawFree(refs);
}

/* A rung that was large with equal keys and is small now may be split again. */
void ladder_shrink(cluster *rung) {
    bool is_rung = rung->type == ACCESS_AT_LEAST || rung->type == ACCESS_AT_MOST;
    if (is_rung && rung->split_at > RUNG_ROWS_MAX + 1 && rung->rows < rung->split_at / 2) rung->split_at = rung_limit(rung);
}

void ladder_remove(kernel_index *self, cluster *rung) {
    ladder *l = ladder_of(self, rung);
    uint32_t place = rung_place(l, rung);
    l->count--;
    memmove(l->rungs + place, l->rungs + place + 1, (l->count - place) * sizeof(cluster *));
}

/* The share of the rungs that an event must climb to reach the key. */
double ladder_share(const ladder *l, double key) {
    if (l->count < 2) return l->count && l->rungs[0]->rows >= TELLING_ROWS ? 0.6 : 0.0;
    uint32_t below = rungs_up_to(l, key);
    return (double)(l->count - (below ? below - 1 : 0)) / l->count;
}

int ladder_probe(kernel_index *self, const ladder *l, double key) {
    uint32_t count = rungs_up_to(l, key);
    int outcome = 0;
    for (uint32_t i = 0; i < count && !outcome; i++) outcome = cluster_scan(self, l->rungs[i]);
    return outcome;
}
