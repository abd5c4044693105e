// Preloaded, lets the process's thread number $GPUPERF_FAKE_THREAD_FAILS not come to be, as a kernel at its limit does.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*function)(void*),
                                                                     void* argument) noexcept {
  static std::atomic<int> count{0};
  const char* fails = std::getenv("GPUPERF_FAKE_THREAD_FAILS");
  if (fails != nullptr && count.fetch_add(1) + 1 == std::strtol(fails, nullptr, 10)) return EAGAIN;
  static auto* const next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, function, argument);
}
