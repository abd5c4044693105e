// Walks the fields of one serialised Protobuf message without decoding it.
//
// For the framing of a trace only, where a part of a message has to be found or skipped before (or instead of) a parse
// by generated code. Any thread; owns nothing: the bytes must outlive the cursor. Never reads outside them, whatever
// they hold, never allocates, never throws.
#ifndef GPUPERF_READER_WIRE_H_
#define GPUPERF_READER_WIRE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace gpuperf::reader {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  size_t begin = 0;         // offset of the tag
  uint64_t value = 0;       // kVarint, kFixed64, kFixed32; kBytes: the length, which may reach beyond the data
  size_t content = 0;       // kBytes: offset of the first byte behind the length
  absl::string_view bytes;  // kBytes: empty unless all of it is in the data
};

class WireCursor {
 public:
  explicit WireCursor(absl::string_view data) : data_(data) {}

  bool done() const { return at_ >= data_.size(); }
  size_t position() const { return at_; }

  // Reads a tag, and of a kBytes field the length. False: the data end here, or no field begins here.
  bool ReadHead(WireField* field) {
    field->begin = at_;
    uint64_t tag = 0;
    if (!ReadVarint(&tag) || tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return false;
    field->number = static_cast<uint32_t>(tag >> 3);
    field->type = static_cast<WireType>(tag & 7);
    switch (field->type) {
      case WireType::kVarint:
        return ReadVarint(&field->value);
      case WireType::kFixed64:
        return ReadFixed(8, &field->value);
      case WireType::kFixed32:
        return ReadFixed(4, &field->value);
      case WireType::kBytes:
        if (!ReadVarint(&field->value)) return false;
        field->content = at_;
        field->bytes = {};
        return true;
    }
    return false;  // groups and unused wire types
  }

  // Reads a whole field. False: the data end inside it, or no field begins here.
  bool ReadField(WireField* field) {
    if (!ReadHead(field)) return false;
    if (field->type != WireType::kBytes) return true;
    if (field->value > data_.size() - at_) return false;
    field->bytes = data_.substr(at_, field->value);
    at_ += field->bytes.size();
    return true;
  }

 private:
  static constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;

  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at_ < data_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(data_[at_++]);
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool ReadFixed(size_t size, uint64_t* value) {
    if (size > data_.size() - at_) return false;
    *value = 0;
    for (size_t i = 0; i < size; ++i) {
      *value |= static_cast<uint64_t>(static_cast<unsigned char>(data_[at_ + i])) << (8 * i);
    }
    at_ += size;
    return true;
  }

  absl::string_view data_;
  size_t at_ = 0;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_WIRE_H_
