// One-line messages on stderr, "gpuperf: …"; never on stdout, which belongs to the job.
// Any thread but not the hot path (it formats and writes). One write(2) a line, so lines of threads do not mix.
#ifndef GPUPERF_BASE_LOG_H_
#define GPUPERF_BASE_LOG_H_

#include <string>
#include <string_view>

namespace gpuperf::base {

enum class LogLevel : int { kError = 0, kWarning = 1, kInfo = 2, kDebug = 3 };

// False if `name` is no level (error, warning, info, debug).
bool ParseLogLevel(std::string_view name, LogLevel* level) noexcept;
void SetLogLevel(LogLevel level) noexcept;

// Prints if `level` is at or above the one set.
void Log(LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

// Prints whatever the level: for the summary line, which has a switch of its own.
void Print(const std::string& line) noexcept;

// printf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_LOG_H_
