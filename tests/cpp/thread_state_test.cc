#include "ring/thread_state.h"

#include <atomic>
#include <thread>
#include <vector>

#include "catch.h"

namespace gpuperf::ring {
namespace {

bool IsRegistered(const ThreadState* state) {
  for (const ThreadState* each = All(); each != nullptr; each = each->next) {
    if (each == state) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a thread has one state, others have others, and all are on the list") {
  ThreadState* mine = Current();
  REQUIRE(mine != nullptr);
  CHECK(Current() == mine);
  ThreadState* theirs = nullptr;
  std::thread([&] { theirs = Current(); }).join();
  CHECK(theirs != nullptr);
  CHECK(theirs != mine);
  CHECK(IsRegistered(mine));
  CHECK(IsRegistered(theirs));
  CHECK(theirs->retired);
  CHECK_FALSE(mine->retired);
}

TEST_CASE("a recycled state goes to the next new thread, with a new generation and nothing left over") {
  ThreadState* first = nullptr;
  uint32_t generation = 0;
  std::thread([&] {
    first = Current();
    generation = first->generation;
    first->open_call.active = true;
    first->symbols[3] = "name";
  }).join();
  REQUIRE(first->retired);
  Recycle(first);
  ThreadState* second = nullptr;
  bool clean = false;
  std::thread([&] {
    second = Current();
    clean = !second->open_call.active && second->symbols[3] == nullptr && !second->retired;
  }).join();
  CHECK(second == first);
  CHECK(clean);
  CHECK(second->generation == generation + 1);
}

TEST_CASE("however many threads come and go at once, the next ones need no new states") {
  constexpr size_t kThreads = 200;
  const auto burst = [] {
    std::atomic<size_t> here{0};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&here] {
        const bool has_state = Current() != nullptr;
        here.fetch_add(has_state ? 1 : 0);
        while (here < kThreads) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (ThreadState* state = All(); state != nullptr; state = state->next) {
      if (state->retired) Recycle(state);
    }
  };
  burst();
  const size_t bytes = TotalRingBytes();
  CHECK(bytes < size_t{44} << 20);  // the later ones have smaller rings
  burst();
  burst();
  CHECK(TotalRingBytes() == bytes);
}

TEST_CASE("an event after the thread's own thread-locals are gone finds no state") {
  // A destructor of a thread-local that runs after ours, as a library's may, and makes a CUDA call.
  static std::atomic<bool> asked{false};
  static std::atomic<bool> refused{false};
  std::thread([] {
    pthread_key_t key;
    pthread_key_create(&key, [](void* rounds) {
      static thread_local int round = 0;
      asked = true;
      refused = Current() == nullptr;
      if (++round < 3) pthread_setspecific(*static_cast<pthread_key_t*>(rounds), rounds);
    });
    static pthread_key_t kept;
    kept = key;
    pthread_setspecific(key, &kept);
    Current();
  }).join();
  CHECK(asked);
  CHECK(refused);
}

TEST_CASE("dropped events are counted once, with the times of the first and the last") {
  LossCell cell;
  uint64_t first = 0;
  uint64_t last = 0;
  CHECK(cell.Take(&first, &last) == 0);
  cell.Add(100);
  cell.Add(200);
  cell.Add(300);
  CHECK(cell.Take(&first, &last) == 3);
  CHECK(first == 100);
  CHECK(last == 300);
  CHECK(cell.Take(&first, &last) == 0);
  cell.Add(400);
  CHECK(cell.Take(&first, &last) == 1);
  CHECK(first == 400);
  CHECK(last == 400);
}

TEST_CASE("no drop is counted twice or forgotten while another thread takes the counts") {
  LossCell cell;
  constexpr uint64_t kDrops = 200000;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    for (uint64_t i = 1; i <= kDrops; ++i) cell.Add(i);
    done = true;
  });
  uint64_t sum = 0;
  bool ordered = true;
  for (bool last_round = false; !last_round;) {
    last_round = done;
    uint64_t first = 0;
    uint64_t last = 0;
    const uint64_t count = cell.Take(&first, &last);
    sum += count;
    ordered = ordered && (count == 0 || (first != 0 && first <= last));
  }
  producer.join();
  CHECK(sum == kDrops);
  CHECK(ordered);
}

}  // namespace gpuperf::ring
