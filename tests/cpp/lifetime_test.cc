// Threads, forks, descriptors and signals: what the job does must not be changed by what we keep.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/fork_guard.h"
#include "base/log.h"
#include "catch.h"
#include "ring/thread_state.h"
#include "trace/file_sink.h"

namespace ring = gpuperf::ring;

// ThreadSanitizer's runtime aborts in a forked child whose thread ends, also in a program that has nothing of ours.
#ifndef __SANITIZE_THREAD__
TEST_CASE("a thread with events forks, and the child's copy of it ends") {
  gpuperf::base::ArmForkGuard([] {
    ring::ForgetInForkedChild();
    return true;
  });
  int status = -1;
  std::thread([&] {
    ring::Current();
    const pid_t child = fork();
    if (child == 0) pthread_exit(nullptr);  // the child's only thread: runs its destructors, then the child ends
    waitpid(child, &status, 0);
  }).join();
  CHECK(WIFEXITED(status));
}
#endif

TEST_CASE("the trace never takes the number of a standard stream that the job closed") {
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  gpuperf::trace::OutputPlan plan;
  plan.path = "/tmp/gpuperf-lifetime-test-" + std::to_string(getpid()) + ".gpuperf";
  gpuperf::trace::FileSink sink;
  CHECK(sink.Open(plan));
  CHECK(fcntl(STDIN_FILENO, F_GETFD) == -1);
  CHECK(sink.Append("text"));
  sink.Close();
  unlink(plan.path.c_str());
  if (kept >= 0) {
    dup2(kept, STDIN_FILENO);
    close(kept);
  }
}

TEST_CASE("a stderr that nobody reads does not end the job") {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    if (pipe(ends) != 0) _exit(2);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    gpuperf::base::Print("to nobody");
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
