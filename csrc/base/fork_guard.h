// Silence in forked children. A child has our memory but none of our threads, and CUDA does not survive a fork, so
// nothing of gpuperf may run there again: every entry asks InForkedChild() first.
//
// ArmForkGuard once, from any thread, before the first session touches CUDA or takes a lock. The child's handler calls
// the function given, which says whether this child is to be silent (async-signal-safe: it may use atomics and
// thread-locals, nothing else).
#ifndef GPUPERF_BASE_FORK_GUARD_H_
#define GPUPERF_BASE_FORK_GUARD_H_

#include <atomic>

namespace gpuperf::base {

extern std::atomic<bool> g_in_forked_child;

inline bool InForkedChild() noexcept { return g_in_forked_child.load(std::memory_order_relaxed); }

void ArmForkGuard(bool (*in_child)()) noexcept;

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_FORK_GUARD_H_
