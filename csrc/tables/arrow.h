// A Table as an Arrow C stream: https://arrow.apache.org/docs/format/CStreamInterface.html, without libarrow.
//
// The buffers that consumers see are the table's own (booleans excepted, which Arrow packs); every exported array holds
// a reference to the table, so it may outlive everything else. Release callbacks may come on any thread and need no
// lock of ours.
#ifndef GPUPERF_TABLES_ARROW_H_
#define GPUPERF_TABLES_ARROW_H_

#include <cstdint>
#include <memory>

#include "tables/table.h"

// The ABI of the Arrow C data and stream interfaces, word for word.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

}  // extern "C"

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

extern "C" {

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

#endif  // ARROW_C_STREAM_INTERFACE

namespace gpuperf::tables {

// Rows of one record batch: enough to be quick, few enough for a consumer to share the work among threads.
inline constexpr size_t kBatchRows = 1 << 18;

// Fill structures of the caller's, who must call their `release`. They throw nothing but std::bad_alloc.
void ExportSchema(const Table& table, ArrowSchema* out);
void ExportStream(std::shared_ptr<const Table> table, ArrowArrayStream* out);

}  // namespace gpuperf::tables

#endif  // GPUPERF_TABLES_ARROW_H_
