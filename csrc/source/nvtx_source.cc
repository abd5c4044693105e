#include "source/nvtx_source.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "ring/app_names.h"
#include "source/active.h"
#include "source/marker_source.h"

namespace gpuperf::source {
namespace {

using nvtx::EventAttributes;
using nvtx::Function;
using ring::DomainIndex;
using ring::kDefaultDomain;
using ring::MarkerAttributes;
using ring::PayloadKind;
using ring::ResourceKind;

// What another tool put into the tables before us, by module and index.
constexpr size_t kFunctions = 16;
std::array<std::array<std::atomic<Function>, kFunctions>, 6> g_next{};
std::atomic<uint32_t> g_clients{0};
std::atomic<uint64_t> g_range_id{0};

// Calls the other tool's function, if there is one; `none` otherwise.
template <typename Result, typename... Arguments>
Result Forward(nvtx::Module module, uint32_t index, Result none, Arguments... arguments) noexcept {
  Function next = g_next[static_cast<size_t>(module)][index].load(std::memory_order_relaxed);
  return next == nullptr ? none : reinterpret_cast<Result (*)(Arguments...)>(next)(arguments...);
}
template <typename... Arguments>
void Forward(nvtx::Module module, uint32_t index, Arguments... arguments) noexcept {
  Function next = g_next[static_cast<size_t>(module)][index].load(std::memory_order_relaxed);
  if (next != nullptr) reinterpret_cast<void (*)(Arguments...)>(next)(arguments...);
}

// From the handles that clients hold (ours or another tool's) to what they stand for. Lock-free, insert only.
template <size_t kSlots>
class HandleMap {
 public:
  // False: full.
  bool Insert(const void* handle, uint64_t value) noexcept {
    const auto key = reinterpret_cast<uintptr_t>(handle);
    for (size_t i = 0; i < kMostProbes; ++i) {
      Slot& slot = slots_[(Hash(key) + i) % kSlots];
      uintptr_t free = 0;
      if (!slot.key.compare_exchange_strong(free, key, std::memory_order_relaxed) && free != key) continue;
      slot.value.store(value, std::memory_order_release);
      return true;
    }
    return false;
  }
  // 0: unknown.
  uint64_t Find(const void* handle) const noexcept {
    const auto key = reinterpret_cast<uintptr_t>(handle);
    for (size_t i = 0; i < kMostProbes; ++i) {
      const Slot& slot = slots_[(Hash(key) + i) % kSlots];
      const uintptr_t there = slot.key.load(std::memory_order_relaxed);
      if (there == key) return slot.value.load(std::memory_order_acquire);
      if (there == 0) return 0;
    }
    return 0;
  }

 private:
  struct Slot {
    std::atomic<uintptr_t> key{0};
    std::atomic<uint64_t> value{0};
  };
  static constexpr size_t kMostProbes = 64;
  static size_t Hash(uintptr_t key) noexcept { return (uint64_t{key} * 0x9E3779B97F4A7C15ULL) >> 40; }

  std::array<Slot, kSlots> slots_{};
};

HandleMap<1024> g_domains;
HandleMap<65536> g_strings;
std::array<char, ring::kMostDomains> g_domain_handles{};  // their addresses are handles
char g_overflow_handle;                                   // for what has no place any more

// A name in the caller's characters, as UTF-8 and cut to what a record holds.
class Name {
 public:
  explicit Name(const char* text) noexcept {
    if (text != nullptr) view_ = {text, strnlen(text, ring::kMaxNameBytes)};
  }
  explicit Name(const wchar_t* text) noexcept {
    size_t size = 0;
    for (; text != nullptr && *text != 0 && size + 4 <= sizeof buffer_; ++text) size += Encode(*text, buffer_ + size);
    view_ = {buffer_, size};
  }
  Name(int32_t type, nvtx::Message message) noexcept {
    if (type == nvtx::kAscii) {
      *this = Name(message.ascii);
    } else if (type == nvtx::kUnicode) {
      *this = Name(message.unicode);
    } else if (type == nvtx::kRegistered) {
      const auto* text = reinterpret_cast<const std::string_view*>(g_strings.Find(message.registered));
      if (text != nullptr) view_ = *text;
    }
  }
  Name(const Name&) = delete;
  Name& operator=(const Name& other) noexcept {
    if (this == &other) return *this;
    view_ = other.view_;
    if (other.view_.data() == other.buffer_) {
      std::memcpy(buffer_, other.buffer_, view_.size());
      view_ = {buffer_, view_.size()};
    }
    return *this;
  }

  operator std::string_view() const noexcept { return view_; }  // NOLINT(google-explicit-constructor)

