// A regular file that is read at offsets.
//
// One thread at a time. Owns the descriptor. Reads with pread, not through a mapping: a file that is cut while it is
// read is then a short read and not a SIGBUS, and a file that still grows is read up to the size it had when opened.
#ifndef GPUPERF_READER_FILE_H_
#define GPUPERF_READER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gpuperf::reader {

class File {
 public:
  // NotFound, PermissionDenied or Unavailable with one line that names the file and the reason.
  static absl::StatusOr<File> Open(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  // Reads up to `size` bytes at `offset` into `out`, which becomes shorter where the file ends or cannot be read.
  void Read(uint64_t offset, size_t size, std::string* out) const;

 private:
  File(std::string path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace gpuperf::reader

#endif  // GPUPERF_READER_FILE_H_
