// The controls of the stand-in libcupti: what a test puts in (callbacks, activity records, faults) and what it reads
// back (what was really dispatched and delivered, which rules the client broke).
//
// Exported by the stand-in itself; find them with dlsym. Every function may be called from any thread. The stand-in
// never crashes a client for breaking a rule, except where the real library does (NULL buffer before CUPTI 12.9).
#ifndef GPUPERF_TESTS_FAKES_FAKE_CUPTI_H_
#define GPUPERF_TESTS_FAKES_FAKE_CUPTI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_CUPTI_KINDS = 64, FAKE_CUPTI_VIOLATIONS = 32 };

typedef struct fake_cupti_stats {
  uint64_t callbacks;                      // dispatched to the subscriber
  uint64_t stored[FAKE_CUPTI_KINDS];       // records put into the client's buffers
  uint64_t not_enabled[FAKE_CUPTI_KINDS];  // records of kinds that the client has not enabled
  uint64_t delivered[FAKE_CUPTI_KINDS];    // records in buffers that were handed back
  uint64_t pending;                        // records in buffers that the client has not got back yet
  uint64_t buffers_requested;
  uint64_t buffers_completed;
  uint64_t null_buffers;         // requests that the client answered with NULL
  uint64_t dropped;              // records dropped, by a fault or for want of a buffer
  uint64_t zero_timestamps;      // injected
  uint64_t reversed_timestamps;  // injected
  uint64_t no_launch;            // injected: correlation id that no call has
  uint64_t unknown_records;      // injected: record of an unknown kind as a buffer's last
  uint64_t lost_at_finalize;     // records in buffers when the client finalized
  uint64_t finalizes;
  uint64_t flushes;
  uint64_t subscribes;  // successful
  uint64_t violations;
  char violation[FAKE_CUPTI_VIOLATIONS][96];  // the first ones, in words
  char walker[256];                           // path of the real libcupti that walks records; "own" if none
} fake_cupti_stats;

// Faults: a comma-separated list of NAME or NAME:N (every Nth record of kind CONCURRENT_KERNEL, from the Nth on).
//   busy                 cuptiSubscribe returns 39
//   no-driver            every call that needs a driver returns 999
//   cupti-12             version 12.6: its record sizes; aborts the process when the client gives it a NULL buffer
//   no-parameters        callbacks come without the parameter struct, as from a driver that is newer than the headers
//   zero-timestamps:N    start = end = 0
//   reversed-timestamps:N   end before start
//   dropped:N            CUPTI drops the record and counts it
//   no-launch:N          correlation id that no call has
//   unknown-kind:N       a record of a kind that no CUPTI knows follows, as its buffer's last
// Also taken from GPUPERF_FAKE_SCENARIO when the library is loaded. Returns 0, or -1 for an unknown name.
int fake_cupti_configure(const char* faults);

// Back to the state after loading: no client, no faults, counts zero. Only while nothing else calls the stand-in.
void fake_cupti_reset(void);

// Dispatches one callback if the client has subscribed to it; `data` is a CUpti_CallbackData. Returns 1 if dispatched.
int fake_cupti_callback(uint32_t domain, uint32_t cbid, const void* data);

// Puts one activity record into the client's buffers; returns 1 if it went in. Blocks only in the client's callbacks.
int fake_cupti_push_record(const void* record, size_t size);

// The correlation ids that calls of this replay have lie in [first, first + count) modulo 2^32: no-launch avoids them.
void fake_cupti_set_correlation_range(uint32_t first, uint64_t count);

void fake_cupti_get_stats(fake_cupti_stats* stats);

#ifdef __cplusplus
}
#endif
#endif  // GPUPERF_TESTS_FAKES_FAKE_CUPTI_H_
