#include "ring/buffer_pool.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "catch.h"

namespace gpuperf::ring {
namespace {

constexpr size_t kLimit = size_t{1} << 20;

// Pools are never unmapped (buffers may come back at any time), so tests leave theirs, too.
BufferPool* NewPool(size_t limit) {
  static std::vector<std::unique_ptr<BufferPool>>* const all = new std::vector<std::unique_ptr<BufferPool>>();
  all->push_back(std::make_unique<BufferPool>());
  REQUIRE(all->back()->Open(limit));
  return all->back().get();
}

struct Taken {
  uint8_t* data = nullptr;
  size_t size = 0;
};

bool AllZero(const uint8_t* data, size_t size) {
  return std::all_of(data, data + size, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("buffers are distinct, zeroed, aligned, and bounded all together") {
  BufferPool* pool = NewPool(kLimit);
  std::set<uint8_t*> seen;
  Taken taken;
  size_t out = 0;
  while (pool->Take(nullptr, &taken.data, &taken.size)) {
    out += taken.size;
    REQUIRE(reinterpret_cast<uintptr_t>(taken.data) % 8 == 0);
    REQUIRE(AllZero(taken.data, taken.size));
    REQUIRE(seen.insert(taken.data).second);
  }
  CHECK(out == kLimit);
  CHECK(pool->peak_bytes() == kLimit);
}

TEST_CASE("a filled buffer comes out of the queue in order, and back zeroed") {
  BufferPool* pool = NewPool(kLimit);
  Taken first;
  Taken second;
  REQUIRE(pool->Take(nullptr, &first.data, &first.size));
  REQUIRE(pool->Take(nullptr, &second.data, &second.size));
  std::memset(first.data, 0xAB, 1000);
  REQUIRE(pool->Complete(second.data, second.size, 0));
  REQUIRE(pool->Complete(first.data, first.size, 1000));

  ActivityBuffer buffer;
  REQUIRE(pool->Next(&buffer));
  CHECK(buffer.data == second.data);
  pool->Return(buffer);
  REQUIRE(pool->Next(&buffer));
  CHECK(buffer.data == first.data);
  CHECK(buffer.valid == 1000);
  CHECK(buffer.filled_ns >= buffer.taken_ns);
  pool->Return(buffer);
  CHECK_FALSE(pool->Next(&buffer));

  Taken again;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(pool->Take(nullptr, &again.data, &again.size));
    CHECK(AllZero(again.data, again.size));
  }
}

TEST_CASE("the size follows the rate of the thread that asks") {
  BufferPool* pool = NewPool(16 * kLimit);
  const auto owner = std::make_unique<ThreadState>(nullptr, 4096);
  const auto size_at = [&](uint64_t bytes_per_second) {
    owner->activity_rate = bytes_per_second;
    Taken taken;
    REQUIRE(pool->Take(owner.get(), &taken.data, &taken.size));
    return taken.size;
  };
  CHECK(size_at(0) == BufferPool::kFirstBytes);
  CHECK(size_at(1) == BufferPool::kMinBytes);               // 300 kernels/s still arrive live
  CHECK(size_at(216 * 1000) == 3 * BufferPool::kMinBytes);  // 64.8 kB in 0.3 s, rounded down
  CHECK(size_at(uint64_t{1} << 40) == BufferPool::kSlotBytes);
}

TEST_CASE("beyond the limit there is still a buffer for a CUPTI that would crash") {
  BufferPool* pool = NewPool(0);
  Taken taken;
  REQUIRE_FALSE(pool->Take(nullptr, &taken.data, &taken.size));
  REQUIRE(pool->TakeBeyondLimit(nullptr, &taken.data, &taken.size));
  CHECK(AllZero(taken.data, taken.size));
  REQUIRE(pool->Complete(taken.data, taken.size, taken.size));
  ActivityBuffer buffer;
  REQUIRE(pool->Next(&buffer));
  CHECK(buffer.data == taken.data);
  pool->Return(buffer);
}

TEST_CASE("filled buffers for which the queue has no room are counted, and free again") {
  BufferPool* pool = NewPool(BufferPool::kFirstBytes);
  Taken mine;
  REQUIRE(pool->Take(nullptr, &mine.data, &mine.size));
  // The pool alone cannot fill the queue; buffers beyond its limit can.
  Taken taken;
  uint64_t completed = 0;
  do {
    REQUIRE(pool->TakeBeyondLimit(nullptr, &taken.data, &taken.size));
  } while (pool->Complete(taken.data, taken.size, 216) && ++completed < 100'000);
  REQUIRE(completed < 100'000);
  REQUIRE(pool->TakeBeyondLimit(nullptr, &taken.data, &taken.size));
  CHECK_FALSE(pool->Complete(taken.data, taken.size, 0));  // without records: no loss
  std::memset(mine.data, 0xAB, 216);
  CHECK_FALSE(pool->Complete(mine.data, mine.size, 216));
  uint64_t first = 0;
  uint64_t last = 0;
  CHECK(pool->lost_buffers().Take(&first, &last) == 2);
  CHECK(first != 0);
  CHECK(first <= last);
  REQUIRE(pool->Take(nullptr, &mine.data, &mine.size));
  CHECK(AllZero(mine.data, mine.size));
  ActivityBuffer buffer;
  while (pool->Next(&buffer)) pool->Return(buffer);
}

TEST_CASE("many threads fill while one drains: every buffer arrives once, with its own content") {
  BufferPool* pool = NewPool(4 * kLimit);
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kBuffers = 3000;
  std::vector<std::thread> producers;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    producers.emplace_back([pool, thread] {
      for (uint64_t i = 0; i < kBuffers;) {
        Taken taken;
        if (!pool->Take(nullptr, &taken.data, &taken.size)) {
          std::this_thread::yield();
          continue;
        }
        const uint64_t content[2] = {thread, i++};
        std::memcpy(taken.data, content, sizeof content);
        while (!pool->Complete(taken.data, taken.size, sizeof content)) std::this_thread::yield();
      }
    });
  }
  uint64_t next[kThreads] = {};
  bool in_order = true;
  for (uint64_t received = 0; received < kThreads * kBuffers;) {
    ActivityBuffer buffer;
    if (!pool->Next(&buffer)) {
      std::this_thread::yield();
      continue;
    }
    uint64_t content[2];
    std::memcpy(content, buffer.data, sizeof content);
    in_order = in_order && content[0] < kThreads && content[1] == next[content[0]]++;
    pool->Return(buffer);
    ++received;
  }
  for (std::thread& producer : producers) producer.join();
  CHECK(in_order);
}

}  // namespace gpuperf::ring