 private:
  static size_t Encode(wchar_t character, char* out) noexcept {
    auto code = static_cast<uint32_t>(int32_t{character});
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    const auto byte = [](uint32_t value) { return static_cast<char>(value); };
    if (code < 0x80) {
      out[0] = byte(code);
      return 1;
    }
    if (code < 0x800) {
      out[0] = byte(0xC0 | code >> 6);
      out[1] = byte(0x80 | (code & 0x3F));
      return 2;
    }
    if (code < 0x10000) {
      out[0] = byte(0xE0 | code >> 12);
      out[1] = byte(0x80 | (code >> 6 & 0x3F));
      out[2] = byte(0x80 | (code & 0x3F));
      return 3;
    }
    out[0] = byte(0xF0 | code >> 18);
    out[1] = byte(0x80 | (code >> 12 & 0x3F));
    out[2] = byte(0x80 | (code >> 6 & 0x3F));
    out[3] = byte(0x80 | (code & 0x3F));
    return 4;
  }

  std::string_view view_;
  char buffer_[ring::kMaxNameBytes];
};

void SetPayload(const EventAttributes& given, MarkerAttributes* out) noexcept {
  uint64_t bits = given.payload;
  switch (given.payload_type) {
    case nvtx::kUnsigned32:
      bits &= UINT32_MAX;
      [[fallthrough]];
    case nvtx::kUnsigned64:
      out->payload_kind = PayloadKind::kUnsigned;
      break;
    case nvtx::kSigned32:
      bits = static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
      [[fallthrough]];
    case nvtx::kSigned64:
      out->payload_kind = PayloadKind::kSigned;
      break;
    case nvtx::kFloat: {
      float narrow = 0;
      std::memcpy(&narrow, &bits, sizeof narrow);
      const double wide = narrow;
      std::memcpy(&bits, &wide, sizeof bits);
      out->payload_kind = PayloadKind::kDouble;
      break;
    }
    case nvtx::kDouble:
      out->payload_kind = PayloadKind::kDouble;
      break;
    case nvtx::kExtended: {
      // The blob itself is not read: its size may be a lie.
      const auto* first = reinterpret_cast<const nvtx::PayloadData*>(bits);
      if (first == nullptr || given.payload_count < 1) return;
      out->payload_kind = PayloadKind::kExtended;
      out->payload_bytes = static_cast<uint32_t>(std::min<size_t>(first->size, UINT32_MAX));
      bits = first->schema;
      break;
    }
    default:
      return;
  }
  out->payload = bits;
}

// What an event's attributes say, as far as the caller's struct reaches.
class EventLabel {
 public:
  EventLabel(const EventAttributes* given, DomainIndex domain) noexcept : name_(Message(given)) {
    label_ = Label(name_, domain);
    if (given == nullptr || given->size < offsetof(EventAttributes, message_type)) return;
    attributes_.category = given->category;
    attributes_.has_color = given->color_type == 1;
    attributes_.color = attributes_.has_color ? given->color : 0;
    SetPayload(*given, &attributes_);
    if (attributes_.category != 0 || attributes_.has_color || attributes_.payload_kind != PayloadKind::kNone) {
      label_.attributes = &attributes_;
    }
  }
  EventLabel(const EventLabel&) = delete;
  EventLabel& operator=(const EventLabel&) = delete;

  operator const Label&() const noexcept { return label_; }  // NOLINT(google-explicit-constructor)

 private:
  static std::pair<int32_t, nvtx::Message> MessageOf(const EventAttributes* given) noexcept {
    if (given == nullptr || given->size < sizeof *given) return {nvtx::kNoMessage, {}};
    return {given->message_type, given->message};
  }
  static Name Message(const EventAttributes* given) noexcept {
    const auto [type, message] = MessageOf(given);
    return {type, message};
  }

