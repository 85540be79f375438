/* `scan_batch` and `scan_event` without Python: the bytes lie in a block of exactly their size, behind which the address
 * sanitizer sees every step. What was found sound is then read again as matching and looking do, and must be there. */
#include "../../src/holdfast/model/_events/scan.h"
#include "mutation.h"
#include <stdlib.h>

#define REQUIRE(condition) \
    if (!(condition)) abort()

static void read_again(const uint8_t *begin, const uint8_t *end, const event_facts *facts) {
    msgpack_reader r = {begin, end};
    event_head head;
    event_tail tail;
    REQUIRE(event_read_head(&r, &head));
    REQUIRE(head.attributes == facts->head.attributes && head.topic.bytes == facts->head.topic.bytes);
    bool sound = head.topic.length <= STRING_BYTES_MAX;
    for (uint32_t i = 0; i < head.attributes; i++) {
        msgpack_text name;
        msgpack_value value;
        REQUIRE(event_read_attribute(&r, &name, &value));
        REQUIRE(msgpack_is_utf8(name));
        REQUIRE(value.kind != MSGPACK_TEXT || msgpack_is_utf8(value.text));
        sound = sound && name.length > 0 && name.length <= NAME_BYTES_MAX;
    }
    REQUIRE(event_read_tail(&r, head.fields, &tail));
    REQUIRE(r.at == end);
    REQUIRE(facts->expires == (tail.lifetime.bits != 0));
    REQUIRE((event_deadline(&tail) > 0) == facts->expires);
    REQUIRE(sound || facts->doubtful);
}

static void scan(const uint8_t *bytes, size_t size) {
    msgpack_reader r = {bytes, bytes + size};
    event_facts facts[2], first = {0};
    uint32_t count, run = 0;
    if (!scan_batch(&r, size & 1 ? BATCH_EVENTS_MAX : UINT32_MAX, &count)) return;
    REQUIRE(count <= size);
    for (uint32_t row = 0; row < count; row++) {
        const uint8_t *begin = r.at;
        event_facts *now = &facts[row & 1];
        if (!scan_event(&r, row ? &facts[~row & 1] : NULL, now)) return;
        REQUIRE(begin < r.at && r.at <= bytes + size);
        read_again(begin, r.at, now);
        if (run && scan_continues(&first.head, run, &now->head)) run++;
        else {
            first = *now;
            run = 1;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    scan(size ? bytes : bytes + 1, size);
    free(bytes);
    return 0;
}
