// The rows of a trace as the reader hands them out: times absolute, ids resolved.
//
// Times are ns in int64_t, never negative, below kMaxNs. `device` times are as CUPTI gave them; a ClockMap carries them
// to the host clock. References to dictionary entries are never null: what a damaged trace does not tell is the entry
// whose `known` is false. Entries and names live as long as the TraceReader; rows only during the callback.
#ifndef GPUPERF_READER_ROWS_H_
#define GPUPERF_READER_ROWS_H_

#include <cstdint>
#include <string>

#include "gpuperf/trace/v1/events.pb.h"

namespace gpuperf::reader {

namespace v1 = ::gpuperf::trace::v1;

inline constexpr int64_t kMaxNs = int64_t{1} << 62;  // the year 2116

// A string of the trace; equal strings have equal addresses. nullptr: not known (its definition was lost); "": not set.
using Name = const std::string*;

// One dictionary entry: what the file says of it (`definition`, ids of the file), and its names.
template <class Definition>
struct Entry {
  bool known = false;
  uint32_t index = 0;  // 1, 2 … over the whole trace, per kind; 0: not known
  Definition definition;
  Name name = nullptr;           // thread, kernel, call site (API function)
  Name function_name = nullptr;  // call site: the launched function
};
using ThreadEntry = Entry<v1::Thread>;
using StreamEntry = Entry<v1::Stream>;
using KernelEntry = Entry<v1::Kernel>;
using CallSiteEntry = Entry<v1::CallSite>;

// What kernels, copies and memory sets have in common.
struct DeviceRow {
  const StreamEntry* stream = nullptr;
  uint32_t stream_iid = 0;
  int64_t begin_device_ns = 0;
  int64_t end_device_ns = 0;
  uint64_t correlation = 0;
  uint32_t graph_id = 0;  // 0: not of a graph
  uint64_t graph_node_id = 0;

  int64_t duration_ns() const { return end_device_ns - begin_device_ns; }
};

struct KernelRow : DeviceRow {
  const KernelEntry* kernel = nullptr;
  uint32_t kernel_iid = 0;
  uint64_t queued_device_ns = 0;  // 0: not known
  uint64_t submitted_device_ns = 0;
};

struct CopyRow : DeviceRow {
  uint64_t bytes = 0;
  uint32_t copy_kind = 0;    // CUpti_ActivityMemcpyKind
  uint32_t source_kind = 0;  // CUpti_ActivityMemoryKind
  uint32_t destination_kind = 0;
  uint32_t flags = 0;
  uint64_t copy_count = 1;
  bool peer = false;  // the four fields below are set
  uint32_t source_device = 0;
  uint32_t source_context = 0;
  uint32_t destination_device = 0;
  uint32_t destination_context = 0;
};

struct MemsetRow : DeviceRow {
  uint64_t bytes = 0;
  uint32_t value = 0;
  uint32_t memory_kind = 0;
  uint32_t flags = 0;
};

// A finished call. What a call does not tell is 0, and the has_ flag of its group false.
struct CallRow {
  const ThreadEntry* thread = nullptr;
  const CallSiteEntry* site = nullptr;
  uint32_t thread_iid = 0;
  uint32_t site_iid = 0;
  int64_t enter_host_ns = 0;
  int64_t exit_host_ns = 0;
  uint64_t correlation = 0;
  uint32_t result = 0;  // cudaError_t or CUresult
  bool has_copy = false;
  bool has_event = false;
  bool has_memory = false;
  bool has_graph = false;
  uint64_t copy_destination = 0;
  uint64_t copy_source = 0;
  uint64_t copy_bytes = 0;
  uint32_t copy_kind = 0;  // cudaMemcpyKind
  uint64_t event_handle = 0;
  uint64_t memory_address = 0;
  uint64_t memory_bytes = 0;
  uint64_t graph_handle = 0;

  int64_t duration_ns() const { return exit_host_ns - enter_host_ns; }
};

struct OpenCallRow {
  const ThreadEntry* thread = nullptr;
  const CallSiteEntry* site = nullptr;
  v1::OpenCall row;
};

// Rows that need no more than their thread and names beside what the schema says.
template <class Message>
struct NamedRow {
  const ThreadEntry* thread = nullptr;
  Name name = nullptr;
  const Message& row;
  Name domain = nullptr;                    // annotations and marks of NVTX, where row.nvtx() names one
  const ThreadEntry* end_thread = nullptr;  // annotations
};
using StepRow = NamedRow<v1::Step>;
using AnnotationRow = NamedRow<v1::Annotation>;
using OpenAnnotationRow = NamedRow<v1::OpenAnnotation>;
using MarkRow = NamedRow<v1::Mark>;
using CounterRow = NamedRow<v1::Counter>;
using ResourceEventRow = NamedRow<v1::ResourceEvent>;
using LossRow = NamedRow<v1::Loss>;

// A name that the application gave to something.
struct ResourceNameRow {
  Name name = nullptr;
  Name domain = nullptr;  // where the row names one
  const v1::ResourceName& row;
};

struct OpaqueRow {
  const StreamEntry* stream = nullptr;
  const v1::OpaqueInterval& row;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_ROWS_H_
