#include "session/run_info.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "catch.h"
#include "gpuperf/trace/v1/metadata.pb.h"

using gpuperf::session::ReadRanks;
using gpuperf::session::Redact;
using gpuperf::session::ScriptName;
using Arguments = std::vector<std::string>;

TEST_CASE("values of secrets leave the command line") {
  CHECK(Redact({"python", "t.py", "--api-key=abc", "--lr", "1"}) ==
        Arguments{"python", "t.py", "--api-key=<redacted>", "--lr", "1"});
  CHECK(Redact({"python", "t.py", "--hf-token", "abc", "x"}) ==
        Arguments{"python", "t.py", "--hf-token", "<redacted>", "x"});
  CHECK(Redact({"t", "wandb.API_KEY=abc=d"}) == Arguments{"t", "wandb.API_KEY=<redacted>"});
  CHECK(Redact({"t", "-password", "p", "--secret=s"}) ==
        Arguments{"t", "-password", "<redacted>", "--secret=<redacted>"});
  // The next option is no value.
  CHECK(Redact({"t", "--use-token", "--out", "f"}) == Arguments{"t", "--use-token", "--out", "f"});
  CHECK(Redact({"t", "--use-token", "--password", "p"}) == Arguments{"t", "--use-token", "--password", "<redacted>"});
  CHECK(Redact({"t", "--use-token", "--", "f"}) == Arguments{"t", "--use-token", "--", "f"});
  // But a secret may begin with a dash, or two, and -o cannot be told from one.
  CHECK(Redact({"t", "--token", "-abc", "x"}) == Arguments{"t", "--token", "<redacted>", "x"});
  CHECK(Redact({"t", "--token", "-", "x"}) == Arguments{"t", "--token", "<redacted>", "x"});
  CHECK(Redact({"t", "--token", "--a/b+c=", "x"}) == Arguments{"t", "--token", "<redacted>", "x"});
  CHECK(Redact({"t", "--token", "--1abc", "x"}) == Arguments{"t", "--token", "<redacted>", "x"});
  CHECK(Redact({"t", "--use-token", "-o", "f"}) == Arguments{"t", "--use-token", "<redacted>", "f"});
  CHECK(Redact({"t", "--token", "my-key=abc", "x"}) == Arguments{"t", "--token", "<redacted>", "x"});
  CHECK(Redact({"t", "--token", "--lr=1", "x"}) == Arguments{"t", "--token", "--lr=1", "x"});
  CHECK(Redact({"t", "--token", "--api-key=a", "x"}) == Arguments{"t", "--token", "--api-key=<redacted>", "x"});
  // What was taken for a value may have been the option of another secret.
  CHECK(Redact({"t", "--use-token", "-password", "p"}) == Arguments{"t", "--use-token", "<redacted>", "<redacted>"});
  CHECK(Redact({"t", "--token", ""}) == Arguments{"t", "--token", "<redacted>"});
  CHECK(Redact({"t", "--name=key"}) == Arguments{"t", "--name=key"});
  CHECK(Redact({"my-token-tool", "a"}) == Arguments{"my-token-tool", "a"});
  CHECK(Redact({"t", ""}) == Arguments{"t", ""});
}

TEST_CASE("the job is called by its script") {
  CHECK(ScriptName({"/usr/bin/python3", "/data/train gpt.py", "--x"}) == "train_gpt");
  CHECK(ScriptName({"python3.12", "-u", "-X", "dev", "train.py"}) == "train");
  CHECK(ScriptName({"python", "-m", "pkg.train"}) == "pkg.train");
  CHECK(ScriptName({"python", "-c", "print()"}) == "python-c");
  CHECK(ScriptName({"./simulate", "train.py"}) == "simulate");
  CHECK(ScriptName({}) == "process");
}

TEST_CASE("ranks come from the variables of every launcher") {
  const char* const sets[][3] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
  };
  for (const auto& names : sets) {
    INFO(names[0]);
    CHECK_FALSE(ReadRanks().rank.has_value());
    setenv(names[0], "3", 1);
    setenv(names[1], "8", 1);
    setenv(names[2], "1", 1);
    const auto ranks = ReadRanks();
    for (const char* name : names) unsetenv(name);
    CHECK(ranks.rank == 3U);
    CHECK(ranks.world_size == 8U);
    CHECK(ranks.local_rank == 1U);
  }
  setenv("RANK", "no number", 1);
  CHECK_FALSE(ReadRanks().rank.has_value());
  unsetenv("RANK");
}

TEST_CASE("process and clocks parse as the schema says") {
  gpuperf::trace::v1::ProcessInfo process;
  REQUIRE(process.ParseFromString(gpuperf::session::BuildProcessInfo(true)));
  CHECK(process.pid() != 0);
  CHECK(process.command_line_size() > 0);
  CHECK_FALSE(process.host().empty());
  REQUIRE(process.ParseFromString(gpuperf::session::BuildProcessInfo(false)));
  CHECK(process.command_line_size() == 0);
  gpuperf::trace::v1::ClockSnapshot clocks;
  REQUIRE(clocks.ParseFromString(gpuperf::session::BuildClockSnapshot()));
  CHECK(clocks.boottime_ns() >= clocks.monotonic_ns());
  CHECK(clocks.realtime_ns() > clocks.monotonic_ns());
}
