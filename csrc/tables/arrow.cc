#include "tables/arrow.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace gpuperf::tables {
namespace {

const char* FormatOf(Type type) {
  switch (type) {
    case Type::kInt64:
      return "l";
    case Type::kUint64:
      return "L";
    case Type::kInt32:
    case Type::kText:  // of the codes
      return "i";
    case Type::kUint32:
      return "I";
    case Type::kDouble:
      return "g";
    case Type::kBool:
      break;
  }
  return "b";
}

// 32-bit offsets where they reach.
bool IsLarge(const Names& names) { return names.bytes.size() > std::numeric_limits<int32_t>::max(); }

// ---------------------------------------------------------------------------------------------------------- schemas

struct SchemaHolder {
  std::string name;
  std::deque<ArrowSchema> storage;
  std::vector<ArrowSchema*> children;
};

void ReleaseSchema(ArrowSchema* schema) {
  auto* holder = static_cast<SchemaHolder*>(schema->private_data);
  // A child that was moved out by the consumer has no `release` any more.
  for (ArrowSchema& owned : holder->storage) {
    if (owned.release != nullptr) owned.release(&owned);
  }
  delete holder;
  schema->release = nullptr;
}

void FillSchema(const char* format, std::string name, int64_t flags, ArrowSchema* out) {
  auto* holder = new SchemaHolder;
  holder->name = std::move(name);
  *out = {format, holder->name.c_str(), nullptr, flags, 0, nullptr, nullptr, &ReleaseSchema, holder};
}

void FillSchema(const Column& column, ArrowSchema* out) {
  FillSchema(FormatOf(column.type), column.name, column.nullable ? ARROW_FLAG_NULLABLE : 0, out);
  if (column.type != Type::kText) return;
  auto* holder = static_cast<SchemaHolder*>(out->private_data);
  FillSchema(IsLarge(column.names) ? "U" : "u", "", 0, &holder->storage.emplace_back());
  out->dictionary = &holder->storage.back();
}

// ----------------------------------------------------------------------------------------------------------- arrays

struct ArrayHolder {
  std::shared_ptr<const Table> table;
  std::vector<const void*> buffers;
  std::deque<ArrowArray> storage;
  std::vector<ArrowArray*> children;
  std::vector<uint8_t> bits;     // a packed boolean column
  std::vector<int32_t> offsets;  // of a dictionary
};

void ReleaseArray(ArrowArray* array) {
  auto* holder = static_cast<ArrayHolder*>(array->private_data);
  for (ArrowArray& owned : holder->storage) {
    if (owned.release != nullptr) owned.release(&owned);
  }
  delete holder;
  array->release = nullptr;
}

ArrayHolder* NewArray(const std::shared_ptr<const Table>& table, size_t length, ArrowArray* out) {
  auto* holder = new ArrayHolder;
  holder->table = table;
  *out = {static_cast<int64_t>(length), 0, 0, 0, 0, nullptr, nullptr, nullptr, &ReleaseArray, holder};
  return holder;
}

void SetBuffers(ArrayHolder* holder, std::vector<const void*> buffers, ArrowArray* out) {
  holder->buffers = std::move(buffers);
  out->n_buffers = static_cast<int64_t>(holder->buffers.size());
  out->buffers = holder->buffers.data();
}

void FillDictionary(const std::shared_ptr<const Table>& table, const Names& names, ArrowArray* out) {
  // Never empty: consumers look code 0 of a null up.
  ArrayHolder* holder = NewArray(table, std::max<size_t>(names.size(), 1), out);
  const void* offsets = names.offsets.data();
  if (!IsLarge(names)) {
    holder->offsets.assign(names.offsets.begin(), names.offsets.end());
    if (names.size() == 0) holder->offsets.push_back(0);
    offsets = holder->offsets.data();
  }
  SetBuffers(holder, {nullptr, offsets, names.bytes.data()}, out);
}

// Rows [begin, begin + length) of a column; `begin` is a multiple of 8.
void FillArray(const std::shared_ptr<const Table>& table, const Column& column, size_t begin, size_t length,
               ArrowArray* out) {
  ArrayHolder* holder = NewArray(table, length, out);
  const void* validity = column.validity.empty() ? nullptr : column.validity.data() + begin / 8;
  out->null_count = column.validity.empty() ? 0 : -1;  // -1: not counted
  const void* data = column.values<uint8_t>() + begin * WidthOf(column.type);
  if (column.type == Type::kBool) {
    holder->bits.assign((length + 7) / 8, 0);
    for (size_t row = 0; row < length; ++row) {
      if (column.values<uint8_t>()[begin + row] != 0) holder->bits[row / 8] |= static_cast<uint8_t>(1U << (row % 8));
    }
    data = holder->bits.data();
  }
  SetBuffers(holder, {validity, data}, out);
  if (column.type == Type::kText) {
    FillDictionary(table, column.names, &holder->storage.emplace_back());
    out->dictionary = &holder->storage.back();
  }
}

void FillBatch(const std::shared_ptr<const Table>& table, size_t begin, size_t length, ArrowArray* out) {
  ArrayHolder* holder = NewArray(table, length, out);
  SetBuffers(holder, {nullptr}, out);
  for (const Column& column : table->columns) {
    FillArray(table, column, begin, length, &holder->storage.emplace_back());
    holder->children.push_back(&holder->storage.back());
  }
  out->n_children = static_cast<int64_t>(holder->children.size());
  out->children = holder->children.data();
}

// ----------------------------------------------------------------------------------------------------------- stream

struct StreamHolder {
  std::shared_ptr<const Table> table;
  size_t next = 0;
  bool ended = false;
};

StreamHolder* HolderOf(ArrowArrayStream* stream) { return static_cast<StreamHolder*>(stream->private_data); }

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    ExportSchema(*HolderOf(stream)->table, out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  StreamHolder* holder = HolderOf(stream);
  out->release = nullptr;
  if (holder->ended) return 0;
  try {
    const size_t length = std::min(kBatchRows, holder->table->rows - holder->next);
    FillBatch(holder->table, holder->next, length, out);
    holder->next += length;
    holder->ended = holder->next == holder->table->rows;
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

const char* GetLastError(ArrowArrayStream*) { return nullptr; }

void ReleaseStream(ArrowArrayStream* stream) {
  delete HolderOf(stream);
  stream->release = nullptr;
}

}  // namespace

void ExportSchema(const Table& table, ArrowSchema* out) {
  FillSchema("+s", "", 0, out);
  auto* holder = static_cast<SchemaHolder*>(out->private_data);
  for (const Column& column : table.columns) {
    FillSchema(column, &holder->storage.emplace_back());
    holder->children.push_back(&holder->storage.back());
  }
  out->n_children = static_cast<int64_t>(holder->children.size());
  out->children = holder->children.data();
}

void ExportStream(std::shared_ptr<const Table> table, ArrowArrayStream* out) {
  *out = {&GetSchema, &GetNext, &GetLastError, &ReleaseStream, new StreamHolder{std::move(table)}};
}

}  // namespace gpuperf::tables
