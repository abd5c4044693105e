// CRC-32C (Castagnoli), as in iSCSI and ext4: the check sum of every trace chunk.
// Any thread; no state. Uses the SSE4.2 instruction where the processor has it.
#ifndef GPUPERF_BASE_CRC32C_H_
#define GPUPERF_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

namespace gpuperf::base {

// CRC of `size` bytes. Crc32c("123456789", 9) == 0xE3069283.
uint32_t Crc32c(const void* data, size_t size) noexcept;

}  // namespace gpuperf::base

#endif  // GPUPERF_BASE_CRC32C_H_
