// Zeroed memory straight from the kernel, which forked children do not inherit (MADV_DONTFORK): a child must neither
// pay for copies of our rings and buffers nor touch them. Any thread. Returns nullptr when the kernel refuses.
#ifndef GPUPERF_BASE_PAGES_H_
#define GPUPERF_BASE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>

namespace gpuperf::base {

// `resident`: back the pages now, in one go, instead of one fault at each first touch.
inline void* MapPages(size_t bytes, bool resident) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (resident ? MAP_POPULATE : 0);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  madvise(pages, bytes, MADV_DONTFORK);
  return pages;
}

inline void UnmapPages(void* pages, size_t bytes) noexcept { munmap(pages, bytes); }

// Gives the memory back and makes it zero again.
inline void DropPages(void* pages, size_t bytes) noexcept { madvise(pages, bytes, MADV_DONTNEED); }

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_PAGES_H_
