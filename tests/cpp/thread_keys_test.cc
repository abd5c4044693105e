#include <pthread.h>

#include "catch.h"
#include "ring/thread_state.h"

namespace ring = gpuperf::ring;

TEST_CASE("where the job has taken every thread-specific key, events are counted as lost") {
  pthread_key_t key{};
  while (pthread_key_create(&key, nullptr) == 0) {
  }
  CHECK(ring::Current() == nullptr);
  CHECK(ring::Current() == nullptr);
  uint64_t first = 0;
  uint64_t last = 0;
  CHECK(ring::UnregisteredLoss().Take(&first, &last) == 2);
}
