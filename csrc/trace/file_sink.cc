#include "trace/file_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace gpuperf::trace {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr int kMostSiblings = 1000;

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

}  // namespace

bool StoodBeforeRun(const OutputPlan& plan) {
  struct stat status{};
  if (lstat(plan.path.c_str(), &status) != 0) return false;
  // Whatever is no regular file is not a sibling's trace.
  return !S_ISREG(status.st_mode) || ModifiedNs(status) < plan.run_start_ns;
}

FileSink::~FileSink() { Close(); }

bool FileSink::Create(const std::string& path, bool replace) {
  // Only a regular file (or a link, which is removed, not followed) is replaced.
  struct stat status{};
  if (replace && lstat(path.c_str(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))) {
    unlink(path.c_str());
  }
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  // Where the job closed a standard stream we may get its number, and the job's output would go into the trace.
  if (descriptor_ >= 0 && descriptor_ <= STDERR_FILENO) {
    const int low = descriptor_;
    descriptor_ = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int why = errno;
    close(low);
    errno = why;
  }
  size_ = 0;
  return descriptor_ >= 0;
}

bool FileSink::Open(const OutputPlan& plan) {
  const bool replace = plan.force && StoodBeforeRun(plan);
  path_ = plan.path;
  if (Create(path_, replace)) return true;
  if (errno == EEXIST && !replace && StoodBeforeRun(plan)) {
    error_ = base::Format("%s exists already; choose another name or pass -f/--force to replace it", path_.c_str());
    return false;
  }
  for (int sibling = 1; errno == EEXIST && sibling <= kMostSiblings; ++sibling) {
    path_ = WithSuffix(plan.path, sibling == 1 ? plan.suffix : plan.suffix + base::Format("-%d", sibling));
    if (Create(path_, /*replace=*/false)) return true;
  }
  error_ = base::Format("cannot create %s: %s", path_.c_str(), std::strerror(errno));
  return false;
}

bool FileSink::OpenNextPart() {
  Close();
  ++part_;
  const std::string path = path_ + base::Format(".%04u", part_);
  if (Create(path, /*replace=*/true)) return true;
  error_ = base::Format("cannot create %s: %s", path.c_str(), std::strerror(errno));
  return false;
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
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

}  // namespace gpuperf::trace
