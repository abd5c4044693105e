// The exported functions (gpuperf.h): nothing but translation.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "gpuperf/gpuperf.h"
#include "session/options.h"
#include "session/probe.h"
#include "session/session.h"
#include "source/marker_source.h"

namespace {

using gpuperf::session::EntryWay;

size_t CopyOut(std::string_view text, char* buffer, size_t size) {
  if (buffer != nullptr && size != 0) {
    const size_t copied = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), copied);
    buffer[copied] = '\0';
  }
  return text.size();
}

std::string_view Name(const char* name, size_t length) {
  return name == nullptr ? std::string_view() : std::string_view(name, length);
}

}  // namespace

extern "C" {

uint32_t gpuperf_abi_version(void) { return GPUPERF_ABI_VERSION; }

const char* gpuperf_version(void) { return GPUPERF_VERSION; }

gpuperf_status gpuperf_start(const gpuperf_option* options, size_t count) {
  return gpuperf::session::Start(options, count, EntryWay::kApi);
}

gpuperf_status gpuperf_stop(void) { return gpuperf::session::Stop(nullptr); }

gpuperf_status gpuperf_yield(const char* why) {
  return gpuperf::session::Stop(why == nullptr ? "another CUPTI client" : why);
}

void gpuperf_at_exit(void) { gpuperf::session::AtExit(); }

gpuperf_status gpuperf_flush(uint32_t timeout_ms) { return gpuperf::session::Flush(timeout_ms); }

gpuperf_state gpuperf_get_state(void) { return gpuperf::session::State(); }

gpuperf_status gpuperf_get_stats(gpuperf_stats* stats) { return gpuperf::session::Stats(stats); }

size_t gpuperf_output_path(char* buffer, size_t size) { return CopyOut(gpuperf::session::OutputPath(), buffer, size); }

size_t gpuperf_last_error(char* buffer, size_t size) { return CopyOut(gpuperf::session::LastError(), buffer, size); }

void gpuperf_step(int64_t samples, int64_t tokens) { gpuperf::source::EmitStep(samples, tokens); }

void gpuperf_annotation_begin(const char* name, size_t length) {
  gpuperf::source::EmitAnnotationBegin(gpuperf::source::Label(Name(name, length)));
}

void gpuperf_annotation_end(void) { gpuperf::source::EmitAnnotationEnd(); }

void gpuperf_mark(const char* name, size_t length) {
  gpuperf::source::EmitMark(gpuperf::source::Label(Name(name, length)));
}

void gpuperf_counter(const char* name, size_t length, double value) {
  gpuperf::source::EmitCounter(Name(name, length), value);
}

void gpuperf_set_version(const char* key, const char* value) { gpuperf::session::SetVersion(key, value); }

const char* gpuperf_option_table_json(void) { return gpuperf::session::OptionTableJson().c_str(); }

size_t gpuperf_probe_json(char* buffer, size_t size) {
  static const std::string& json = *new std::string(gpuperf::session::ProbeJson());  // asked twice: size, then text
  return CopyOut(json, buffer, size);
}

}  // extern "C"
