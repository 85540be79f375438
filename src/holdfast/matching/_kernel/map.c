/* A hash map of pointers with linear probing. The hash is kept, so growing never touches the items. */
#include "kernel.h"

static int shard_grow(map_shard *shard) {
    uint32_t size = shard->entries ? (shard->mask + 1) * 2 : 8;
    map_entry *entries = PyMem_RawCalloc(size, sizeof(map_entry));
    if (!entries) return -1;
    for (uint32_t i = 0; shard->entries && i <= shard->mask; i++) {
        if (!shard->entries[i].item) continue;
        uint64_t at = shard->entries[i].hash & (size - 1);
        while (entries[at].item) at = (at + 1) & (size - 1);
        entries[at] = shard->entries[i];
    }
    PyMem_RawFree(shard->entries);
    shard->entries = entries;
    shard->mask = size - 1;
    return 0;
}

int map_insert(map *m, uint64_t hash, void *item) {
    map_shard *shard = &m->shards[hash >> SHARD_SHIFT];
    if (!shard->entries || (uint64_t)shard->count * 4 >= ((uint64_t)shard->mask + 1) * 3)
        if (shard_grow(shard) < 0) return -1;
    uint64_t at = hash & shard->mask;
    while (shard->entries[at].item) at = (at + 1) & shard->mask;
    shard->entries[at] = (map_entry){hash, item};
    shard->count++;
    return 0;
}

void map_remove(map *m, uint64_t hash, const void *item) {
    map_shard *shard = &m->shards[hash >> SHARD_SHIFT];
    uint64_t hole = hash & shard->mask;
    while (shard->entries[hole].item != item) hole = (hole + 1) & shard->mask;
    /* Entries behind the hole move up unless that would put them before their own place. */
    for (uint64_t at = (hole + 1) & shard->mask; shard->entries[at].item; at = (at + 1) & shard->mask) {
        uint64_t own = shard->entries[at].hash & shard->mask;
        if (((at - own) & shard->mask) >= ((at - hole) & shard->mask)) {
            shard->entries[hole] = shard->entries[at];
            hole = at;
        }
    }
    shard->entries[hole] = (map_entry){0, NULL};
    shard->count--;
}

void map_free(map *m) {
    for (int i = 0; i < SHARDS; i++) PyMem_RawFree(m->shards[i].entries);
    memset(m, 0, sizeof(*m));
}
