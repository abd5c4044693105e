// Launches an empty kernel for ever, until something kills it: `endless_loop PROGRESS`.
//
// PROGRESS is mapped shared, so it holds what was launched even after kill -9:
//   0   u64  launches done
//   8   u64  pid (0 until the first launch)
//   16  u64  stamps[1 << 23]: CLOCK_MONOTONIC ns when launch i had returned, at i modulo the length
// Launch i has a grid of 1 + i % 1009 blocks, so that order and completeness can be read from the device side alone.
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr uint64_t kStamps = uint64_t{1} << 23;

__global__ void Tick() {}

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  constexpr size_t kSize = (kStamps + 2) * sizeof(uint64_t);
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, kSize) != 0) {
    std::perror(argv[1]);
    return 2;
  }
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 2;
  auto* words = static_cast<volatile uint64_t*>(memory);
  cudaStream_t stream;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 3;
  for (uint64_t i = 0;; ++i) {
    Tick<<<static_cast<unsigned>(1 + i % 1009), 32, 0, stream>>>();
    words[2 + i % kStamps] = Now();
    __atomic_store_n(&words[0], i + 1, __ATOMIC_RELEASE);
    if (i == 0) words[1] = static_cast<uint64_t>(getpid());
    if (i % 512 == 511 && cudaStreamSynchronize(stream) != cudaSuccess) return 3;
  }
}
