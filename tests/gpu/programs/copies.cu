// Copies and memory sets of every form of the runtime API, once each, with known bytes: `copies LOG`.
// With two devices that reach each other also copies between them.
#include "call_log.h"

namespace {

constexpr size_t kWidth = 512, kHeight = 24, kDepth = 4, kPitch = 1024;
constexpr size_t kBytes = 1 << 18;  // more than a box takes, and than any copy below
__device__ char symbol_memory[4096];

Log* g_log;
cudaStream_t g_stream;

void Add(const char* api, const char* work, size_t bytes, cudaStream_t stream, cudaError_t result,
         const void* destination = nullptr, const void* source = nullptr) {
  if (result != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", api, cudaGetErrorString(result));
    std::exit(3);
  }
  Call call;
  call.api = api, call.device_work = work, call.bytes = bytes, call.stream = stream;
  call.destination = destination, call.source = source;
  g_log->Add(call);
}

cudaMemcpy3DParms Box(void* destination, void* source, cudaMemcpyKind kind) {
  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(source, kPitch, kWidth, kHeight);
  box.dstPtr = make_cudaPitchedPtr(destination, kPitch, kWidth, kHeight);
  box.extent = make_cudaExtent(kWidth, kHeight, kDepth);
  box.kind = kind;
  return box;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  FILE* file = OpenLog(argv[1]);
  Log log;
  g_log = &log;
  char *a, *b, *pinned;
  CHECK_CUDA(cudaMalloc(&a, kBytes));
  CHECK_CUDA(cudaMalloc(&b, kBytes));
  CHECK_CUDA(cudaHostAlloc(&pinned, kBytes, cudaHostAllocDefault));
  std::vector<char> pageable(kBytes, 1);
  CHECK_CUDA(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking));
  const cudaStream_t s = g_stream;
  constexpr auto kToDevice = cudaMemcpyHostToDevice;
  constexpr auto kToHost = cudaMemcpyDeviceToHost;
  constexpr auto kOnDevice = cudaMemcpyDeviceToDevice;

  Add("cudaMemcpy", "copy", 100003, nullptr, cudaMemcpy(a, pageable.data(), 100003, kToDevice), a, pageable.data());
  Add("cudaMemcpy", "copy", 70001, nullptr, cudaMemcpy(pinned, a, 70001, kToHost), pinned, a);
  Add("cudaMemcpy", "copy", 4096, nullptr, cudaMemcpy(b, a, 4096, kOnDevice), b, a);
  Add("cudaMemcpy", "copy", 5000, nullptr, cudaMemcpy(b, pinned, 5000, cudaMemcpyDefault), b, pinned);
  Add("cudaMemcpyAsync", "copy", 12345, s, cudaMemcpyAsync(a, pinned, 12345, kToDevice, s), a, pinned);
  Add("cudaMemcpyAsync", "copy", 54321, s, cudaMemcpyAsync(pinned, a, 54321, kToHost, s), pinned, a);
  Add("cudaMemcpyAsync", "copy", 9999, s, cudaMemcpyAsync(b, a, 9999, kOnDevice, s), b, a);
  constexpr size_t kPlane = kWidth * kHeight;
  Add("cudaMemcpy2D", "copy", kPlane, nullptr, cudaMemcpy2D(a, kPitch, pinned, kPitch, kWidth, kHeight, kToDevice), a,
      pinned);
  Add("cudaMemcpy2DAsync", "copy", kPlane, s, cudaMemcpy2DAsync(pinned, kPitch, a, kPitch, kWidth, kHeight, kToHost, s),
      pinned, a);
  Add("cudaMemcpy2DAsync", "copy", kPlane, s, cudaMemcpy2DAsync(b, kPitch, a, kPitch, kWidth, kHeight, kOnDevice, s), b,
      a);
  cudaMemcpy3DParms box = Box(a, pinned, kToDevice);
  Add("cudaMemcpy3D", "copy", kPlane * kDepth, nullptr, cudaMemcpy3D(&box));
  box = Box(pinned, a, kToHost);
  Add("cudaMemcpy3DAsync", "copy", kPlane * kDepth, s, cudaMemcpy3DAsync(&box, s));
  Add("cudaMemcpyToSymbol", "copy", 777, nullptr, cudaMemcpyToSymbol(symbol_memory, pinned, 777, 16));
  Add("cudaMemcpyFromSymbol", "copy", 888, nullptr, cudaMemcpyFromSymbol(pinned, symbol_memory, 888, 8));
  Add("cudaMemcpyToSymbolAsync", "copy", 999, s, cudaMemcpyToSymbolAsync(symbol_memory, pinned, 999, 0, kToDevice, s));
  Add("cudaMemcpyFromSymbolAsync", "copy", 666, s,
      cudaMemcpyFromSymbolAsync(pinned, symbol_memory, 666, 0, kToHost, s));

