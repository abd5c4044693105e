// The one thread that empties rings and activity buffers, decodes them, and cuts chunks.
//
//   every few ms:  filled buffers are taken, then rings and losses are drained, then the buffers are decoded. In this
//   order a
//                  device record always finds the call that made it, because enters are published at enter.
//   at 256 KiB or 0.9 s, whichever is first: a chunk goes to the sink, if there is anything to tell.
//
// Calls no CUPTI function but GetNextRecord (clock pairs come from the flush thread, through its ring); never takes the
// GIL; blocks all signals. Owns everything it decodes into; the sink is called on this thread only. An exception, which
// is a want of memory, ends the tracing and nothing else: the file stays without its index, as after a kill.
#ifndef GPUPERF_COLLECTOR_COLLECTOR_H_
#define GPUPERF_COLLECTOR_COLLECTOR_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collector/activity_decoder.h"
#include "collector/context.h"
#include "collector/ring_decoder.h"
#include "cupti/cupti_api.h"

namespace gpuperf::collector {

// Where chunks go.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // Writes what is in `batches` (rows; new dictionary entries, or all of them when it starts a checkpoint, in which
  // case it says so in the tables' written marks). False: nothing was written and nothing is to be forgotten yet.
  virtual bool Write(Batches& batches) = 0;
  // True from the first Write that failed for good on: its rows and all that come later are lost.
  virtual bool failed() const = 0;
  // Ends the file. The last call. `rest` holds the losses of which no Write has taken note.
  virtual void Close(const Batches& rest) = 0;
};

struct CollectorOptions {
  uint64_t (*flush_cpu_ns)() = nullptr;       // CPU time of the flush thread so far
  ring::LossCell* refused_buffers = nullptr;  // counts of the activity source
  // Set: CUDA graphs are recorded as a whole until the base::Stamp() that comes to stand there.
  const std::atomic<uint64_t>* graph_level_end = nullptr;
};

class Collector {
 public:
  Collector(const cupti::Api& api, ChunkSink& sink, const CollectorOptions& options);
  ~Collector();

  // Any thread, each once.
  void Start();
  // Drains everything, writes the last chunk with `outages` as its last rows, closes the sink and ends the thread.
  void Stop(std::vector<Outage> outages);

  // Any thread. Serialised RunInfo, for the next chunk.
  void SetRunInfo(std::string run_info);
  // Any thread: waits until all that was published before is written, at most timeout_ms. False: timed out, or it
  // cannot be written.
  bool Flush(uint32_t timeout_ms);

  const Counts& counts() const { return context_.counts; }
  // Snapshot of the latest chunk's.
  SelfCost self_cost() const;

  // For benchmarks and tests: one round of the thread's work in the calling thread, instead of Start().
  size_t Poll();

 private:
  void Run();
  void Collect();
  void GiveUp(const char* why) noexcept;
  void DrainRings();
  void ListNew();
  void FollowGraphLevel();
  void TakeLosses();
  void Cut();
  void CheckJoins(bool last);
  void RestartDictionaries();
  void MeasureSelf();
  RingDecoder& DecoderOf(ring::ThreadState* state);
  size_t PendingBytes() const;
  // There are more rows than are kept for a process that may never use CUDA.
  bool WaitedForCudaInVain() const;

  const cupti::Api& api_;
  ChunkSink& sink_;
  const CollectorOptions options_;
  Context context_;
  ActivityDecoder activity_;
  std::vector<std::unique_ptr<RingDecoder>> decoders_;
  std::unordered_map<const ring::ThreadState*, RingDecoder*> decoder_of_;
  std::vector<ring::ActivityBuffer> buffers_;
  uint64_t start_ns_ = 0;
  uint64_t start_ticks_ = 0;
  uint64_t last_cut_ns_ = 0;
  size_t resource_names_seen_ = 0;
  bool graph_level_ = false;  // the last level change said so
  uint64_t callbacks_at_start_ = 0;
  uint64_t sampled_callbacks_at_start_ = 0;
  uint64_t sampled_ticks_at_start_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  bool stopping_ = false;
  bool gave_up_ = false;
  uint64_t flush_wanted_ = 0;
  uint64_t flush_done_ = 0;
  std::string run_info_;
  std::vector<Outage> outages_;
  SelfCost self_cost_;
  std::thread thread_;
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_COLLECTOR_H_