  const Name name_;
  MarkerAttributes attributes_{};
  Label label_;
};

DomainIndex DomainOf(const void* handle) noexcept {
  if (handle == nullptr) return kDefaultDomain;
  const uint64_t index = g_domains.Find(handle);
  return index == 0 ? ring::kNoDomain : static_cast<DomainIndex>(index);
}

void NameResource(ResourceKind kind, DomainIndex domain, uint64_t id, std::string_view name) noexcept {
  if (domain >= ring::kMostDomains || !ring::AddResourceName(kind, domain, id, name)) CountLostName();
}

const void* DomainHandle(const void* theirs, std::string_view name) noexcept {
  const DomainIndex index = ring::InternDomain(name);
  if (index >= ring::kMostDomains) return theirs != nullptr ? theirs : &g_overflow_handle;
  const void* handle = theirs != nullptr ? theirs : &g_domain_handles[index];
  g_domains.Insert(handle, index);
  return handle;
}

const void* StringHandle(const void* theirs, std::string_view text) noexcept {
  char* copy = static_cast<char*>(::operator new(sizeof(std::string_view) + text.size(), std::nothrow));
  if (copy == nullptr) return theirs != nullptr ? theirs : &g_overflow_handle;
  char* characters = copy + sizeof(std::string_view);
  if (!text.empty()) std::memcpy(characters, text.data(), text.size());
  const auto* kept = new (copy) std::string_view(characters, text.size());
  const void* handle = theirs != nullptr ? theirs : kept;
  if (g_strings.Insert(handle, reinterpret_cast<uintptr_t>(kept))) return handle;
  ::operator delete(copy);
  CountLostName();
  return theirs != nullptr ? theirs : &g_overflow_handle;
}

uint64_t StartRange(uint64_t theirs, const Label& label) noexcept {
  const uint64_t id = theirs != 0 ? theirs : g_range_id.fetch_add(1, std::memory_order_relaxed) + 1;
  EmitRangeStart(id, label);
  return id;
}

// Another tool knows the level without us having a session.
int Level(int theirs, int ours) noexcept { return ours >= 0 ? ours : theirs; }

constexpr int kNoTracking = -2;  // NVTX_NO_PUSH_POP_TRACKING

// ---- the functions that clients call

void OnMarkEx(const EventAttributes* event) noexcept {
  Forward(nvtx::kCore, nvtx::kMarkEx, event);
  if (Active()) EmitMark(EventLabel(event, kDefaultDomain));
}
template <typename Character, nvtx::Core kIndex>
void OnMark(const Character* message) noexcept {
  Forward(nvtx::kCore, kIndex, message);
  if (Active()) EmitMark(Label(Name(message), kDefaultDomain));
}
uint64_t OnRangeStartEx(const EventAttributes* event) noexcept {
  const uint64_t theirs = Forward(nvtx::kCore, nvtx::kRangeStartEx, uint64_t{0}, event);
  return StartRange(theirs, EventLabel(event, kDefaultDomain));
}
template <typename Character, nvtx::Core kIndex>
uint64_t OnRangeStart(const Character* message) noexcept {
  const uint64_t theirs = Forward(nvtx::kCore, kIndex, uint64_t{0}, message);
  const Name name(message);
  return StartRange(theirs, Label(name, kDefaultDomain));
}
void OnRangeEnd(uint64_t id) noexcept {
  Forward(nvtx::kCore, nvtx::kRangeEnd, id);
  EmitRangeEnd(id);
}
int OnRangePushEx(const EventAttributes* event) noexcept {
  const int theirs = Forward(nvtx::kCore, nvtx::kRangePushEx, kNoTracking, event);
  return Active() ? Level(theirs, EmitAnnotationBegin(EventLabel(event, kDefaultDomain))) : theirs;
}
template <typename Character, nvtx::Core kIndex>
int OnRangePush(const Character* message) noexcept {
  const int theirs = Forward(nvtx::kCore, kIndex, kNoTracking, message);
  return Active() ? Level(theirs, EmitAnnotationBegin(Label(Name(message), kDefaultDomain))) : theirs;
}
int OnRangePop() noexcept {
  const int theirs = Forward(nvtx::kCore, nvtx::kRangePop, kNoTracking);
  return Level(theirs, EmitAnnotationEnd(kDefaultDomain));
}
template <typename Character, nvtx::Core kIndex>
void OnNameCategory(uint32_t category, const Character* name) noexcept {
  Forward(nvtx::kCore, kIndex, category, name);
  NameResource(ResourceKind::kCategory, kDefaultDomain, category, Name(name));
}
template <typename Character, nvtx::Core kIndex>
void OnNameOsThread(uint32_t tid, const Character* name) noexcept {
  Forward(nvtx::kCore, kIndex, tid, name);
  NameResource(ResourceKind::kThread, kDefaultDomain, tid, Name(name));
}

void OnDomainMarkEx(const void* domain, const EventAttributes* event) noexcept {
  Forward(nvtx::kCore2, nvtx::kDomainMarkEx, domain, event);
  if (Active()) EmitMark(EventLabel(event, DomainOf(domain)));
}
uint64_t OnDomainRangeStartEx(const void* domain, const EventAttributes* event) noexcept {
  const uint64_t theirs = Forward(nvtx::kCore2, nvtx::kDomainRangeStartEx, uint64_t{0}, domain, event);
  return StartRange(theirs, EventLabel(event, DomainOf(domain)));
}
void OnDomainRangeEnd(const void* domain, uint64_t id) noexcept {
  Forward(nvtx::kCore2, nvtx::kDomainRangeEnd, domain, id);
  EmitRangeEnd(id);
}
int OnDomainRangePushEx(const void* domain, const EventAttributes* event) noexcept {
  const int theirs = Forward(nvtx::kCore2, nvtx::kDomainRangePushEx, kNoTracking, domain, event);
  return Active() ? Level(theirs, EmitAnnotationBegin(EventLabel(event, DomainOf(domain)))) : theirs;
}
int OnDomainRangePop(const void* domain) noexcept {
  const int theirs = Forward(nvtx::kCore2, nvtx::kDomainRangePop, kNoTracking, domain);
  return Active() ? Level(theirs, EmitAnnotationEnd(DomainOf(domain))) : theirs;
}
const void* OnDomainResourceCreate(const void* domain, nvtx::ResourceAttributes* resource) noexcept {
  const void* none = nullptr;
  const void* theirs = Forward(nvtx::kCore2, nvtx::kDomainResourceCreate, none, domain, resource);
  if (resource != nullptr && resource->size >= sizeof *resource) {
    const bool own_thread = resource->identifier_type == nvtx::kPosixThread &&
                            pthread_equal(static_cast<pthread_t>(resource->identifier), pthread_self()) != 0;
    if (own_thread || resource->identifier_type == nvtx::kNativeThread) {
      const uint64_t tid = own_thread ? static_cast<uint64_t>(syscall(SYS_gettid)) : resource->identifier;
      NameResource(ResourceKind::kThread, DomainOf(domain), tid, Name(resource->message_type, resource->message));
    }
  }
  return theirs != nullptr ? theirs : &g_overflow_handle;
}
template <typename Character, nvtx::Core2 kIndex>
void OnDomainNameCategory(const void* domain, uint32_t category, const Character* name) noexcept {
  Forward(nvtx::kCore2, kIndex, domain, category, name);
  NameResource(ResourceKind::kCategory, DomainOf(domain), category, Name(name));
}
template <typename Character, nvtx::Core2 kIndex>
const void* OnDomainRegisterString(const void* domain, const Character* text) noexcept {
  const void* none = nullptr;
  return StringHandle(Forward(nvtx::kCore2, kIndex, none, domain, text), Name(text));
}
template <typename Character, nvtx::Core2 kIndex>
const void* OnDomainCreate(const Character* name) noexcept {
  const void* none = nullptr;
  return DomainHandle(Forward(nvtx::kCore2, kIndex, none, name), Name(name));
}

// CUDA objects: ordinals and handles alike are one word in a register.
template <typename Character, ResourceKind kKind, nvtx::Module kModule, uint32_t kIndex>
void OnNameCuda(uint64_t object, const Character* name) noexcept {
  Forward(kModule, kIndex, object, name);
  NameResource(kKind, kDefaultDomain, kKind == ResourceKind::kDevice ? object & UINT32_MAX : object, Name(name));
}

struct Handler {
  nvtx::Module module;
  uint32_t index;
  Function function;
};

template <typename Type>
Handler Of(nvtx::Module module, uint32_t index, Type* function) noexcept {
  return {module, index, reinterpret_cast<Function>(function)};
}
template <nvtx::Module kModule, uint32_t kIndex, ResourceKind kKind>
std::pair<Handler, Handler> NamesOf() noexcept {
  return {Of(kModule, kIndex, OnNameCuda<char, kKind, kModule, kIndex>),
          Of(kModule, kIndex + 1, OnNameCuda<wchar_t, kKind, kModule, kIndex + 1>)};
}

const auto& Handlers() noexcept {
  using namespace nvtx;  // NOLINT(google-build-using-namespace): its enumerators only
  static const auto kCuDevice = NamesOf<kCuda, kNameCuDeviceA, ResourceKind::kDevice>();
  static const auto kCuContext = NamesOf<kCuda, kNameCuContextA, ResourceKind::kContext>();
  static const auto kCuStream = NamesOf<kCuda, kNameCuStreamA, ResourceKind::kStream>();
  static const auto kCuEvent = NamesOf<kCuda, kNameCuEventA, ResourceKind::kEvent>();
  static const auto kCudaDevice = NamesOf<kCudaRuntime, kNameCudaDeviceA, ResourceKind::kDevice>();
  static const auto kCudaStream = NamesOf<kCudaRuntime, kNameCudaStreamA, ResourceKind::kStream>();
  static const auto kCudaEvent = NamesOf<kCudaRuntime, kNameCudaEventA, ResourceKind::kEvent>();
  static const std::array kHandlers = {
      Of(kCore, kMarkEx, OnMarkEx),
      Of(kCore, kMarkA, OnMark<char, kMarkA>),
      Of(kCore, kMarkW, OnMark<wchar_t, kMarkW>),
      Of(kCore, kRangeStartEx, OnRangeStartEx),
      Of(kCore, kRangeStartA, OnRangeStart<char, kRangeStartA>),
      Of(kCore, kRangeStartW, OnRangeStart<wchar_t, kRangeStartW>),
      Of(kCore, kRangeEnd, OnRangeEnd),
      Of(kCore, kRangePushEx, OnRangePushEx),
      Of(kCore, kRangePushA, OnRangePush<char, kRangePushA>),
      Of(kCore, kRangePushW, OnRangePush<wchar_t, kRangePushW>),
      Of(kCore, kRangePop, OnRangePop),
      Of(kCore, kNameCategoryA, OnNameCategory<char, kNameCategoryA>),
      Of(kCore, kNameCategoryW, OnNameCategory<wchar_t, kNameCategoryW>),
      Of(kCore, kNameOsThreadA, OnNameOsThread<char, kNameOsThreadA>),
      Of(kCore, kNameOsThreadW, OnNameOsThread<wchar_t, kNameOsThreadW>),
      Of(kCore2, kDomainMarkEx, OnDomainMarkEx),
      Of(kCore2, kDomainRangeStartEx, OnDomainRangeStartEx),
      Of(kCore2, kDomainRangeEnd, OnDomainRangeEnd),
      Of(kCore2, kDomainRangePushEx, OnDomainRangePushEx),
      Of(kCore2, kDomainRangePop, OnDomainRangePop),
      Of(kCore2, kDomainResourceCreate, OnDomainResourceCreate),
      Of(kCore2, kDomainNameCategoryA, OnDomainNameCategory<char, kDomainNameCategoryA>),
      Of(kCore2, kDomainNameCategoryW, OnDomainNameCategory<wchar_t, kDomainNameCategoryW>),
      Of(kCore2, kDomainRegisterStringA, OnDomainRegisterString<char, kDomainRegisterStringA>),
      Of(kCore2, kDomainRegisterStringW, OnDomainRegisterString<wchar_t, kDomainRegisterStringW>),
      Of(kCore2, kDomainCreateA, OnDomainCreate<char, kDomainCreateA>),
      Of(kCore2, kDomainCreateW, OnDomainCreate<wchar_t, kDomainCreateW>),
      kCuDevice.first,
      kCuDevice.second,
      kCuContext.first,
      kCuContext.second,
      kCuStream.first,
      kCuStream.second,
      kCuEvent.first,
      kCuEvent.second,
      kCudaDevice.first,
      kCudaDevice.second,
      kCudaStream.first,
      kCudaStream.second,
      kCudaEvent.first,
      kCudaEvent.second,
  };
  return kHandlers;
}

// Where the client keeps the function; nullptr: a client that does not know it.
Function* Place(const nvtx::CallbacksTable& callbacks, const Handler& handler) noexcept {
  nvtx::FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(handler.module, &table, &size) == 0 || table == nullptr) return nullptr;
  return handler.index < size ? table[handler.index] : nullptr;
}

}  // namespace

