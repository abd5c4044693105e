// Batches → the bytes of one Chunk of the trace (proto/gpuperf/trace/v1/trace.proto), in Protobuf's wire format through
// protozero. Pure functions; collector thread.
#ifndef GPUPERF_TRACE_CHUNK_BUILDER_H_
#define GPUPERF_TRACE_CHUNK_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "collector/batches.h"

namespace gpuperf::trace {

// Begins every chunk header; a reader that lost its place looks for it.
inline constexpr std::string_view kSyncMarker{"\xF7GPCHUNK\x9E\x37\x79\xB9\x7F\x4A\x7C\x15", 16};

// Serialised ChunkBody: rows, and the dictionary entries that are new (all of them for a checkpoint).
// Interns the API names that new call sites need; marks nothing as written (that is for after the write).
std::string BuildBody(collector::Batches& batches, bool checkpoint, uint64_t written_bytes);

// The chunk with its tag and length, as it is appended to the file.
std::string FrameChunk(std::string_view body, const collector::Batches& batches, uint64_t sequence, bool checkpoint);

}  // namespace gpuperf::trace

#endif  // GPUPERF_TRACE_CHUNK_BUILDER_H_
