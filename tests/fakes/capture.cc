#include "capture.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "layout.h"

namespace gpuperf::fakes {
namespace {

using namespace gpuperf::capture;

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool ReadFile(const std::string& path, std::vector<uint8_t>* data, std::string* error) {
  const bool packed = EndsWith(path, ".gz");
  FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    *error = "cannot open " + path;
    return false;
  }
  if (packed) {
    std::fclose(file);
    std::string quoted = "'";
    for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    file = popen(("gzip -dc " + quoted + "'").c_str(), "r");
    if (file == nullptr) {
      *error = "cannot run gzip";
      return false;
    }
  }
  uint8_t chunk[1 << 16];
  for (size_t count; (count = std::fread(chunk, 1, sizeof chunk, file)) != 0;) {
    data->insert(data->end(), chunk, chunk + count);
  }
  const bool good = packed ? pclose(file) == 0 : std::fclose(file) == 0;
  if (!good) *error = "cannot read " + path;
  return good;
}

void WriteBlock(FILE* file, uint32_t type, const void* head, size_t head_size, const void* tail = nullptr,
                size_t tail_size = 0) {
  static const char zeros[8] = {};
  const BlockHeader header{type, static_cast<uint32_t>(head_size + tail_size)};
  std::fwrite(&header, sizeof header, 1, file);
  std::fwrite(head, 1, head_size, file);
  if (tail_size != 0) std::fwrite(tail, 1, tail_size, file);
  std::fwrite(zeros, 1, (8 - header.size % 8) % 8, file);
}

}  // namespace

const char* Capture::Intern(const std::string& text) {
  static auto* mutex = new std::mutex;
  static auto* strings = new std::unordered_set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  return strings->insert(text).first->c_str();
}

bool Capture::Load(const std::string& path, std::string* error) {
  std::vector<uint8_t> data;
  if (!ReadFile(path, &data, error)) return false;
  if (data.size() < sizeof kMagic || std::memcmp(data.data(), kMagic, sizeof kMagic) != 0) {
    *error = path + " is not a capture";
    return false;
  }
  std::unordered_map<uint64_t, const char*> strings;
  std::unordered_map<uint32_t, uint32_t> sizes;
  const auto text_at = [&strings](uint64_t address) -> const char* {
    const auto found = strings.find(address);
    return found == strings.end() ? nullptr : found->second;
  };
  bool first_metadata = true;
  for (size_t at = sizeof kMagic; at < data.size();) {
    if (at + sizeof(BlockHeader) > data.size()) break;
    const auto header = Get<BlockHeader>(data.data(), at);
    const uint8_t* payload = data.data() + at + sizeof header;
    if (at + sizeof header + header.size > data.size()) {
      *error = path + " ends in the middle of a block";
      return false;
    }
    at += sizeof header + (header.size + 7u) / 8u * 8u;
    switch (header.type) {
      case kMetadata:
        if (first_metadata) metadata.assign(reinterpret_cast<const char*>(payload), header.size);
        first_metadata = false;
        break;
      case kRecordSizes:
        for (size_t i = 0; i + 8 <= header.size; i += 8)
          sizes[Get<uint32_t>(payload, i)] = Get<uint32_t>(payload, i + 4);
        break;
      case kThread:
        ++thread_count;
        break;
      case kString: {
        const auto block = Get<StringBlock>(payload, 0);
        strings[block.address] =
            Intern(std::string(reinterpret_cast<const char*>(payload) + sizeof block, block.length));
        break;
      }
      case kCallback: {
        CapturedEvent event{};
        event.type = CapturedEvent::kCallback;
        event.callback = Get<CallbackBlock>(payload, 0);
        event.time_ns = event.callback.time_ns;
        event.thread = event.callback.thread_index;
        event.function_name = text_at(event.callback.function_name);
        event.symbol_name = text_at(event.callback.symbol_name);
        event.params_offset = bytes.size();
        event.params_size = header.size - static_cast<uint32_t>(sizeof(CallbackBlock));
        bytes.insert(bytes.end(), payload + sizeof(CallbackBlock), payload + header.size);
        events.push_back(event);
        break;
      }
      case kBuffer: {
        const auto block = Get<BufferBlock>(payload, 0);
        CapturedEvent event{};
        event.type = CapturedEvent::kBuffer;
        event.time_ns = block.time_ns;
        event.thread = block.thread_index;
        event.first_record = records.size();
        for (size_t offset = sizeof block; offset + 8 <= header.size;) {
          const auto kind = Get<uint32_t>(payload, offset);
          const uint32_t size = sizes.count(kind) != 0 ? sizes[kind] : 0;
          if (size == 0 || offset + size > header.size) {
            *error = path + ": a buffer holds a record of unknown kind";
            return false;
          }
          const char* name = nullptr;
          if (kind == kKernelKind) {
            name = text_at(Get<uint64_t>(payload, offset + kKernelName));
            if (name == nullptr) {
              *error = path + ": a kernel's name is missing";
              return false;
            }
          }
          records.push_back({bytes.size(), size, kind, name});
          bytes.insert(bytes.end(), payload + offset, payload + offset + size);
          offset += size;
        }
        event.record_count = records.size() - event.first_record;
        events.push_back(event);
        break;
      }
      case kClockPair:
        clock_pairs.push_back(Get<ClockPairBlock>(payload, 0));
        break;
      default:
        break;
    }
  }
  if (events.empty()) {
    *error = path + " holds no events";
    return false;
  }
  return true;
}

