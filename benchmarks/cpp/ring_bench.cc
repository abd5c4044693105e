// One push of a launch record (40 bytes) into a thread's ring, each push timed by itself, while a consumer on another
// core drains without a pause. Pushes are 300 ns apart: a thread that launches as fast as CUDA can is ten times slower.
#include <atomic>
#include <new>
#include <thread>

#include "base/pages.h"
#include "report.h"
#include "ring/spsc_byte_ring.h"

namespace {

using gpuperf::ring::RecordHeader;
using gpuperf::ring::RecordKind;

constexpr size_t kPushes = 1'000'000;
constexpr size_t kRecordBytes = 40;
constexpr uint64_t kPauseNs = 300;

}  // namespace

int main() {
  constexpr size_t kCapacity = 512 * 1024;
  auto* memory = static_cast<std::byte*>(gpuperf::base::MapPages(kCapacity, /*resident=*/true));
  gpuperf::ring::SpscByteRing ring(memory, kCapacity);
  std::atomic<bool> done{false};
  uint64_t read = 0;
  std::thread consumer([&] {
    while (!done.load(std::memory_order_acquire) || ring.Pending() != 0) {
      ring.Drain([&](const RecordHeader&, const std::byte*) { ++read; });
    }
  });

  std::vector<uint64_t> ticks(kPushes);
  uint64_t refused = 0;
  for (uint64_t& tick : ticks) {
    uint64_t begin = gpuperf::base::Ticks();
    std::byte* record = ring.Reserve(kRecordBytes, 24);
    while (record == nullptr) {  // the machine took the consumer off its core
      ++refused;
      std::this_thread::yield();
      begin = gpuperf::base::Ticks();
      record = ring.Reserve(kRecordBytes, 24);
    }
    new (record) RecordHeader{kRecordBytes / 8, RecordKind::kCallEnter, 211, 7, begin};
    new (record + sizeof(RecordHeader)) uint64_t[3]{1, 2, 3};
    ring.Commit();
    tick = gpuperf::base::Ticks() - begin;
    gpuperf::benchmarks::Pause(kPauseNs);
  }
  done.store(true, std::memory_order_release);
  consumer.join();
  if (read != kPushes) return 1;
  gpuperf::benchmarks::PrintLatencies("ring.push.p50", "ring.push.p999", "ring.timer", ticks);
  gpuperf::benchmarks::Print("ring.refused", static_cast<double>(refused), "pushes", "lower");
  return 0;
}
