/* Messages and remote memory between the processes of a fabric's hosts: docs/messages.md.
 *
 * In this file, in this order: statuses and errors; opening and closing; messages; areas;
 * primitives (push, pull, mcast, tagged messages, locks), each contiguous, then by stride, then by
 * bitmap; waiting.
 *
 * Link with libknotless_endpoint.so. An endpoint belongs to one thread at a time. Functions that
 * return int return 0 (or a length), or a negative number; knotless_error() then returns the reason
 * in one line. Requests of other processes are executed, and *status_ret is written, only inside
 * calls of this library.
 */
#ifndef KNOTLESS_ENDPOINT_H
#define KNOTLESS_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct knotless_endpoint knotless_endpoint;

/* A port of an interface, or of a group of interfaces (a multicast MAC address). */
typedef struct {
    uint8_t mac[6];
    uint8_t port;
} knotless_address;

/* The values of *status_ret. */
enum {
    KNOTLESS_PENDING = 0,
    KNOTLESS_DONE = 1,
    KNOTLESS_NO_AREA = 2,
    KNOTLESS_OUT_OF_BOUNDS = 3,
    KNOTLESS_NOT_ALLOWED = 4,
    KNOTLESS_MALFORMED = 5,
    KNOTLESS_ALREADY_HELD = 6,
    KNOTLESS_NOT_HOLDER = 7,
    KNOTLESS_BUSY = 8,
    KNOTLESS_PEER_LOST = 9,
    KNOTLESS_PEER_RESTARTED = 10
};

/* The values that a function returns if it fails. */
enum {
    KNOTLESS_WRONG_ARGUMENT = -1,
    KNOTLESS_FULL = -2,
    KNOTLESS_SYSTEM = -3,
    KNOTLESS_TIMED_OUT = -4,
    KNOTLESS_UNDELIVERED = -5
};

/* What others may do with an area. */
enum { KNOTLESS_READ = 1, KNOTLESS_WRITE = 2 };

/* The last error of this thread; valid until its next one. Never NULL. */
const char *knotless_error(void);

/* Claim a port of an interface of this network namespace; NULL when that fails. */
knotless_endpoint *knotless_open(const char *interface, uint8_t port);
void knotless_close(knotless_endpoint *endpoint);
knotless_address knotless_own(const knotless_endpoint *endpoint);
int knotless_join(knotless_endpoint *endpoint, const uint8_t group[6]);

/* Post a message; waits up to timeout_us while all send descriptors are in use. */
int knotless_send(knotless_endpoint *endpoint, knotless_address to, const void *data, size_t size,
                  int acknowledged, int64_t timeout_us);
/* Receive the oldest message: its whole length, of which at most `size` bytes are copied. A
 * negative timeout_us waits for ever, 0 only looks. KNOTLESS_TIMED_OUT when nothing came. */
int64_t knotless_receive(knotless_endpoint *endpoint, void *buffer, size_t size,
                         knotless_address *from, int64_t timeout_us);
int knotless_post_receive(knotless_endpoint *endpoint, size_t count);
/* Wait until everything posted is complete. Do so before the process ends. KNOTLESS_UNDELIVERED when
 * acknowledged messages have failed since the last call: their peers are lost or restarted. */
int knotless_flush(knotless_endpoint *endpoint, int64_t timeout_us);
/* Serve others and further what is posted for timeout_us; 0 does what is to be done now. */
int knotless_serve(knotless_endpoint *endpoint, int64_t timeout_us);
/* Readable when a frame has come: call knotless_serve then. */
int knotless_fd(const knotless_endpoint *endpoint);

/* Register an area of zeroes; its memory, valid until knotless_close. NULL when that fails. */
void *knotless_register(knotless_endpoint *endpoint, uint32_t area, size_t size, int rights);

/* Primitives. `src` is copied before they return; `dst` is written when the operation is done.
 * `status_ret` and `dst` must stay valid until *status_ret is not KNOTLESS_PENDING. */
int knotless_push(knotless_endpoint *endpoint, const void *src, knotless_address to, uint32_t area,
                  uint64_t offset, int32_t *status_ret, size_t size);
int knotless_push_stride(knotless_endpoint *endpoint, const void *src, knotless_address to,
                         uint32_t area, uint64_t offset, uint32_t block, uint32_t stride,
                         uint32_t count, int32_t *status_ret);
/* Element i of `element` bytes is written when bit i % 8 of bits[i / 8] is set; src holds those
 * only. */
int knotless_push_bitmap(knotless_endpoint *endpoint, const void *src, knotless_address to,
                         uint32_t area, uint64_t offset, uint32_t element, uint32_t elements,
                         const uint8_t *bits, int32_t *status_ret);
/* Write what differs between `twin` and `now`, and make the twin what `now` is. */
int knotless_push_diff(knotless_endpoint *endpoint, void *twin, const void *now, knotless_address to,
                       uint32_t area, uint64_t offset, int32_t *status_ret, size_t size);
int knotless_pull(knotless_endpoint *endpoint, void *dst, knotless_address from, uint32_t area,
                  uint64_t offset, int32_t *status_ret, size_t size);
/* `dst` gets the blocks, or the elements that are set, one behind the other. */
int knotless_pull_stride(knotless_endpoint *endpoint, void *dst, knotless_address from,
                         uint32_t area, uint64_t offset, uint32_t block, uint32_t stride,
                         uint32_t count, int32_t *status_ret);
int knotless_pull_bitmap(knotless_endpoint *endpoint, void *dst, knotless_address from,
                         uint32_t area, uint64_t offset, uint32_t element, uint32_t elements,
                         const uint8_t *bits, int32_t *status_ret);
/* Write to the same area of all members, who have joined the group. */
int knotless_mcast(knotless_endpoint *endpoint, const void *src, knotless_address group,
                   const knotless_address *members, size_t member_count, uint32_t area,
                   uint64_t offset, int32_t *status_ret, size_t size);
int knotless_mcast_stride(knotless_endpoint *endpoint, const void *src, knotless_address group,
                          const knotless_address *members, size_t member_count, uint32_t area,
                          uint64_t offset, uint32_t block, uint32_t stride, uint32_t count,
                          int32_t *status_ret);
int knotless_mcast_bitmap(knotless_endpoint *endpoint, const void *src, knotless_address group,
                          const knotless_address *members, size_t member_count, uint32_t area,
                          uint64_t offset, uint32_t element, uint32_t elements,
                          const uint8_t *bits, int32_t *status_ret);
/* A message that the receiver asks for by sender and tag. */
int knotless_isend(knotless_endpoint *endpoint, const void *src, knotless_address to, uint32_t tag,
                   int32_t *status_ret, size_t size);
/* From this process and with this tag. A longer message is cut. */
int knotless_irecv(knotless_endpoint *endpoint, void *dst, knotless_address from, uint32_t tag,
                   int32_t *status_ret, size_t size);
int knotless_lock(knotless_endpoint *endpoint, knotless_address keeper, uint32_t lock,
                  int32_t *status_ret);
int knotless_unlock(knotless_endpoint *endpoint, knotless_address keeper, uint32_t lock,
                    int32_t *status_ret);
/* Serve until *status_ret is not KNOTLESS_PENDING. */
int knotless_wait(knotless_endpoint *endpoint, const int32_t *status_ret, int64_t timeout_us);

#ifdef __cplusplus
}
#endif
#endif