bool Capture::Save(const std::string& path, std::string* error) const {
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    *error = "cannot create " + path;
    return false;
  }
  std::fwrite(kMagic, 1, sizeof kMagic, file);
  WriteBlock(file, kMetadata, metadata.data(), metadata.size());
  const uint32_t sizes[] = {kMemcpyKind, 96, kMemsetKind, 88, kKernelKind, 216, kPeerMemcpyKind, 96};
  WriteBlock(file, kRecordSizes, sizes, sizeof sizes);
  for (uint32_t i = 0; i < thread_count; ++i) {
    const ThreadBlock block{i, 1000 + i};
    WriteBlock(file, kThread, &block, sizeof block);
  }
  for (const ClockPairBlock& pair : clock_pairs) WriteBlock(file, kClockPair, &pair, sizeof pair);
  std::unordered_set<const char*> written;
  const auto write_string = [&](const char* text) -> uint64_t {
    if (text == nullptr) return 0;
    const auto address = reinterpret_cast<uint64_t>(text);
    if (written.insert(text).second) {
      const StringBlock block{address, static_cast<uint32_t>(std::strlen(text)), 0};
      WriteBlock(file, kString, &block, sizeof block, text, block.length);
    }
    return address;
  };
  size_t callbacks = 0, buffers = 0;
  for (const CapturedEvent& event : events) {
    if (event.type == CapturedEvent::kCallback) {
      CallbackBlock block = event.callback;
      block.function_name = write_string(event.function_name);
      block.symbol_name = write_string(event.symbol_name);
      WriteBlock(file, kCallback, &block, sizeof block, bytes.data() + event.params_offset, event.params_size);
      ++callbacks;
      continue;
    }
    std::vector<uint8_t> raw;
    for (size_t i = 0; i < event.record_count; ++i) {
      const CapturedRecord& record = records[event.first_record + i];
      const size_t begin = raw.size();
      raw.insert(raw.end(), bytes.begin() + static_cast<ptrdiff_t>(record.offset),
                 bytes.begin() + static_cast<ptrdiff_t>(record.offset + record.size));
      if (record.name != nullptr) Put<uint64_t>(raw.data(), begin + kKernelName, write_string(record.name));
    }
    const BufferBlock block{event.time_ns, event.thread, 0, 0, static_cast<uint32_t>(raw.size())};
    WriteBlock(file, kBuffer, &block, sizeof block, raw.data(), raw.size());
    ++buffers;
  }
  const std::string totals =
      "{\"callbacks\": " + std::to_string(callbacks) + ", \"buffers\": " + std::to_string(buffers) + "}";
  WriteBlock(file, kMetadata, totals.data(), totals.size());
  if (std::fclose(file) != 0) {
    *error = "cannot write " + path;
    return false;
  }
  return true;
}

}  // namespace gpuperf::fakes
