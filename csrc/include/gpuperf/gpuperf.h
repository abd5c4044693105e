/* gpuperf's C interface: everything that libgpuperf.so exports, beside the injection entry point.
 *
 * Plain C, no exceptions, no C++ types. Every function may be called from any thread, at any time, also before start,
 * after stop and in a forked child (there it does nothing and says GPUPERF_NOT_RUNNING). No function takes Python's
 * GIL. The marker functions (step … counter) never block, lock or write to disk; they allocate only at a thread's
 * first event. Strings are UTF-8 and are copied before the call returns.
 */
#ifndef GPUPERF_GPUPERF_H_
#define GPUPERF_GPUPERF_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUPERF_ABI_VERSION 1
#define GPUPERF_API __attribute__((visibility("default")))

typedef enum gpuperf_status {
  GPUPERF_OK = 0,
  GPUPERF_UNEXPECTED = 1,
  GPUPERF_INVALID_OPTION = 2, /* unknown option or value that does not parse */
  GPUPERF_OUTPUT_EXISTS = 3,  /* the output file stood before the run and `force` is not set */
  GPUPERF_OUTPUT_UNWRITABLE = 4,
  GPUPERF_UNAVAILABLE = 5, /* no GPU, no driver or no libcupti */
  GPUPERF_BUSY = 6,        /* another client holds CUPTI */
  GPUPERF_DISABLED = 7,    /* GPUPERF_DISABLE=1, or a forked child */
  GPUPERF_NOT_RUNNING = 8,
  GPUPERF_ALREADY_RUNNING = 9 /* start() while running: nothing changed */
} gpuperf_status;

typedef enum gpuperf_state {
  GPUPERF_STATE_IDLE = 0, /* never started */
  GPUPERF_STATE_RUNNING = 1,
  GPUPERF_STATE_STOPPED = 2,
  GPUPERF_STATE_YIELDED = 3,   /* stopped for another CUPTI client; the trace is closed */
  GPUPERF_STATE_FORKED = 4,    /* a forked child of a traced process: silent for ever */
  GPUPERF_STATE_UNWRITABLE = 5 /* running, but the disk refuses the trace: counts go on, the trace has ended */
} gpuperf_state;

/* One option by the name it has in gpuperf_option_table_json(). Values are text: "1"/"0" for booleans, bytes as plain
 * numbers. A NULL value takes the default; for "output" it means "live state only, write nothing". */
typedef struct gpuperf_option {
  const char* name;
  const char* value;
} gpuperf_option;

/* Counts since the session started. Set struct_size before the call; only that much is written. */
typedef struct gpuperf_stats {
  size_t struct_size;
  uint64_t kernels;
  uint64_t copies;
  uint64_t memsets;
  uint64_t calls; /* finished host-side calls */
  uint64_t steps;
  uint64_t lost;     /* records known not to be in the trace; refused buffers are no records */
  uint64_t unjoined; /* device records whose call is not in the trace */
  uint64_t written_bytes;
  uint64_t callback_ns;      /* estimate, see trace SelfCost */
  uint64_t collector_cpu_ns; /* collector and flush thread */
  uint64_t ring_bytes;
  uint64_t buffer_bytes_peak;
  uint64_t opened_calls; /* calls entered (published at enter); minus calls = inside a call now */
  uint64_t finalize_ns;  /* of the last stop; 0 = did not finalize */
} gpuperf_stats;

GPUPERF_API uint32_t gpuperf_abi_version(void);
GPUPERF_API const char* gpuperf_version(void); /* "0.1.0" */

/* Starts a session. Options given here override GPUPERF_* variables, which override defaults. On failure nothing
 * runs, gpuperf_last_error() says why in one sentence with what to do, and the job is untouched. */
GPUPERF_API gpuperf_status gpuperf_start(const gpuperf_option* options, size_t count);

/* Ends the session: flushes, finalizes CUPTI where that is safe, writes the footer, prints the one summary line (unless
 * quiet). Waits for the GPU. Idempotent. Release the GIL around it. */
GPUPERF_API gpuperf_status gpuperf_stop(void);

/* Ends the session as gpuperf_stop does, because another CUPTI client is about to start; `why` goes into the trace as
 * an outage and into one line on stderr. */
GPUPERF_API gpuperf_status gpuperf_yield(const char* why);

/* To be called when the process is about to end and CUDA still works (Python's atexit). Stops a running session. And if
 * an earlier session of ours was the first to load CUPTI, and another client (torch.profiler) holds it now, detaches
 * CUPTI: its own exit function was registered before that client's library was loaded, so it would run after that
 * client's data are gone, call into them and abort the process. */
GPUPERF_API void gpuperf_at_exit(void);

/* Waits until everything seen up to now is in the trace file, at most timeout_ms. */
GPUPERF_API gpuperf_status gpuperf_flush(uint32_t timeout_ms);

GPUPERF_API gpuperf_state gpuperf_get_state(void);
GPUPERF_API gpuperf_status gpuperf_get_stats(gpuperf_stats* stats);

/* Path of the trace being written or last written, "" if none (yet): a file is created at the first CUDA event. Writes
 * at most `size` bytes with the terminating 0; returns the full length. The same for last_error. */
GPUPERF_API size_t gpuperf_output_path(char* buffer, size_t size);
GPUPERF_API size_t gpuperf_last_error(char* buffer, size_t size);

/* Markers. `samples` and `tokens`: -1 = not given. */
GPUPERF_API void gpuperf_step(int64_t samples, int64_t tokens);
GPUPERF_API void gpuperf_annotation_begin(const char* name, size_t length);
GPUPERF_API void gpuperf_annotation_end(void); /* ends this thread's innermost open annotation */
GPUPERF_API void gpuperf_mark(const char* name, size_t length);
GPUPERF_API void gpuperf_counter(const char* name, size_t length, double value);

/* Metadata for the trace (RunInfo.versions), e.g. ("torch", "2.11.0"). Before or during a session. */
GPUPERF_API void gpuperf_set_version(const char* key, const char* value);

/* The option table: a JSON array of {"name","type","default","env","help"}; type is "bool", "bytes", "int", "path" or
 * "text". The CLI, the docs page and the warning about unknown variables are made of it. */
GPUPERF_API const char* gpuperf_option_table_json(void);

/* What this machine offers, as JSON (for `gpuperf doctor`): CUPTI libraries, driver, GPUs, who holds CUPTI, NVML.
 * Initialises CUDA's driver API in this process. Same buffer contract as gpuperf_last_error; call with size 0 first. */
GPUPERF_API size_t gpuperf_probe_json(char* buffer, size_t size);

/* Called by the CUDA driver inside cuInit when CUDA_INJECTION64_PATH names this library. Always returns 1: a job must
 * never fail because of us. */
GPUPERF_API int InitializeInjection(void);

/* Called by every shared library that uses NVTX, at its first NVTX call, when NVTX_INJECTION64_PATH names this library.
 * 0: that library's NVTX stays off (GPUPERF_DISABLE, GPUPERF_NVTX=0, or tables that are not NVTX 3's). */
GPUPERF_API int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t id));

#ifdef __cplusplus
}
#endif
#endif /* GPUPERF_GPUPERF_H_ */
