// Silence in forked children. A child has our memory but none of our threads, and CUDA does not survive a fork, so
// nothing of gpuperf may run there again: every entry asks InForkedChild() first.
//
// Arm() once, from any thread, before the first session. The child's handler only stores one atomic and calls the
// function given (async-signal-safe: it may store to atomics and thread-locals, nothing else).
#ifndef GPUPERF_BASE_FORK_GUARD_H_
#define GPUPERF_BASE_FORK_GUARD_H_

#include <atomic>

namespace gpuperf::base {

extern std::atomic<bool> g_in_forked_child;

inline bool InForkedChild() noexcept { return g_in_forked_child.load(std::memory_order_relaxed); }

void ArmForkGuard(void (*in_child)()) noexcept;

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_FORK_GUARD_H_
