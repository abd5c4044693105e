// What a TraceReader calls for everything that it reads, in the order of the file and, within a chunk, of the schema:
// dictionaries first. Override what you need; the rest does nothing. Called on the thread that reads; arguments are
// valid during the call (names and dictionary entries: as long as the reader).
#ifndef GPUPERF_READER_VISITOR_H_
#define GPUPERF_READER_VISITOR_H_

#include "reader/frames.h"
#include "reader/rows.h"

namespace gpuperf::reader {

// Fields of a ChunkBody, a bit for each field number: a reading parses and hands out those that it is asked for.
using Fields = uint64_t;
constexpr Fields FieldBit(int number) { return Fields{1} << number; }
inline constexpr Fields kAllFields = ~Fields{0};  // also those that this version does not know
inline constexpr Fields kDictionaries =
    FieldBit(v1::ChunkBody::kStringsFieldNumber) | FieldBit(v1::ChunkBody::kThreadsFieldNumber) |
    FieldBit(v1::ChunkBody::kStreamsFieldNumber) | FieldBit(v1::ChunkBody::kKernelsFieldNumber) |
    FieldBit(v1::ChunkBody::kCallSitesFieldNumber);

class Visitor {
 public:
  virtual ~Visitor();

  // A file begins; the first part is 0.
  virtual void OnFile(const std::string& /*path*/, const v1::FileHeader& /*header*/) {}
  virtual void OnChunk(const Frame& /*frame*/) {}

  // Definitions as the file has them: a checkpoint defines the same again.
  virtual void OnString(const v1::InternedString& /*definition*/) {}
  virtual void OnThread(const ThreadEntry& /*entry*/) {}
  virtual void OnStream(const StreamEntry& /*entry*/) {}
  virtual void OnKernelDefinition(const KernelEntry& /*entry*/) {}
  virtual void OnCallSite(const CallSiteEntry& /*entry*/) {}

  virtual void OnKernel(const KernelRow& /*row*/) {}
  virtual void OnCopy(const CopyRow& /*row*/) {}
  virtual void OnMemset(const MemsetRow& /*row*/) {}
  virtual void OnCall(const CallRow& /*row*/) {}
  // An open call or annotation as a chunk has it; most are finished by a later row.
  virtual void OnOpenCall(const OpenCallRow& /*row*/) {}
  virtual void OnOpenAnnotation(const OpenAnnotationRow& /*row*/) {}
  virtual void OnStep(const StepRow& /*row*/) {}
  virtual void OnAnnotation(const AnnotationRow& /*row*/) {}
  virtual void OnMark(const MarkRow& /*row*/) {}
  virtual void OnCounter(const CounterRow& /*row*/) {}
  virtual void OnResourceName(const ResourceNameRow& /*row*/) {}
  virtual void OnResourceEvent(const ResourceEventRow& /*row*/) {}
  virtual void OnClockPair(const v1::ClockPair& /*row*/) {}
  virtual void OnRunInfo(const v1::RunInfo& /*info*/) {}
  virtual void OnLoss(const LossRow& /*row*/) {}
  virtual void OnOutage(const v1::Outage& /*row*/) {}
  virtual void OnLevelChange(const v1::LevelChange& /*row*/) {}
  virtual void OnOpaqueInterval(const OpaqueRow& /*row*/) {}
  virtual void OnCertificate(const v1::Certificate& /*row*/) {}
  virtual void OnSelfCost(const v1::SelfCost& /*cost*/) {}

  // After the last chunk of the last part: the calls and annotations that no later row finished.
  virtual void OnUnfinishedCall(const OpenCallRow& /*row*/) {}
  virtual void OnUnfinishedAnnotation(const OpenAnnotationRow& /*row*/) {}
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_VISITOR_H_
