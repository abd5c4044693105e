#include "ring/spsc_byte_ring.h"

#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"

namespace gpuperf::ring {
namespace {

constexpr size_t kCapacity = 4096;

// A ring with memory of its own.
struct OwnedRing {
  alignas(8) std::byte memory[kCapacity] = {};
  SpscByteRing ring{memory, kCapacity};
};

// Writes a record of `words` words whose payload tells `value`; false: full.
bool Push(SpscByteRing* ring, size_t words, uint64_t value, size_t headroom = 0) {
  std::byte* record = ring->Reserve(words * 8, headroom);
  if (record == nullptr) return false;
  const RecordHeader header{static_cast<uint8_t>(words), RecordKind::kMark, 0, 0, value};
  std::memcpy(record, &header, sizeof header);
  for (size_t word = 2; word < words; ++word) {
    const uint64_t filled = value * 1000 + word;
    std::memcpy(record + word * 8, &filled, 8);
  }
  ring->Commit();
  return true;
}

struct Read {
  size_t words;
  uint64_t value;
  bool whole;
};

bool operator==(const Read& a, const Read& b) { return a.words == b.words && a.value == b.value && a.whole == b.whole; }

// Drains everything that is published.
std::vector<Read> DrainAll(SpscByteRing* ring) {
  std::vector<Read> records;
  ring->Drain([&](const RecordHeader& header, const std::byte* payload) {
    bool whole = header.kind == RecordKind::kMark;
    for (size_t word = 2; word < header.words; ++word) {
      uint64_t filled = 0;
      std::memcpy(&filled, payload + (word - 2) * 8, 8);
      whole = whole && filled == header.stamp * 1000 + word;
    }
    records.push_back({header.words, header.stamp, whole});
  });
  return records;
}

}  // namespace

TEST_CASE("records come out as they went in, also around the end of the ring") {
  // A model beside the ring: whatever the sizes and however often it is drained, the two agree.
  for (const uint32_t seed : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) {
    OwnedRing owned;
    std::mt19937 random(seed);
    std::deque<Read> model;
    uint64_t value = 0;
    for (int round = 0; round < 20000; ++round) {
      if (random() % 4 != 0) {
        const size_t words = 2 + random() % (seed % 2 == 0 ? 8 : 253);
        if (Push(&owned.ring, words, value)) model.push_back({words, value, true});
        ++value;
      } else {
        const std::vector<Read> records = DrainAll(&owned.ring);
        REQUIRE(records == std::vector<Read>(model.begin(), model.end()));
        REQUIRE(owned.ring.Pending() == 0);
        model.clear();
      }
    }
  }
}

TEST_CASE("where one word is left before the end, padding takes that word only") {
  alignas(8) std::byte memory[kCapacity + 8] = {};
  const uint64_t guard = 0x1122334455667788;
  std::memcpy(memory + kCapacity, &guard, sizeof guard);
  SpscByteRing ring(memory, kCapacity);
  constexpr size_t kWords = kCapacity / 8;
  REQUIRE(Push(&ring, 255, 0));
  REQUIRE(Push(&ring, 255, 1));
  REQUIRE(DrainAll(&ring).size() == 2);
  static_assert(kWords == 512);
  REQUIRE(Push(&ring, 3, 2));  // two words were left: it starts at 0 and ends at 3
  REQUIRE(DrainAll(&ring) == std::vector<Read>{{3, 2, true}});
  REQUIRE(Push(&ring, 254, 3));
  REQUIRE(Push(&ring, 254, 4));  // ends at 511
  REQUIRE(DrainAll(&ring).size() == 2);
  REQUIRE(Push(&ring, 2, 5));
  CHECK(DrainAll(&ring) == std::vector<Read>{{2, 5, true}});
  uint64_t after = 0;
  std::memcpy(&after, memory + kCapacity, sizeof after);
  CHECK(after == guard);
}

TEST_CASE("a full ring refuses the newest and keeps what it has") {
  OwnedRing owned;
  uint64_t pushed = 0;
  while (Push(&owned.ring, 4, pushed)) ++pushed;
  CHECK(pushed == kCapacity / 32);
  CHECK_FALSE(Push(&owned.ring, 2, 999));
  const std::vector<Read> records = DrainAll(&owned.ring);
  REQUIRE(records.size() == pushed);
  CHECK(records.front() == Read{4, 0, true});
  CHECK(records.back() == Read{4, pushed - 1, true});
  CHECK(Push(&owned.ring, 4, pushed));
}

TEST_CASE("what is reserved and not committed is not there") {
  OwnedRing owned;
  REQUIRE(owned.ring.Reserve(32) != nullptr);
  CHECK(DrainAll(&owned.ring).empty());
  REQUIRE(Push(&owned.ring, 4, 7));
  CHECK(DrainAll(&owned.ring) == std::vector<Read>{{4, 7, true}});
}

TEST_CASE("headroom keeps its word at every offset") {
  // A record that was let in with headroom can always be followed by one of that size.
  for (size_t first = 2; first < 60; ++first) {
    OwnedRing owned;
    REQUIRE(Push(&owned.ring, first, 0));
    for (uint64_t value = 1; Push(&owned.ring, 7, value, 5 * 8); ++value) REQUIRE(Push(&owned.ring, 5, value));
    DrainAll(&owned.ring);
    for (uint64_t value = 1; Push(&owned.ring, 7, value, 5 * 8); ++value) REQUIRE(Push(&owned.ring, 5, value));
  }
}

TEST_CASE("one thread writes while another reads: nothing is torn, doubled or out of order") {
  OwnedRing owned;
  constexpr uint64_t kRecords = 200000;
  uint64_t refused = 0;
  std::thread producer([&] {
    std::mt19937 random(42);
    for (uint64_t value = 0; value < kRecords; ++value) {
      while (!Push(&owned.ring, 2 + random() % 30, value)) {
        ++refused;
        std::this_thread::yield();
      }
    }
  });
  uint64_t expected = 0;
  bool in_order = true;
  bool whole = true;
  while (expected < kRecords) {
    for (const Read& record : DrainAll(&owned.ring)) {
      in_order = in_order && record.value == expected;
      whole = whole && record.whole;
      ++expected;
    }
    std::this_thread::yield();
  }
  producer.join();
  INFO("refused " << refused);
  CHECK(in_order);
  CHECK(whole);
  CHECK(DrainAll(&owned.ring).empty());
}

}  // namespace gpuperf::ring
