// NVTX: what the application and its libraries say of themselves, into the calling thread's ring.
//
// Every shared library carries NVTX's client code and initialises it for itself, at its first NVTX call: each calls
// AttachNvtx once, and from then on our functions below run in that library's calls. A library whose first call came
// before NVTX_INJECTION64_PATH was set stays mute for ever.
//
// Another tool's injection may be chained: it is attached first, and our functions call what it put into the tables.
// One tool for all libraries of the process.
#ifndef GPUPERF_SOURCE_NVTX_SOURCE_H_
#define GPUPERF_SOURCE_NVTX_SOURCE_H_

#include <cstdint>

#include "source/nvtx_abi.h"

namespace gpuperf::source {

// Puts our functions into the tables of the library that asks, after `chained` (another tool's injection; nullptr:
// none) has put its own. False: that library has no such tables.
bool AttachNvtx(nvtx::GetExportTable get_export_table, bool (*chained)(nvtx::GetExportTable)) noexcept;

// Libraries that were attached.
uint32_t NvtxClients() noexcept;

}  // namespace gpuperf::source

#endif  // GPUPERF_SOURCE_NVTX_SOURCE_H_
