// NVTX's own client code, as libraries carry it, attached to ours: what is said comes out of the trace.
#include "source/nvtx_source.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include "recorded_run.h"

namespace nvtx = gpuperf::nvtx;

// ---- nvtx_abi.h against the headers

static_assert(nvtx::kCallbacksTable == NVTX_ETID_CALLBACKS);
static_assert(nvtx::kCore == int{NVTX_CB_MODULE_CORE} && nvtx::kCore2 == int{NVTX_CB_MODULE_CORE2});
static_assert(nvtx::kCuda == int{NVTX_CB_MODULE_CUDA} && nvtx::kCudaRuntime == int{NVTX_CB_MODULE_CUDART});
static_assert(int{nvtx::kMarkEx} == NVTX_CBID_CORE_MarkEx && int{nvtx::kRangePop} == NVTX_CBID_CORE_RangePop);
static_assert(int{nvtx::kNameOsThreadW} == NVTX_CBID_CORE_NameOsThreadW);
static_assert(int{nvtx::kDomainMarkEx} == NVTX_CBID_CORE2_DomainMarkEx);
static_assert(int{nvtx::kDomainRegisterStringA} == NVTX_CBID_CORE2_DomainRegisterStringA);
static_assert(int{nvtx::kInitialize} == NVTX_CBID_CORE2_Initialize);
static_assert(int{nvtx::kNameCuEventW} == NVTX_CBID_CUDA_NameCuEventW);
static_assert(int{nvtx::kNameCudaEventW} == NVTX_CBID_CUDART_NameCudaEventW);
static_assert(sizeof(nvtx::EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(nvtx::EventAttributes, category) == offsetof(nvtxEventAttributes_t, category));
static_assert(offsetof(nvtx::EventAttributes, color) == offsetof(nvtxEventAttributes_t, color));
static_assert(offsetof(nvtx::EventAttributes, payload_type) == offsetof(nvtxEventAttributes_t, payloadType));
static_assert(offsetof(nvtx::EventAttributes, payload_count) == offsetof(nvtxEventAttributes_t, reserved0));
static_assert(offsetof(nvtx::EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(nvtx::EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(sizeof(nvtx::ResourceAttributes) == sizeof(nvtxResourceAttributes_t));
static_assert(offsetof(nvtx::ResourceAttributes, identifier) == offsetof(nvtxResourceAttributes_t, identifier));
static_assert(offsetof(nvtx::ResourceAttributes, message) == offsetof(nvtxResourceAttributes_t, message));
static_assert(nvtx::kNativeThread == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);
static_assert(nvtx::kPosixThread == NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX);
static_assert(nvtx::kRegistered == int{NVTX_MESSAGE_TYPE_REGISTERED});
static_assert(nvtx::kFloat == uint32_t{NVTX_PAYLOAD_TYPE_FLOAT});
static_assert(nvtx::kExtended == static_cast<uint32_t>(NVTX_PAYLOAD_TYPE_EXT));
static_assert(sizeof(nvtx::PayloadData) == sizeof(nvtxPayloadData_t));
static_assert(offsetof(nvtx::PayloadData, size) == offsetof(nvtxPayloadData_t, size));

extern "C" int AttachThisProgram(NvtxGetExportTableFunc_t get_export_table) {
  return gpuperf::source::AttachNvtx(reinterpret_cast<nvtx::GetExportTable>(get_export_table), nullptr) ? 1 : 0;
}
// NVTX calls it at the program's first NVTX call, as nothing else is injected.
const bool g_injected = (InitializeInjectionNvtx2_fnptr = AttachThisProgram, true);

namespace {

// Everything that a file says of markers, with its ids resolved.
struct Said {
  explicit Said(const v1::TraceFile& file) {
    for (const v1::Chunk& chunk : file.chunks()) {
      const v1::ChunkBody& body = chunk.body();
      for (const v1::InternedString& entry : body.strings()) strings[entry.iid()] = entry.value();
      for (const v1::Annotation& row : body.annotations()) annotations.push_back(row);
      for (const v1::Mark& row : body.marks()) marks.push_back(row);
      for (const v1::OpenAnnotation& row : body.open_annotations()) open.push_back(row);
      for (const v1::ResourceName& row : body.resource_names()) resources.push_back(row);
    }
  }
  template <typename Row>
  std::string Name(const Row& row) const {
    return strings.at(row.name_iid());
  }
  template <typename Row>
  std::string Domain(const Row& row) const {
    return row.nvtx().domain_iid() == 0 ? "" : strings.at(row.nvtx().domain_iid());
  }
  const v1::Annotation& Of(const std::string& name) const {
    const auto found = std::find_if(annotations.begin(), annotations.end(),
                                    [&](const v1::Annotation& row) { return Name(row) == name; });
    REQUIRE(found != annotations.end());
    return *found;
  }

  std::map<uint32_t, std::string> strings;
  std::vector<v1::Annotation> annotations;
  std::vector<v1::Mark> marks;
  std::vector<v1::OpenAnnotation> open;
  std::vector<v1::ResourceName> resources;
};

nvtxEventAttributes_t Event(const char* message) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

}  // namespace

TEST_CASE("ranges nest by domain, marks and names arrive, levels are told") {
  Run run;
  run.Launch(1);
  CHECK(gpuperf::source::NvtxClients() <= 1);
  CHECK(nvtxRangePushA("outer") == 0);
  CHECK(gpuperf::source::NvtxClients() == 1);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxDomainHandle_t same = nvtxDomainCreateA("library");  // another library's
  nvtxEventAttributes_t event = Event("inner");
  event.category = 7;
  event.colorType = NVTX_COLOR_ARGB;
  event.color = 0xFF112233;
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.iValue = -5;
  CHECK(nvtxDomainRangePushEx(domain, &event) == 0);  // levels are the domain's
  CHECK(nvtxRangePushW(L"gr\u00FC\u00DFe \U0001F600") == 1);
  CHECK(nvtxDomainRangePop(same) == 0);  // crosswise: not the innermost of the thread, but of the domain
  CHECK(nvtxRangePop() == 1);
  CHECK(nvtxRangePop() == 0);
  CHECK(nvtxRangePop() < 0);  // none was open: neither a row nor a loss
  event = Event("fraction");
  event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  event.payload.fValue = 0.5F;
  nvtxDomainMarkEx(domain, &event);
  nvtxMarkA("plain");
  nvtxNameCategoryA(3, "of the default domain");
  nvtxDomainNameCategoryA(domain, 7, "seven");
  nvtxNameOsThreadA(4711, "worker");
  nvtxNameCudaStreamA(reinterpret_cast<cudaStream_t>(0xABC0), "copies");
  run.Finish();

  const Said said(run.Parse());
  REQUIRE(said.annotations.size() == 3);
  const v1::Annotation& inner = said.Of("inner");
  CHECK(said.Domain(inner) == "library");
  CHECK(inner.source() == v1::MARKER_SOURCE_NVTX);
  CHECK(inner.nvtx().category() == 7);
  CHECK(inner.nvtx().color() == 0xFF112233);
  CHECK(inner.nvtx().payload_kind() == v1::PAYLOAD_KIND_SIGNED);
  CHECK(static_cast<int64_t>(inner.nvtx().payload()) == -5);
  const v1::Annotation& outer = said.Of("outer");
  CHECK_FALSE(outer.has_nvtx());
  CHECK(outer.source() == v1::MARKER_SOURCE_NVTX);
  CHECK(outer.begin_host_ns() <= inner.begin_host_ns());
  CHECK(said.Of("gr\u00FC\u00DFe \U0001F600").begin_host_ns() >= inner.begin_host_ns());
  REQUIRE(said.marks.size() == 2);
  CHECK(said.Name(said.marks[0]) == "fraction");
  double value = 0;
  const uint64_t bits = said.marks[0].nvtx().payload();
  std::memcpy(&value, &bits, sizeof value);
  CHECK(said.marks[0].nvtx().payload_kind() == v1::PAYLOAD_KIND_DOUBLE);
  CHECK(value == 0.5);
  CHECK_FALSE(said.marks[1].has_nvtx());
  std::map<v1::ResourceKind, std::string> named;
  for (const v1::ResourceName& row : said.resources) {
    named[row.kind()] += std::to_string(row.id()) + "=" + said.Name(row) + ";";
  }
  CHECK(named[v1::RESOURCE_KIND_CATEGORY] == "3=of the default domain;7=seven;");
  CHECK(named[v1::RESOURCE_KIND_THREAD] == "4711=worker;");
  CHECK(named[v1::RESOURCE_KIND_STREAM] == std::to_string(0xABC0) + "=copies;");
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_RING_FULL) == 0);
}

TEST_CASE("a range of the process may end on another thread, whichever ring is drained first") {
  nvtxRangeId_t ids[50];
  Run run;
  run.Launch(1);
  std::thread([&] {  // the newer state is drained first
    for (nvtxRangeId_t& id : ids) id = nvtxRangeStartA("moved");
  })
      .join();
  for (const nvtxRangeId_t id : ids) nvtxRangeEnd(id);
  nvtxRangeStartA("never ended");
  nvtxRangeEnd(0xDEAD);  // of no range
  const nvtxRangeId_t here = nvtxRangeStartA("here");
  std::thread([&] { nvtxRangeEnd(here); }).join();
  CHECK(ids[0] != ids[1]);
  run.Finish();

  const Said said(run.Parse());
  CHECK(said.annotations.size() == 51);
  const v1::Annotation& moved = said.Of("moved");
  CHECK(moved.source() == v1::MARKER_SOURCE_NVTX_START_END);
  CHECK(moved.end_thread_iid() != 0);
  CHECK(moved.end_thread_iid() != moved.thread_iid());
  REQUIRE_FALSE(said.open.empty());
  CHECK(said.Name(said.open.back()) == "never ended");
  CHECK(Lost(run.Parse(), v1::LOSS_REASON_RING_FULL) == 0);
}

TEST_CASE("registered strings and domains of before the session are known in it") {
  nvtxDomainHandle_t domain = nvtxDomainCreateW(L"early");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  CHECK(nvtxDomainRegisterStringA(domain, "another") != text);
  CHECK(nvtxRangePushA("before") < 0);  // no session: nothing is tracked
  Run run;
  run.Launch(1);
  nvtxEventAttributes_t event = Event(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = text;
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
  run.Finish();
  const Said said(run.Parse());
  REQUIRE(said.annotations.size() == 1);
  CHECK(said.Name(said.annotations[0]) == "registered");
  CHECK(said.Domain(said.annotations[0]) == "early");
}

TEST_CASE("bad input costs its own name, not the job") {
  Run run;
  run.Launch(1);
  nvtxRangePushA(nullptr);
  nvtxRangePushEx(nullptr);
  nvtxEventAttributes_t event = Event("cut");
  event.size = 8;  // says that it has no more than its category
  event.category = 9;
  nvtxRangePushEx(&event);
  event = Event(nullptr);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = reinterpret_cast<nvtxStringHandle_t>(&event);  // never registered
  nvtxRangePushEx(&event);
  event = Event("blob");
  nvtxPayloadData_t payload{42, SIZE_MAX, reinterpret_cast<const void*>(1)};  // neither size nor address is true
  event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  event.reserved0 = 1;
  event.payload.ullValue = reinterpret_cast<uintptr_t>(&payload);
  nvtxRangePushEx(&event);
  event.payload.ullValue = 0;
  nvtxRangePushEx(&event);
  nvtxDomainMarkEx(reinterpret_cast<nvtxDomainHandle_t>(&event), &event);  // no domain: counted
  const std::string huge(1 << 20, 'x');
  nvtxRangePushA(huge.c_str());
  for (int i = 0; i < 7; ++i) nvtxRangePop();
  run.Finish();
  const v1::TraceFile file = run.Parse();
  const Said said(file);
  CHECK(said.annotations.size() == 7);
  CHECK(said.marks.empty());
  CHECK(Lost(file, v1::LOSS_REASON_RING_FULL) == 1);
  CHECK(said.Of("blob").nvtx().payload_kind() == v1::PAYLOAD_KIND_NONE);  // the inner one, whose payload is nowhere
  bool extended = false;
  for (const v1::Annotation& row : said.annotations) {
    if (row.nvtx().payload_kind() != v1::PAYLOAD_KIND_EXTENDED) continue;
    extended = true;
    CHECK(row.nvtx().payload() == 42);
    CHECK_FALSE(row.nvtx().has_payload_bytes());
  }
  CHECK(extended);
}

TEST_CASE("domains and registered strings without end cost bounded memory, and are counted") {
  Run run;
  run.Launch(1);
  nvtxDomainHandle_t last = nullptr;
  for (int i = 0; i < 200; ++i) last = nvtxDomainCreateA(("domain " + std::to_string(i)).c_str());
  const nvtxEventAttributes_t event = Event("of too many");
  nvtxDomainMarkEx(last, &event);
  for (int i = 0; i < 70000; ++i) nvtxDomainRegisterStringA(nullptr, ("string " + std::to_string(i)).c_str());
  run.Finish();
  const v1::TraceFile file = run.Parse();
  CHECK(Said(file).marks.empty());
  CHECK(Lost(file, v1::LOSS_REASON_RING_FULL) > 1000);
}
