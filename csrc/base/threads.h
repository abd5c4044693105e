// Threads of ours inside somebody else's process: they block every signal (handlers of the job must never run on them)
// and carry a name.
#ifndef GPUPERF_BASE_THREADS_H_
#define GPUPERF_BASE_THREADS_H_

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace gpuperf::base {

// `name`: at most 15 characters. Throws std::system_error if the kernel has no thread for us.
template <typename Function>
std::thread StartThread(const char* name, Function function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread inherits the mask
  struct Restore {
    const sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } restore{&before};
  std::thread thread(std::move(function));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_THREADS_H_
