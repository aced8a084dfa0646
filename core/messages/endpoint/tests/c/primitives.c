/* Run as `primitives keep PORTS...` and `primitives use ...`: every primitive of the C border between two
 * processes. The integration tests compile and run it; it ends with 0 when everything is as it must be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knotless_endpoint.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, knotless_error());         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { AREA = 4, BYTES = 64, TAG = 9, LOCK = 2, LIMIT_US = 10000000 };

static const knotless_address keeper = {{2, 0, 0, 0, 0, 2}, 1};
static const knotless_address user = {{2, 0, 0, 0, 0, 1}, 1};
static const knotless_address group = {{3, 0, 0, 0, 0, 1}, 1};

static void keep(knotless_endpoint *here) {
    char message[8];
    int32_t status;
    unsigned char *area = knotless_register(here, AREA, BYTES, KNOTLESS_READ | KNOTLESS_WRITE);
    CHECK(area != NULL);
    CHECK(knotless_register(here, AREA, BYTES, KNOTLESS_READ) == NULL);
    CHECK(knotless_join(here, group.mac) == 0);
    puts("ready");
    fflush(stdout);
    CHECK(knotless_irecv(here, message, user, TAG, &status, sizeof message) == 0);
    CHECK(status == KNOTLESS_PENDING);
    CHECK(knotless_wait(here, &status, 3 * LIMIT_US) == 0);
    CHECK(status == KNOTLESS_DONE && memcmp(message, "finished", 8) == 0);
    CHECK(memcmp(area, "abXcXdefgh", 10) == 0 && area[40] == 'm' && area[BYTES - 1] == 0);
    CHECK(memcmp(area + 44, "st\0\0st\0\0v\0w", 11) == 0);
    CHECK(knotless_send(here, user, "thanks", 6, 1, LIMIT_US) == 0);
    CHECK(knotless_flush(here, LIMIT_US) == 0);
}

static void finish(knotless_endpoint *here, const int32_t *status, int32_t expected) {
    CHECK(knotless_wait(here, status, LIMIT_US) == 0);
    CHECK(*status == expected);
}

static void use(knotless_endpoint *here) {
    unsigned char back[12] = {0}, twin[4], now[4];
    const uint8_t bits[] = {0x05};
    int32_t status;
    knotless_address from;
    CHECK(knotless_push(here, "abcdefgh", keeper, AREA, 0, &status, 8) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_push_stride(here, "cdefgh", keeper, AREA, 4, 3, 3, 2, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_push_bitmap(here, "XX", keeper, AREA, 2, 1, 3, bits, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_pull(here, back, keeper, AREA, 0, &status, 10) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(memcmp(back, "abXdXdefgh", 10) == 0);
    CHECK(knotless_pull_stride(here, back, keeper, AREA, 1, 2, 4, 2, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(memcmp(back, "bXde", 4) == 0);
    CHECK(knotless_pull_bitmap(here, back, keeper, AREA, 0, 2, 3, bits, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(memcmp(back, "abXd", 4) == 0);
    CHECK(knotless_pull_stride(here, back, keeper, AREA, 1, 4, 2, 2, &status) < 0);
    memcpy(back, "abXd", 4);
    memcpy(twin, back, 4);
    memcpy(now, "abXc", 4);
    CHECK(knotless_push_diff(here, twin, now, keeper, AREA, 0, &status, 4) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(memcmp(twin, now, 4) == 0);
    CHECK(knotless_mcast(here, "m", group, &keeper, 1, AREA, 40, &status, 1) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_mcast_stride(here, "stst", group, &keeper, 1, AREA, 44, 2, 4, 2, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_mcast_bitmap(here, "vw", group, &keeper, 1, AREA, 52, 1, 3, bits, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_mcast_bitmap(here, "vw", group, NULL, 1, AREA, 52, 1, 3, bits, &status) < 0);
    CHECK(knotless_push(here, "zz", keeper, AREA, BYTES - 1, &status, 2) == 0);
    finish(here, &status, KNOTLESS_OUT_OF_BOUNDS);
    CHECK(knotless_push(here, "z", keeper, AREA + 1, 0, &status, 1) == 0);
    finish(here, &status, KNOTLESS_NO_AREA);
    CHECK(knotless_lock(here, keeper, LOCK, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_unlock(here, keeper, LOCK, &status) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_unlock(here, keeper, LOCK, &status) == 0);
    finish(here, &status, KNOTLESS_NOT_HOLDER);
    CHECK(knotless_push(here, NULL, keeper, AREA, 0, &status, 1) == KNOTLESS_WRONG_ARGUMENT);
    CHECK(knotless_push(NULL, "z", keeper, AREA, 0, &status, 1) == KNOTLESS_WRONG_ARGUMENT);
    CHECK(strcmp(knotless_error(), "endpoint is NULL") == 0);
    CHECK(knotless_isend(here, "finished", keeper, TAG, &status, 8) == 0);
    finish(here, &status, KNOTLESS_DONE);
    CHECK(knotless_receive(here, back, 3, &from, LIMIT_US) == 6);
    CHECK(memcmp(back, "tha", 3) == 0 && memcmp(from.mac, keeper.mac, 6) == 0);
    CHECK(knotless_receive(here, back, 3, NULL, 0) == KNOTLESS_TIMED_OUT);
    CHECK(knotless_flush(here, LIMIT_US) == 0);
}

int main(int count, char **words) {
    knotless_endpoint *here = knotless_open("e0", 1);
    CHECK(here != NULL && count == 2);
    CHECK(knotless_open("nowhere", 1) == NULL);
    CHECK(strstr(knotless_error(), "nowhere") != NULL);
    if (strcmp(words[1], "keep") == 0)
        keep(here);
    else
        use(here);
    knotless_close(here);
    return 0;
}