bool AttachNvtx(nvtx::GetExportTable get_export_table, bool (*chained)(nvtx::GetExportTable)) noexcept {
  const auto* callbacks = static_cast<const nvtx::CallbacksTable*>(get_export_table(nvtx::kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return false;
  const auto& handlers = Handlers();
  std::array<Function, std::tuple_size_v<std::decay_t<decltype(handlers)>>> before{};
  for (size_t i = 0; i < handlers.size(); ++i) {
    const Function* place = Place(*callbacks, handlers[i]);
    if (place != nullptr) before[i] = *place;
  }
  const bool has_next = chained != nullptr && chained(get_export_table);
  for (size_t i = 0; i < handlers.size(); ++i) {
    Function* place = Place(*callbacks, handlers[i]);
    if (place == nullptr) continue;
    // What stood there at first is the client's own initialisation, which must not be called again.
    if (has_next && *place != before[i]) {
      g_next[static_cast<size_t>(handlers[i].module)][handlers[i].index].store(*place, std::memory_order_relaxed);
    }
    *place = handlers[i].function;
  }
  g_clients.fetch_add(1, std::memory_order_relaxed);
  return true;
}

uint32_t NvtxClients() noexcept { return g_clients.load(std::memory_order_relaxed); }

}  // namespace gpuperf::source
