#include "reader/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gpuperf::reader {
namespace {

absl::Status CannotRead(const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": cannot be read: ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

}  // namespace

absl::StatusOr<File> File::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return CannotRead(path, errno);
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    return CannotRead(path, error);
  }
  if (!S_ISREG(status.st_mode)) {
    close(descriptor);
    return absl::UnavailableError(absl::StrCat(path, ": cannot be read: not a regular file"));
  }
  return File(path, descriptor, static_cast<uint64_t>(status.st_size));
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

void File::Read(uint64_t offset, size_t size, std::string* out) const {
  out->resize(offset < size_ ? std::min<uint64_t>(size, size_ - offset) : 0);
  size_t done = 0;
  while (done < out->size()) {
    const ssize_t got = pread(descriptor_, &(*out)[done], out->size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  out->resize(done);
}

}  // namespace gpuperf::reader
