/* Access: which cluster a conjunction is stored in, and which clusters an event reaches.
 *
 *   point    slot = value: a hash map. Equality, IN (one row a value), booleans, presence.
 *   range    low <= slot <= high: buckets on the bits of doubles in their order, whose widths are powers of 4. A
 *            range is stored in the one or two neighbouring buckets of the finest level that hold it; an event
 *            looks into one bucket of each level in use. No assumption on how values are distributed.
 *   prefix   LIKE 'abc%': a hash of the prefix; an event's string is hashed once, stopping at the lengths in use.
 *   ladder   slot >= low or slot <= high alone: rungs ordered by the bound; an event climbs to its own value.
 *   always   what is left.
 *
 * Of the possible accesses of a conjunction the one is taken that the smallest share of events is guessed to reach,
 * assuming that events ask for values as filters do. A bad guess costs time, never a match. */
#include "kernel.h"
#include <float.h>

/* Doubles as integers in the same order. */
static uint64_t order_bits(double value) {
    uint64_t bits = bits_of(value);
    return bits >> 63 ? ~bits : bits | (1ull << 63);
}

static double value_at(uint64_t order) {
    uint64_t bits = order >> 63 ? order & ~(1ull << 63) : ~order;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t prefix_step(uint64_t hash, uint8_t byte) { return (hash ^ byte) * 0x100000001B3u; }

uint64_t prefix_hash(const kernel_index *self, const char *bytes, uint32_t length) {
    uint64_t hash = self->seed;
    for (uint32_t i = 0; i < length; i++) hash = prefix_step(hash, (uint8_t)bytes[i]);
    return hash;
}

/* ---- the map of clusters */

typedef struct { uint64_t bits; uint32_t slot, level; uint8_t type; } cluster_key;

static bool cluster_equal(const void *item, const void *key) {
    const cluster *found = item;
    const cluster_key *wanted = key;
    return found->bits == wanted->bits && found->slot == wanted->slot && found->level == wanted->level &&
           found->type == wanted->type;
}

static inline uint64_t cluster_hash(const kernel_index *self, const cluster_key *key) {
    return mix(key->bits ^ self->seed, (uint64_t)key->slot << 32 | (uint64_t)key->level << 3 | key->type);
}

static cluster *cluster_find(const kernel_index *self, access_type type, uint32_t slot, uint32_t level, uint64_t bits) {
    cluster_key key = {bits, slot, level, (uint8_t)type};
    return map_find(&self->clusters, cluster_hash(self, &key), cluster_equal, &key);
}

cluster *cluster_new(kernel_index *self, access_type type, uint32_t slot, uint32_t level, uint64_t bits) {
    cluster *fresh = PyMem_RawCalloc(1, sizeof(cluster));
    if (!fresh) return NULL;
    fresh->type = (uint8_t)type;
    fresh->slot = slot;
    fresh->level = level;
    fresh->bits = bits;
    self->cluster_count++;
    return fresh;
}

/* ---- choosing */

void note_span(slot_info *slot, const box *b) {
    if (isfinite(b->low)) {
        slot->span_low = fmin(slot->span_low, b->low);
        slot->span_high = fmax(slot->span_high, b->low);
    }
    if (isfinite(b->high)) {
        slot->span_low = fmin(slot->span_low, b->high);
        slot->span_high = fmax(slot->span_high, b->high);
    }
}

/* The access to a range of numbers or string keys, or false if the box bounds nothing. */
bool access_for_range(const box *b, access_choice *choice, uint64_t bits[2]) {
    choice->slot = b->slot;
    if (isfinite(b->low) && isfinite(b->high)) {
        uint64_t low = order_bits(b->low), high = order_bits(b->high);
        for (uint32_t level = 0; level < LEVELS; level++) {
            uint64_t first = low >> (level * LEVEL_BITS), last = high >> (level * LEVEL_BITS);
            if (last - first > 1) continue;
            choice->type = ACCESS_RANGE;
            choice->level = level;
            choice->bits = bits;
            choice->bits_count = (uint32_t)(last - first) + 1;
            bits[0] = first;
            bits[1] = last;
            return true;
        }
    }
    if (isfinite(b->low)) {
        choice->type = ACCESS_AT_LEAST;
        choice->key = b->low;
        return true;
    }
    if (isfinite(b->high)) {
        choice->type = ACCESS_AT_MOST;
        choice->key = -b->high;
        return true;
    }
    return false;
}

static double share_of(const cluster *found, uint32_t total) {
    return ((found ? found->rows : 0) + 1.0) / (total + 8.0); /* of what nobody has used yet, an eighth at first */
}

static double clamp(double share, double low, double high) { return share < low ? low : share > high ? high : share; }

/* What rows stored so far say of a share, as soon as they are enough to say anything. A span alone says little: one
 * filter with a bound of 1e300 would make all other ranges look narrow. */
static double share_of_buckets(const kernel_index *self, const slot_info *info, const access_choice *choice) {
    double rows = 1.0;
    for (uint32_t i = 0; i < choice->bits_count; i++) {
        const cluster *found = cluster_find(self, ACCESS_RANGE, choice->slot, choice->level, choice->bits[i]);
        if (found) rows += found->rows;
    }
    return info->range_rows < TELLING_ROWS ? 0.0 : rows / (info->range_rows + 2.0);
}

void access_guess(const kernel_index *self, access_choice *choice) {
    choice->share = 1.0;
    if (choice->type == ACCESS_ALWAYS) return;
    const slot_info *info = info_of(self, choice->slot);
    double span = fmin(info->span_high - info->span_low, DBL_MAX); /* two large bounds may be further apart */
    switch (choice->type) {
        case ACCESS_POINT:
            if (choice->slot % SLOTS_PER_ATTRIBUTE == KIND_PRESENCE) {
                choice->share = 0.97;
                break;
            }
            choice->share = 0.0;
            for (uint32_t i = 0; i < choice->bits_count; i++)
                choice->share += share_of(cluster_find(self, ACCESS_POINT, choice->slot, 0, choice->bits[i]), info->point_rows);
            /* A long list of values that nobody has used yet is still better than asking every event. */
            choice->share = clamp(choice->share, choice->slot % SLOTS_PER_ATTRIBUTE == KIND_BOOLEAN ? 0.5 : 0.0, 0.9);
            break;
        case ACCESS_PREFIX: {
            const attribute *owner = self->attributes[choice->slot / SLOTS_PER_ATTRIBUTE];
            choice->share = share_of(cluster_find(self, ACCESS_PREFIX, choice->slot, choice->level, choice->bits[0]), owner->prefix_rows);
            break;
        }
        case ACCESS_RANGE: {
            /* The buckets, not the range itself: they may be four times as wide. */
            uint32_t shift = choice->level * LEVEL_BITS;
            uint64_t last = choice->bits[choice->bits_count - 1];
            double low = fmax(value_at(choice->bits[0] << shift), info->span_low);
            double high = fmin(value_at((last << shift) | ((1ull << shift) - 1)), info->span_high);
            /* Strings crowd behind common beginnings, which a share of the span knows nothing of. */
            double least = choice->slot % SLOTS_PER_ATTRIBUTE == KIND_KEY ? 0.05 : 1e-6;
            choice->share = span > 0 ? (high - low) / span : 0.7;
            choice->share = clamp(fmax(choice->share, share_of_buckets(self, info, choice)), least, 0.9);
            break;
        }
        case ACCESS_AT_LEAST:
            choice->share = span > 0 ? (info->span_high - choice->key) / span : 0.6;
            choice->share = clamp(fmax(choice->share, ladder_share(&info->at_least, choice->key)), 0.05, 0.95);
            break;
        default:
            choice->share = span > 0 ? (-choice->key - info->span_low) / span : 0.6;
            choice->share = clamp(fmax(choice->share, ladder_share(&info->at_most, choice->key)), 0.05, 0.95);
            break;
    }
    choice->share += 1e-9 * choice->bits_count; /* of equals, the one with fewer rows */
}

/* ---- making and dropping clusters */

/* Keeps the totals that shares are guessed from. */
void note_rows(kernel_index *self, const cluster *home, int change) {
    if (home->type == ACCESS_POINT) info_of(self, home->slot)->point_rows += (uint32_t)change;
    else if (home->type == ACCESS_RANGE) info_of(self, home->slot)->range_rows += (uint32_t)change;
    else if (home->type == ACCESS_PREFIX)
        self->attributes[home->slot / SLOTS_PER_ATTRIBUTE]->prefix_rows += (uint32_t)change;
}

static int note_prefix_length(attribute *owner, uint32_t length) {
    uint32_t at = 0;
    while (at < owner->prefix_count && owner->prefixes[at].length < length) at++;
    if (at < owner->prefix_count && owner->prefixes[at].length == length) {
        owner->prefixes[at].clusters++;
        return 0;
    }
    if (owner->prefix_count == owner->prefix_capacity) {
        uint32_t capacity = owner->prefix_capacity ? owner->prefix_capacity * 2 : 4;
        void *grown = PyMem_RawRealloc(owner->prefixes, capacity * sizeof(*owner->prefixes));
        if (!grown) return -1;
        owner->prefixes = grown;
        owner->prefix_capacity = capacity;
    }
    memmove(owner->prefixes + at + 1, owner->prefixes + at, (owner->prefix_count - at) * sizeof(*owner->prefixes));
    owner->prefixes[at].length = length;
    owner->prefixes[at].clusters = 1;
    owner->prefix_count++;
    return 0;
}

static void forget_prefix_length(attribute *owner, uint32_t length) {
    uint32_t at = 0;
    while (owner->prefixes[at].length != length) at++;
    if (--owner->prefixes[at].clusters) return;
    owner->prefix_count--;
    memmove(owner->prefixes + at, owner->prefixes + at + 1, (owner->prefix_count - at) * sizeof(*owner->prefixes));
}

static int note_cluster(kernel_index *self, const cluster *fresh) {
    slot_info *info = info_of(self, fresh->slot);
    switch (fresh->type) {
        case ACCESS_POINT:
            info->point_clusters++;
            return 0;
        case ACCESS_RANGE:
            if (!info->level_buckets && !(info->level_buckets = PyMem_RawCalloc(LEVELS, sizeof(uint32_t)))) return -1;
            info->level_buckets[fresh->level]++;
            info->levels |= 1u << fresh->level;
            return 0;
        default:
            return note_prefix_length(self->attributes[fresh->slot / SLOTS_PER_ATTRIBUTE], fresh->level);
    }
}

/* The cluster for one of the choice's bits, made if there is none. */
cluster *access_cluster(kernel_index *self, const access_choice *choice, uint64_t bits) {
    if (choice->type == ACCESS_ALWAYS) {
        if (!self->always) self->always = cluster_new(self, ACCESS_ALWAYS, 0, 0, 0);
        return self->always;
    }
    if (choice->type == ACCESS_AT_LEAST || choice->type == ACCESS_AT_MOST) return ladder_rung(self, choice);
    cluster_key key = {bits, choice->slot, choice->level, (uint8_t)choice->type};
    uint64_t hash = cluster_hash(self, &key);
    cluster *found = map_find(&self->clusters, hash, cluster_equal, &key);
    if (found) return found;
    cluster *fresh = cluster_new(self, choice->type, choice->slot, choice->level, bits);
    if (!fresh) return NULL;
    fresh->hash = hash;
    if (map_insert(&self->clusters, hash, fresh) == 0) {
        if (note_cluster(self, fresh) == 0) return fresh;
        map_remove(&self->clusters, hash, fresh);
    }
    self->cluster_count--;
    PyMem_RawFree(fresh);
    return NULL;
}

void access_drop_cluster(kernel_index *self, cluster *gone) {
    self->cluster_count--;
    if (gone->type == ACCESS_ALWAYS) {
        self->always = NULL;
    } else if (gone->type == ACCESS_AT_LEAST || gone->type == ACCESS_AT_MOST) {
        ladder_remove(self, gone);
    } else {
        map_remove(&self->clusters, gone->hash, gone);
        slot_info *info = info_of(self, gone->slot);
        if (gone->type == ACCESS_POINT) info->point_clusters--;
        else if (gone->type == ACCESS_PREFIX)
            forget_prefix_length(self->attributes[gone->slot / SLOTS_PER_ATTRIBUTE], gone->level);
        else if (!--info->level_buckets[gone->level])
            info->levels &= ~(1u << gone->level);
    }
    cluster_free(gone);
}

/* ---- probing: every cluster that the event's values name; like a scan, 1 says that nothing more is asked for */

static int scan_found(kernel_index *self, access_type type, uint32_t slot, uint32_t level, uint64_t bits) {
    const cluster *found = cluster_find(self, type, slot, level, bits);
    return found ? cluster_scan(self, found) : 0;
}

static int probe_order(kernel_index *self, const slot_info *info, uint32_t slot) {
    double value = self->slots[slot];
    uint64_t order = order_bits(value);
    int outcome = 0;
    for (uint32_t levels = info->levels; levels && !outcome; levels &= levels - 1) {
        uint32_t level = (uint32_t)__builtin_ctz(levels);
        outcome = scan_found(self, ACCESS_RANGE, slot, level, order >> (level * LEVEL_BITS));
    }
    if (info->at_least.count && !outcome) outcome = ladder_probe(self, &info->at_least, value);
    if (info->at_most.count && !outcome) outcome = ladder_probe(self, &info->at_most, -value);
    return outcome;
}

static int probe_prefixes(kernel_index *self, const attribute *owner, uint32_t slot, const seen *value) {
    uint64_t hash = self->seed;
    uint32_t at = 0;
    int outcome = 0;
    for (uint32_t p = 0; p < owner->prefix_count && owner->prefixes[p].length <= value->length && !outcome; p++) {
        for (; at < owner->prefixes[p].length; at++) hash = prefix_step(hash, (uint8_t)value->text[at]);
        outcome = scan_found(self, ACCESS_PREFIX, slot, at, hash);
    }
    return outcome;
}

static int probe_attribute(kernel_index *self, uint32_t number) {
    const attribute *owner = self->attributes[number];
    const seen *value = &self->seen[number];
    uint32_t base = number * SLOTS_PER_ATTRIBUTE;
    const slot_info *info = owner->slots;
    int outcome = 0;
    if (info[KIND_PRESENCE].point_clusters)
        outcome = scan_found(self, ACCESS_POINT, base + KIND_PRESENCE, 0, bits_of(1.0));
    if (outcome) return outcome;
    switch ((seen_kind)value->kind) {
        case SEEN_INTEGER:
        case SEEN_FLOAT:
            /* A number that is no double equals no point: points are doubles. */
            if (info[KIND_NUMBER].point_clusters && value->is_exact)
                outcome = scan_found(self, ACCESS_POINT, base + KIND_NUMBER, 0, bits_of(self->slots[base + KIND_NUMBER]));
            return outcome ? outcome : probe_order(self, &info[KIND_NUMBER], base + KIND_NUMBER);
        case SEEN_STRING:
            if (info[KIND_STRING].point_clusters && value->string != NONE)
                outcome = scan_found(self, ACCESS_POINT, base + KIND_STRING, 0, bits_of(value->string));
            if (owner->prefix_count && !outcome) outcome = probe_prefixes(self, owner, base + KIND_STRING, value);
            return outcome ? outcome : probe_order(self, &info[KIND_KEY], base + KIND_KEY);
        case SEEN_BOOLEAN:
            return info[KIND_BOOLEAN].point_clusters
                       ? scan_found(self, ACCESS_POINT, base + KIND_BOOLEAN, 0, bits_of(self->slots[base + KIND_BOOLEAN]))
                       : 0;
        default:
            return 0;
    }
}

int access_probe(kernel_index *self) {
    int outcome = self->always ? cluster_scan(self, self->always) : 0;
    for (uint32_t i = 0; i < self->touched_count && !outcome; i++) outcome = probe_attribute(self, self->touched[i]);
    return outcome;
}
