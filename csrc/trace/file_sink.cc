#include "trace/file_sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.h"

namespace gpuperf::trace {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr int kMostSiblings = 1000;
constexpr size_t kPartDigits = 4;

// "dir/a.gpuperf" + "-r1-77" → "dir/a-r1-77.gpuperf"
std::string WithSuffix(const std::string& path, const std::string& suffix) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot != 0;
  const size_t at = has_extension ? dot : path.size();
  return path.substr(0, at) + suffix + path.substr(at);
}

uint64_t ModifiedNs(const struct stat& status) {
  return static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(status.st_mtim.tv_nsec);
}

// Whatever is no regular file is not a sibling's trace.
bool IsOld(const std::string& path, uint64_t run_start_ns) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 && (!S_ISREG(status.st_mode) || ModifiedNs(status) < run_start_ns);
}

bool IsBeingWritten(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return held;
}

// Only a regular file goes, or a link, which is not followed.
void RemoveIfOld(const std::string& path, uint64_t run_start_ns) {
  struct stat status{};
  if (!IsOld(path, run_start_ns) || lstat(path.c_str(), &status) != 0) return;
  if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode)) unlink(path.c_str());
}

// What has the name of a further part of the trace `path`, sorted. Not counted up from .0001: an old trace may have
// lost its first parts.
std::vector<std::string> PartsBeside(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string prefix = path.substr(folder.size()) + ".";
  std::vector<std::string> parts;
  DIR* directory = opendir(folder.empty() ? "." : folder.c_str());
  if (directory == nullptr) return parts;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.size() != prefix.size() + kPartDigits || name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view digits = name.substr(prefix.size());
    if (std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      parts.push_back(folder + entry->d_name);
    }
  }
  closedir(directory);
  std::sort(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::string StoodBeforeRun(const OutputPlan& plan) {
  if (IsOld(plan.path, plan.run_start_ns)) return plan.path;
  // Parts alone count, too: the new trace may grow into their names.
  for (const std::string& part : PartsBeside(plan.path)) {
    if (IsOld(part, plan.run_start_ns)) return part;
  }
  return "";
}

std::string AlreadyExists(const std::string& path) {
  return base::Format("%s exists already; choose another name or pass -f/--force to replace it", path.c_str());
}

FileSink::~FileSink() { Close(); }

// -1: errno says why not.
int FileSink::Create(const std::string& path) {
  int made = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  // Where the job closed a standard stream we may get its number, and the job's output would go into the trace.
  if (made >= 0 && made <= STDERR_FILENO) {
    const int low = made;
    made = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int why = errno;
    close(low);
    errno = why;
  }
  // Whoever wants to replace the file sees by this that it is being written. Not every file system can.
  if (made >= 0) flock(made, LOCK_EX | LOCK_NB);
  return made;
}

bool FileSink::Open(const OutputPlan& plan) {
  path_ = plan.path;
  const std::string old = StoodBeforeRun(plan);
  if (!old.empty() && !plan.force) {
    error_ = AlreadyExists(old);
    return false;
  }
  if (!old.empty() && IsBeingWritten(old)) {
    error_ = base::Format("%s is still being written by a job that runs; choose another name", old.c_str());
    return false;
  }
  if (plan.force) RemoveIfOld(path_, plan.run_start_ns);
  descriptor_ = Create(path_);
  bool made = descriptor_ >= 0;
  for (int sibling = 1; !made && errno == EEXIST && sibling <= kMostSiblings; ++sibling) {
    path_ = WithSuffix(plan.path, sibling == 1 ? plan.suffix : plan.suffix + base::Format("-%d", sibling));
    descriptor_ = Create(path_);
    made = descriptor_ >= 0;
    if (made && !plan.force && !PartsBeside(path_).empty()) {  // here the trace could not grow
      Close();
      unlink(path_.c_str());
      made = false;
      errno = EEXIST;
    }
  }
  if (!made) {
    error_ = base::Format("cannot create %s: %s", path_.c_str(), std::strerror(errno));
    return false;
  }
  if (plan.force) {  // by the owner of the first part only: now nobody else makes parts of this name
    for (const std::string& part : PartsBeside(path_)) RemoveIfOld(part, plan.run_start_ns);
  }
  return true;
}

bool FileSink::MakeNextPart() {
  const std::string path = path_ + base::Format(".%04u", part_ + 1);
  next_descriptor_ = Create(path);
  if (next_descriptor_ >= 0) return true;
  error_ = base::Format("cannot create %s: %s", path.c_str(), std::strerror(errno));
  return false;
}

void FileSink::GoOnInNextPart() {
  const int next = std::exchange(next_descriptor_, -1);
  Close();
  descriptor_ = next;
  ++part_;
  size_ = kept_ = 0;
}

bool FileSink::Keep(uint64_t bytes) {
  if (size_ + bytes <= kept_) return true;
  int result = 0;
  do {
    result = fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    error_ = base::Format("cannot write %s: %s", path_.c_str(), std::strerror(errno));
    return false;
  }
  kept_ = size_ + bytes;
  return true;
}

bool FileSink::Append(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(descriptor_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = base::Format("cannot write %s: %s", path_.c_str(), std::strerror(written < 0 ? errno : ENOSPC));
      // A torn chunk would cost a reader a search; if even this fails the reader copes.
      [[maybe_unused]] const int cut = ftruncate(descriptor_, static_cast<off_t>(size_));
      return false;
    }
    done += static_cast<size_t>(written);
  }
  size_ += done;
  return true;
}

void FileSink::Close() {
  if (descriptor_ >= 0) {
    // Gives back the room that was kept and not used.
    if (kept_ > size_) [[maybe_unused]]
      const int cut = ftruncate(descriptor_, static_cast<off_t>(size_));
    close(descriptor_);
  }
  if (next_descriptor_ >= 0) close(next_descriptor_);
  descriptor_ = next_descriptor_ = -1;
}

}  // namespace gpuperf::trace