  cudaArray_t array, second;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<char>();
  CHECK_CUDA(cudaMallocArray(&array, &format, kWidth, kHeight));
  CHECK_CUDA(cudaMallocArray(&second, &format, kWidth, kHeight));
  Add("cudaMemcpy2DToArray", "copy", kPlane, nullptr,
      cudaMemcpy2DToArray(array, 0, 0, pinned, kPitch, kWidth, kHeight, kToDevice));
  Add("cudaMemcpy2DToArrayAsync", "copy", kPlane, s,
      cudaMemcpy2DToArrayAsync(array, 0, 0, pinned, kPitch, kWidth, kHeight, kToDevice, s));
  Add("cudaMemcpy2DArrayToArray", "copy", kPlane, nullptr,
      cudaMemcpy2DArrayToArray(second, 0, 0, array, 0, 0, kWidth, kHeight, kOnDevice));
  Add("cudaMemcpy2DFromArray", "copy", kPlane, nullptr,
      cudaMemcpy2DFromArray(pinned, kPitch, array, 0, 0, kWidth, kHeight, kToHost));
  Add("cudaMemcpy2DFromArrayAsync", "copy", kPlane, s,
      cudaMemcpy2DFromArrayAsync(pinned, kPitch, array, 0, 0, kWidth, kHeight, kToHost, s));

#if CUDART_VERSION >= 13000
  CHECK_CUDA(cudaStreamSynchronize(s));
  void* destinations[] = {a, a + 65536, a + 131072 - 65536 + 4096};
  const void* sources[] = {pinned, pinned + 65536, pinned + 4096};
  size_t sizes[] = {3000, 2000, 1000};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t attribute_index = 0;
  Add("cudaMemcpyBatchAsync", "copy", 6000, s,
      cudaMemcpyBatchAsync(destinations, sources, sizes, 3, &attributes, &attribute_index, 1, s));
#endif

  Add("cudaMemset", "memset", 30000, nullptr, cudaMemset(a, 1, 30000), a);
  Add("cudaMemsetAsync", "memset", 40000, s, cudaMemsetAsync(a, 2, 40000, s), a);
  Add("cudaMemset2D", "memset", kPlane, nullptr, cudaMemset2D(a, kPitch, 3, kWidth, kHeight), a);
  Add("cudaMemset2DAsync", "memset", kPlane, s, cudaMemset2DAsync(a, kPitch, 4, kWidth, kHeight, s), a);
  const cudaPitchedPtr pitched = make_cudaPitchedPtr(a, kPitch, kWidth, kHeight);
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, kDepth);
  Add("cudaMemset3D", "memset", kPlane * kDepth, nullptr, cudaMemset3D(pitched, 5, extent));
  Add("cudaMemset3DAsync", "memset", kPlane * kDepth, s, cudaMemset3DAsync(pitched, 6, extent, s));

  int devices = 0, reach = 0;
  CHECK_CUDA(cudaGetDeviceCount(&devices));
  if (devices > 1) CHECK_CUDA(cudaDeviceCanAccessPeer(&reach, 0, 1));
  if (reach != 0) {
    char* far;
    CHECK_CUDA(cudaSetDevice(1));
    CHECK_CUDA(cudaMalloc(&far, kBytes));
    CHECK_CUDA(cudaDeviceEnablePeerAccess(0, 0));
    CHECK_CUDA(cudaSetDevice(0));
    CHECK_CUDA(cudaDeviceEnablePeerAccess(1, 0));
    Add("cudaMemcpyPeer", "copy", 20001, nullptr, cudaMemcpyPeer(far, 1, a, 0, 20001), far, a);
    Add("cudaMemcpyPeerAsync", "copy", 20002, s, cudaMemcpyPeerAsync(far, 1, a, 0, 20002, s), far, a);
    Add("cudaMemcpyAsync", "copy", 20003, s, cudaMemcpyAsync(far, a, 20003, cudaMemcpyDefault, s), far, a);
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  log.Write(file);
  return std::fclose(file);
}
