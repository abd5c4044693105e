// The trace file: claims a name, appends, survives.
//
// Written with plain write(2), so that what was written is safe from the death of the process. Made readable to the
// owner only (0600), never through a symbolic link, never over a file that another process made or still writes: an
// open trace is locked (flock). Not thread-safe: the collector thread owns it.
#ifndef GPUPERF_TRACE_FILE_SINK_H_
#define GPUPERF_TRACE_FILE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpuperf::trace {

// Which file to make. The first process to claim `path` has it; others get `path` with `suffix` before its extension.
struct OutputPlan {
  std::string path;
  std::string suffix;         // "-r<rank>-<pid>"
  bool force = false;         // replace a trace, with its parts, that stood before the run
  uint64_t run_start_ns = 0;  // CLOCK_REALTIME: a file that was last written before this stood before the run
};

// What is at `path`, or has the name of a further part of it, and stood before the run (and so is not the work of a
// sibling process); "" if nothing.
std::string StoodBeforeRun(const OutputPlan& plan);

// The sentence that refuses such a file.
std::string AlreadyExists(const std::string& path);

class FileSink {
 public:
  ~FileSink();

  // Claims and creates the file. False: see error().
  bool Open(const OutputPlan& plan);
  // Creates the next part, "<path>.0001" and so on, and keeps it for GoOnInNextPart(). Never over a file that somebody
  // put there since Open. False: see error().
  bool MakeNextPart();
  void GoOnInNextPart();
  // Sees to it that the next `bytes` bytes find room on the disk. Where the file system cannot tell, it is believed.
  // False: see error(); what was kept before is still kept.
  bool Keep(uint64_t bytes);
  // Appends all or nothing: what a full disk leaves half-written is cut off again. False: see error().
  bool Append(std::string_view bytes);
  void Close();

  bool is_open() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }  // of the first part
  uint32_t part() const { return part_; }
  uint64_t size() const { return size_; }  // of the current part
  const std::string& error() const { return error_; }

 private:
  int Create(const std::string& path);

  int descriptor_ = -1;
  int next_descriptor_ = -1;  // of the next part
  uint64_t kept_ = 0;         // the disk has room for the file up to this size
  std::string path_;
  uint32_t part_ = 0;
  uint64_t size_ = 0;
  std::string error_;
};

}  // namespace gpuperf::trace

#endif  // GPUPERF_TRACE_FILE_SINK_H_
