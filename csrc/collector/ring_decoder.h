// Turns the records of one thread's ring (ring/event_record.h) into rows: pairs enters with exits, begins with ends,
// and puts names to pointers. One RingDecoder per ThreadState and session; when the state passes to another thread the
// decoder goes on under a new thread iid. Collector thread only.
#ifndef GPUPERF_COLLECTOR_RING_DECODER_H_
#define GPUPERF_COLLECTOR_RING_DECODER_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/context.h"
#include "cupti/call_table.h"
#include "ring/thread_state.h"

namespace gpuperf::collector {

class RingDecoder {
 public:
  RingDecoder(ring::ThreadState* state, Context& context) : state_(state), context_(context) {}

  ring::ThreadState* state() const { return state_; }
  uint32_t thread_iid() const { return thread_iid_; }

  // Reads what is in the ring; returns bytes. Recycles the state once its thread is gone and its ring is empty.
  size_t Drain();

  // Takes the counts of lost events.
  void TakeLosses();

  // Before a chunk is written: hands over finished calls and lists what is open.
  void PrepareCut();

  // Around a restart of the dictionaries: names that are still needed go into the new ones.
  void SaveNames();
  void RestoreNames();

 private:
  struct Symbol {
    uint64_t pointer = 0;
    uint32_t iid = 0;
  };
  struct Open {
    bool active = false;
    uint64_t enter_ns = 0;
    uint64_t correlation = 0;
    uint32_t correlation_32 = 0;
    cupti::CallKind kind = cupti::CallKind::kNotTraced;
    uint8_t copy_kind = 0;
    CallSite site{};
    uint64_t words[3] = {};
  };
  struct OpenAnnotation {
    uint64_t begin_ns;
    MarkerLabel label;
    ring::DomainIndex domain;
    uint32_t depth;  // in its domain
  };
  // What a record says of a marker: the part from `at` on.
  struct Said {
    ring::DomainIndex domain;
    ring::MarkerAttributes attributes;
    std::string_view name;
  };
  // Calls visit(uint32_t& iid) for every name that is still needed, always in the same order.
  template <typename Visitor>
  void VisitNames(Visitor&& visit);

  void StartThread(uint32_t generation);
  void Visit(const ring::RecordHeader& header, const std::byte* payload);
  void EnterCall(const ring::RecordHeader& header, const std::byte* payload);
  void ExitCall(const ring::RecordHeader& header, const std::byte* payload);
  void BeginAnnotation(const ring::RecordHeader& header, const std::byte* payload);
  void EndAnnotation(const ring::RecordHeader& header, const std::byte* payload);
  ring::AnnotationPlace DropUnended(ring::DomainIndex domain, const std::byte* payload);
  OpenAnnotation* InnermostOf(ring::DomainIndex domain);
  void StartRange(const ring::RecordHeader& header, const std::byte* payload);
  void EndRange(const ring::RecordHeader& header, const std::byte* payload);
  static Said Read(const ring::RecordHeader& header, const std::byte* at);
  MarkerLabel LabelOf(const Said& said);
  void DefineSymbol(const ring::RecordHeader& header, const std::byte* payload);
  uint32_t SymbolIid(uint64_t pointer) const;
  uint32_t NameIid(const ring::RecordHeader& header, const std::byte* name);

  ring::ThreadState* const state_;
  Context& context_;
  uint32_t generation_ = 0;
  uint32_t thread_iid_ = 0;
  CallBatch calls_;
  Open open_;
  std::vector<OpenAnnotation> annotations_;
  std::vector<std::string> saved_names_;
  std::string symbol_name_;  // what has come of a name that goes on
  // Mirrors ThreadState::symbols slot by slot, so a launch's pointer is found without searching.
  std::vector<Symbol> symbols_ = std::vector<Symbol>(ring::ThreadState::kSymbolSlots);
};

}  // namespace gpuperf::collector

#endif  // GPUPERF_COLLECTOR_RING_DECODER_H_
