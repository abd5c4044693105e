#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace gpuperf::base {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "info", "debug"};
std::atomic<int> g_level{static_cast<int>(LogLevel::kWarning)};

std::string FormatList(const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

}  // namespace

bool ParseLogLevel(std::string_view name, LogLevel* level) noexcept {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      *level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

void SetLogLevel(LogLevel level) noexcept { g_level.store(static_cast<int>(level), std::memory_order_relaxed); }

void Log(LogLevel level, const char* format, ...) noexcept {
  if (static_cast<int>(level) > g_level.load(std::memory_order_relaxed)) return;
  va_list args;
  va_start(args, format);
  Print(FormatList(format, args));
  va_end(args);
}

void Print(const std::string& line) noexcept {
  const std::string text = "gpuperf: " + line + "\n";
  // A stderr that nobody reads is the job's business, and must not end the job by a SIGPIPE of ours.
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigemptyset(&pending);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    const timespec no_time{};
    while (sigtimedwait(&pipe, nullptr, &no_time) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::string Format(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = FormatList(format, args);
  va_end(args);
  return text;
}

}  // namespace gpuperf::base
