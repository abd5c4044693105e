// Eight threads with two streams each launch kernels, copy, set memory, record and wait for events and synchronize in a
// pseudo-random order, and keep their own log of it: `launch_threads LOG [operations per thread]`.
#include <cooperative_groups.h>

#include <atomic>
#include <memory>
#include <thread>

#include "call_log.h"

namespace {

constexpr int kThreads = 8;
constexpr int kStreams = 2;
constexpr size_t kBytes = 1 << 16;

__global__ void Empty() {}
__global__ void Fill(float* out, float value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
template <typename T, int kScale>
__global__ void Scale(T* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] *= T(kScale);
}
__global__ void Cooperative(float* out) {
  cooperative_groups::this_grid().sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

std::string Symbol(const void* function) {
  const char* name = nullptr;
  CHECK_CUDA(cudaFuncGetName(&name, function));
  return name;
}

struct Symbols {
  std::string empty = Symbol(reinterpret_cast<const void*>(&Empty));
  std::string fill = Symbol(reinterpret_cast<const void*>(&Fill));
  std::string scale_int = Symbol(reinterpret_cast<const void*>(&Scale<int, 3>));
  std::string scale_double = Symbol(reinterpret_cast<const void*>(&Scale<double, 2>));
  std::string cooperative = Symbol(reinterpret_cast<const void*>(&Cooperative));
};

void Work(int index, int operations, const Symbols& symbols, std::atomic<int>* ready, std::unique_ptr<Log>* result) {
  result->reset(new Log);
  Log& log = **result;
  cudaStream_t streams[kStreams];
  cudaEvent_t event;
  void* host;
  char* device;
  for (cudaStream_t& stream : streams) CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaHostAlloc(&host, kBytes, cudaHostAllocDefault));
  CHECK_CUDA(cudaMalloc(&device, 4 * kBytes));
  ready->fetch_add(1);
  while (ready->load() < kThreads) std::this_thread::yield();

  uint64_t random = 88172645463325252ull + static_cast<uint64_t>(index) * 7919;
  for (int i = 0; i < operations; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    cudaStream_t stream = streams[random >> 8 & 1];
    const unsigned blocks = 1 + (random >> 16) % 64;
    const size_t bytes = 64 * (1 + (random >> 24) % 512);
    auto* floats = reinterpret_cast<float*>(device);
    Call call;
    call.stream = stream;
    switch (random % 16) {
      case 0:
      case 1:
        Empty<<<blocks, 32, 0, stream>>>();
        call.api = "cudaLaunchKernel", call.symbol = symbols.empty, call.device_work = "kernel";
        break;
      case 2:
      case 3:
        Fill<<<blocks, 64, 0, stream>>>(floats, 1.f);
        call.api = "cudaLaunchKernel", call.symbol = symbols.fill, call.device_work = "kernel";
        break;
      case 4:
        Scale<int, 3><<<blocks, 64, 256, stream>>>(reinterpret_cast<int*>(device));
        call.api = "cudaLaunchKernel", call.symbol = symbols.scale_int, call.device_work = "kernel";
        break;
      case 5: {
        cudaLaunchConfig_t config{};
        config.gridDim = blocks, config.blockDim = 64, config.stream = stream;
        call.result = cudaLaunchKernelEx(&config, Scale<double, 2>, reinterpret_cast<double*>(device));
        call.api = "cudaLaunchKernelExC", call.symbol = symbols.scale_double, call.device_work = "kernel";
        break;
      }
      case 6: {
        void* arguments[] = {&floats};
        call.result = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&Cooperative), dim3(blocks), dim3(32),
                                                  arguments, 0, stream);
        call.api = "cudaLaunchCooperativeKernel", call.symbol = symbols.cooperative, call.device_work = "kernel";
        break;
      }
      case 7:
        call.result = cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream);
        call.api = "cudaMemcpyAsync", call.destination = device, call.source = host, call.bytes = bytes;
        call.device_work = "copy";
        break;
      case 8:
        call.result = cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream);
        call.api = "cudaMemcpyAsync", call.destination = host, call.source = device, call.bytes = bytes;
        call.device_work = "copy";
        break;
      case 9:
        call.result = cudaMemcpyAsync(device + 2 * kBytes, device, bytes, cudaMemcpyDefault, stream);
        call.api = "cudaMemcpyAsync", call.destination = device + 2 * kBytes, call.source = device, call.bytes = bytes;
        call.device_work = "copy";
        break;
      case 10:
        call.result = cudaMemsetAsync(device, static_cast<int>(i & 0xff), bytes, stream);
        call.api = "cudaMemsetAsync", call.destination = device, call.bytes = bytes, call.device_work = "memset";
        break;
      case 11:
        call.result = cudaEventRecord(event, stream);
        call.api = "cudaEventRecord", call.event = event;
        break;
      case 12:
        call.result = cudaStreamWaitEvent(streams[~random >> 8 & 1], event, 0);
        call.api = "cudaStreamWaitEvent", call.event = event, call.stream = streams[~random >> 8 & 1];
        break;
      case 13:
        call.result = cudaStreamSynchronize(stream);
        call.api = "cudaStreamSynchronize";
        break;
      case 14: {  // a call that fails: the trace must hold its result code
        call.result = cudaMemcpyAsync(device, host, bytes, static_cast<cudaMemcpyKind>(77), stream);
        call.api = "cudaMemcpyAsync", call.destination = device, call.source = host, call.bytes = bytes;
        cudaGetLastError();
        if (call.result == 0) std::exit(4);
        break;
      }
      default: {
        void* memory = nullptr;
        call.result = cudaMallocAsync(&memory, bytes, stream);
        call.api = "cudaMallocAsync", call.destination = memory, call.bytes = bytes;
        log.Add(call);
        call = {};
        call.stream = stream;
        call.result = cudaFreeAsync(memory, stream);
        call.api = "cudaFreeAsync", call.destination = memory;
        break;
      }
    }
    if (!call.symbol.empty()) call.grid = blocks;
    log.Add(call);
  }
  for (cudaStream_t stream : streams) {
    Call call;
    call.api = "cudaStreamSynchronize", call.stream = stream, call.result = cudaStreamSynchronize(stream);
    log.Add(call);
  }
  CHECK_CUDA(cudaGetLastError());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s LOG [operations per thread]\n", argv[0]);
    return 2;
  }
  const int operations = argc > 2 ? std::atoi(argv[2]) : 1500;
  FILE* file = OpenLog(argv[1]);
  CHECK_CUDA(cudaFree(nullptr));
  const Symbols symbols;
  std::atomic<int> ready{0};
  std::unique_ptr<Log> logs[kThreads];
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(Work, i, operations, std::cref(symbols), &ready, &logs[i]);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_CUDA(cudaDeviceSynchronize());
  for (const auto& log : logs) log->Write(file);
  return std::fclose(file);
}
