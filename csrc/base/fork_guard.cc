#include "base/fork_guard.h"

#include <pthread.h>

namespace gpuperf::base {

std::atomic<bool> g_in_forked_child{false};

namespace {

std::atomic<bool (*)()> g_child_function{nullptr};

void Child() {
  auto* function = g_child_function.load(std::memory_order_relaxed);
  if (function()) g_in_forked_child.store(true, std::memory_order_relaxed);
}

}  // namespace

void ArmForkGuard(bool (*in_child)()) noexcept {
  if (g_child_function.exchange(in_child, std::memory_order_relaxed) == nullptr) {
    pthread_atfork(nullptr, nullptr, Child);
  }
}

}  // namespace gpuperf::base
