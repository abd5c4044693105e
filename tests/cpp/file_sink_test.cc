#include "trace/file_sink.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/clock.h"
#include "catch.h"

using gpuperf::trace::FileSink;
using gpuperf::trace::OutputPlan;
using gpuperf::trace::StoodBeforeRun;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/gpuperf-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() {
    if (std::system(("rm -rf " + path_).c_str()) != 0) std::abort();
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t Now() { return gpuperf::base::ReadClock(CLOCK_REALTIME); }

}  // namespace

TEST_CASE("the first process has the plain name, others get theirs inserted") {
  const Folder folder;
  const OutputPlan plan{folder / "a.b/run.gpuperf", "-r1-77", false, Now() - 1'000'000'000};
  REQUIRE(mkdir((folder / "a.b").c_str(), 0700) == 0);
  FileSink first;
  FileSink second;
  FileSink third;
  REQUIRE(first.Open(plan));
  REQUIRE(second.Open(plan));
  REQUIRE(third.Open(plan));
  CHECK(first.path() == folder / "a.b/run.gpuperf");
  CHECK(second.path() == folder / "a.b/run-r1-77.gpuperf");
  CHECK(third.path() == folder / "a.b/run-r1-77-2.gpuperf");
  struct stat status{};
  REQUIRE(stat(first.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a name without an extension gets the suffix at its end") {
  const Folder folder;
  const OutputPlan plan{folder / "run", "-r0-5", false, Now() - 1'000'000'000};
  FileSink first;
  FileSink second;
  REQUIRE(first.Open(plan));
  REQUIRE(second.Open(plan));
  CHECK(second.path() == folder / "run-r0-5");
}

TEST_CASE("a file that stood before the run") {
  const Folder folder;
  const std::string path = folder / "old.gpuperf";
  std::ofstream(path) << "precious";
  OutputPlan plan{path, "-r0-1", false, Now() + 1'000'000'000};
  CHECK(StoodBeforeRun(plan) == path);
  SECTION("is refused and kept") {
    FileSink sink;
    CHECK_FALSE(sink.Open(plan));
    CHECK(sink.error().find("exists") != std::string::npos);
    CHECK(Read(path) == "precious");
  }
  SECTION("is replaced with force") {
    plan.force = true;
    FileSink sink;
    REQUIRE(sink.Open(plan));
    REQUIRE(sink.Append("new"));
    CHECK(Read(path) == "new");
  }
}

TEST_CASE("links are never followed") {
  const Folder folder;
  std::ofstream(folder / "target") << "precious";
  REQUIRE(symlink((folder / "target").c_str(), (folder / "link.gpuperf").c_str()) == 0);
  OutputPlan plan{folder / "link.gpuperf", "-r0-1", false, 0};
  FileSink sink;
  CHECK_FALSE(sink.Open(plan));
  plan.force = true;
  FileSink forced;
  REQUIRE(forced.Open(plan));  // the link itself goes
  REQUIRE(forced.Append("trace"));
  CHECK(Read(folder / "target") == "precious");
}

TEST_CASE("parts are files of their own") {
  const Folder folder;
  FileSink sink;
  REQUIRE(sink.Open({folder / "t.gpuperf", "", false, 0}));
  REQUIRE(sink.Append("one"));
  REQUIRE(sink.MakeNextPart());
  REQUIRE(sink.Append(" more"));  // the footer of the one before
  sink.GoOnInNextPart();
  CHECK(sink.size() == 0);
  REQUIRE(sink.Append("two"));
  CHECK(sink.path() == folder / "t.gpuperf");
  CHECK(Read(folder / "t.gpuperf") == "one more");
  CHECK(Read(folder / "t.gpuperf.0001") == "two");
}

TEST_CASE("parts that stood before the run") {
  const Folder folder;
  const std::string path = folder / "t.gpuperf";
  std::ofstream(path + ".0002") << "precious";  // its first parts were removed
  std::ofstream(path + ".00021") << "no part";
  std::ofstream(path + ".txt") << "no part";
  OutputPlan plan{path, "-r0-1", false, Now() + 1'000'000'000};
  CHECK(StoodBeforeRun(plan) == path + ".0002");
  SECTION("are refused and kept") {
    FileSink sink;
    CHECK_FALSE(sink.Open(plan));
    CHECK(sink.error().find(path + ".0002 exists") != std::string::npos);
    CHECK(Read(path + ".0002") == "precious");
    CHECK(access(path.c_str(), F_OK) != 0);
  }
  SECTION("are removed with force, and nothing else is") {
    plan.force = true;
    FileSink sink;
    REQUIRE(sink.Open(plan));
    CHECK(access((path + ".0002").c_str(), F_OK) != 0);
    CHECK(Read(path + ".00021") == "no part");
    CHECK(Read(path + ".txt") == "no part");
  }
  SECTION("are those of a sibling if they are newer than the run") {
    plan.run_start_ns = Now() - 3'600'000'000'000;
    CHECK(StoodBeforeRun(plan).empty());
    plan.force = true;
    FileSink sink;
    REQUIRE(sink.Open(plan));
    CHECK(Read(path + ".0002") == "precious");
  }
}

TEST_CASE("a further process takes no name with foreign parts") {
  const Folder folder;
  const OutputPlan plan{folder / "t.gpuperf", "-r1-77", false, Now() - 1'000'000'000};
  std::ofstream(folder / "t-r1-77.gpuperf.0001") << "precious";
  FileSink first;
  FileSink second;
  REQUIRE(first.Open(plan));
  REQUIRE(second.Open(plan));
  CHECK(second.path() == folder / "t-r1-77-2.gpuperf");
  CHECK(access((folder / "t-r1-77.gpuperf").c_str(), F_OK) != 0);
}

TEST_CASE("a trace that is still being written is not replaced, with force neither") {
  const Folder folder;
  const std::string path = folder / "t.gpuperf";
  FileSink running;
  REQUIRE(running.Open({path, "", false, 0}));
  REQUIRE(running.Append("one"));
  const OutputPlan plan{path, "", true, Now() + 1'000'000'000};
  {
    FileSink other;
    CHECK_FALSE(other.Open(plan));
    CHECK(other.error().find("still being written") != std::string::npos);
  }
  CHECK(Read(path) == "one");
  running.Close();
  FileSink other;
  CHECK(other.Open(plan));
  CHECK(Read(path).empty());
}

TEST_CASE("a part never replaces a file that came meanwhile") {
  const Folder folder;
  const bool force = GENERATE(false, true);
  FileSink sink;
  REQUIRE(sink.Open({folder / "t.gpuperf", "", force, Now()}));
  std::ofstream(folder / "t.gpuperf.0001") << "precious";
  CHECK_FALSE(sink.MakeNextPart());
  CHECK(sink.error().find("t.gpuperf.0001: File exists") != std::string::npos);
  CHECK(Read(folder / "t.gpuperf.0001") == "precious");
}

TEST_CASE("what a full disk leaves half-written is cut off again") {
  const Folder folder;
  // In a child, because the limit is the process's.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    FileSink sink;
    bool good = sink.Open({folder / "t.gpuperf", "", false, 0}) && sink.Append(std::string(600, 'a'));
    good = good && !sink.Append(std::string(600, 'b')) && !sink.error().empty() && sink.size() == 600;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(Read(folder / "t.gpuperf") == std::string(600, 'a'));
}

TEST_CASE("a folder that is not there is said") {
  const Folder folder;
  FileSink sink;
  CHECK_FALSE(sink.Open({folder / "no/such.gpuperf", "", false, 0}));
  CHECK(sink.error().find("No such file") != std::string::npos);
}
