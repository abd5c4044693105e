// Turns CUPTI's activity buffers into rows. Records are walked with CUPTI's own GetNextRecord and read through the
// views of cupti/records.h, as far as the loaded library's records reach. Collector thread only; makes no other CUPTI
// call.
#ifndef GPUPERF_COLLECTOR_ACTIVITY_DECODER_H_
#define GPUPERF_COLLECTOR_ACTIVITY_DECODER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "collector/context.h"
#include "cupti/cupti_api.h"
#include "ring/buffer_pool.h"

namespace gpuperf::collector {

class ActivityDecoder {
 public:
  ActivityDecoder(const cupti::Api& api, Context& context);

  void Decode(const ring::ActivityBuffer& buffer);

  // Dictionaries were restarted and batches dropped: forget what is cached of them.
  void Forget();

 private:
  struct CachedName {
    const char* pointer = nullptr;
    uint64_t generation = 0;
    uint32_t iid = 0;
  };

  void DecodeKernel(const cupti::KernelRecord& record);
  void DecodeCopy(const cupti::MemcpyRecord& record);
  void DecodePeerCopy(const cupti::PeerMemcpyRecord& record);
  void DecodeMemset(const cupti::MemsetRecord& record);
  void DecodeGraph(const cupti::GraphTraceRecord& record);

  // What copies and memory sets share; nullptr if the record's times are no times.
  template <typename Batch, typename Record>
  Batch* AppendRow(std::vector<Batch>& batches, std::vector<uint32_t>& index, const Record& record, EventKind kind,
                   std::atomic<uint64_t>& count);
  template <typename Record>
  CopyBatch* AppendCopy(std::vector<uint32_t>& index, const Record& record, uint64_t copy_count);

  // False (and counted) if the times are no times.
  bool Valid(uint64_t start, uint64_t end, EventKind kind);
  template <typename Record>
  uint64_t Join(const Record& record, EventKind kind);
  uint32_t NameIid(const char* name);
  template <typename Batch>
  Batch& BatchOf(std::vector<Batch>& batches, std::vector<uint32_t>& index, const Stream& stream);

  const cupti::Api& api_;
  Context& context_;
  const uint32_t kernel_bytes_;
  const uint32_t memcpy_bytes_;

  // CUPTI's name pointers are trusted within one buffer only: a module may be replaced by another at the same address.
  std::array<CachedName, 256> names_{};
  uint64_t name_generation_ = 0;
  Kernel last_kernel_{};
  uint32_t last_kernel_iid_ = 0;
  uint64_t last_kernel_generation_ = 0;

  // By a stream's index in its table: its batch's index + 1; 0 = none yet.
  std::vector<uint32_t> kernel_index_;
  std::vector<uint32_t> copy_index_;
  std::vector<uint32_t> peer_index_;
  std::vector<uint32_t> memset_index_;

  uint64_t buffer_begin_ns_ = 0;  // host times of the buffer being decoded, for losses
  uint64_t buffer_end_ns_ = 0;
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_ACTIVITY_DECODER_H_
