#!/usr/bin/env python3
"""Writes csrc/cupti/call_table.cc: what gpuperf needs to know of each CUDA API function, from the CUPTI headers.

Ids come from cupti_runtime_cbid.h and cupti_driver_cbid.h, parameter structs from the generated_*_meta.h headers;
sizes and offsets are those that the C++ compiler gives. Several header sets (CUDA 12, 13) are merged: ids are
append-only and must agree, and so must the layout of every parameter struct that two sets share; a difference is an
error.

    tools/gen_call_tables.py --headers 12.9/include --headers 13.0/include … [--output FILE | --check FILE]

A header set is one or more folders joined by ':' (CUPTI and the CUDA runtime are separate PyPI wheels).
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from call_rules import EXCLUSIONS, MUST_DECIDE, RENAMED, RULES, UNLOADS

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "csrc" / "cupti" / "call_table.cc"
DOMAINS = ("runtime", "driver")
META_HEADERS = (
    "generated_cuda_runtime_api_meta.h",
    "generated_cuda_meta.h",
    "generated_cudart_removed_meta.h",
)

# Traced functions that the CUPTI headers give no struct for: their prototypes stand in the toolkit's crt/ headers.
SUPPLEMENT = """
typedef struct __cudaLaunchKernel_v13000_params_st {
    cudaKernel_t kernel;
    dim3 gridDim;
    dim3 blockDim;
    void **args;
    size_t sharedMem;
    cudaStream_t stream;
} __cudaLaunchKernel_v13000_params;
typedef struct __cudaLaunchKernel_ptsz_v13000_params_st {
    cudaKernel_t kernel;
    dim3 gridDim;
    dim3 blockDim;
    void **args;
    size_t sharedMem;
    cudaStream_t stream;
} __cudaLaunchKernel_ptsz_v13000_params;
"""

# What cuda_runtime_api.h includes and the runtime's wheel lacks.
CRT_HOST_DEFINES = """#pragma once
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __forceinline__ inline
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __inline_hint__
#define __location__(a)
#define __annotate__(a)
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __no_sc__
#define __specialization_static
"""


class HeaderError(Exception):
    """The headers cannot be read, or disagree with each other or with the rules."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a parameter struct."""

    type: str
    offset: int
    size: int


@dataclasses.dataclass(frozen=True)
class Params:
    """A parameter struct as the compiler lays it out."""

    size: int
    fields: dict[str, Field]


@dataclasses.dataclass
class HeaderSet:
    """What one CUDA version's headers say."""

    version: str
    ids: dict[str, dict[int, str]]  # domain -> id -> name with version suffix
    params: dict[str, Params]  # name with version suffix -> struct
    config_stream: dict[str, int]  # launch configuration type -> offset of its stream


@dataclasses.dataclass
class Descriptor:
    """One row of the table; offsets as in csrc/cupti/call_table.h."""

    kind: str
    per_thread_stream: bool = False
    fixed_copy_kind: int = -1
    unloads_module: bool = False
    params_size: int = 0
    stream: int = -1
    config: int = -1
    config_stream: int = -1
    handle: int = -1
    destination: int = -1
    source: int = -1
    bytes: int = -1
    bytes_factor: int = -1
    copy_kind: int = -1
    element_bytes: int = 1
    address: int = -1
    address_out: int = -1


def display_name(cbid_name: str) -> str:
    """The API function of an id: its name without the runtime's version suffix (`_v12000`)."""
    return re.sub(r"_v\d{4,5}$", "", cbid_name)


def base_name(cbid_name: str) -> str:
    """The name that the rules speak of: without version and per-thread-stream suffixes."""
    name = display_name(cbid_name)
    name = re.sub(r"_pt[sd][zs]$", "", name)
    return re.sub(r"_v\d$", "", name)


def per_thread_stream(cbid_name: str) -> bool:
    """Whether the id is of a function's per-thread-default-stream form."""
    return re.search(r"_pt(sz|ds)$", display_name(cbid_name)) is not None


def is_placeholder(cbid_name: str) -> bool:
    """Whether the headers give an id no function ("cuda531", "INVALID")."""
    return re.fullmatch(r"cuda\d+|INVALID", cbid_name) is not None


def kind_of(cbid_name: str) -> str | None:
    """The kind of call, or None if the function is not traced."""
    if is_placeholder(cbid_name):
        return None
    name = base_name(cbid_name)
    if name in EXCLUSIONS:
        return None
    stem = re.sub(r"^(__)?cu(da)?", "", name)
    return next((kind for kind, pattern in RULES if re.fullmatch(pattern, stem)), None)


def undecided(names: list[str]) -> list[str]:
    """Names that must be traced or excluded and are neither."""
    return [
        n
        for n in names
        if not is_placeholder(n) and MUST_DECIDE.search(n) and kind_of(n) is None and base_name(n) not in EXCLUSIONS
    ]


def read_ids(header: pathlib.Path) -> dict[int, str]:
    """The callback ids of a header: id -> name with version suffix."""
    found = re.findall(r"CUPTI_(?:RUNTIME|DRIVER)_TRACE_CBID_(\w+)\s*=\s*(\d+)\s*,", header.read_text())
    if not found:
        raise HeaderError(f"{header}: no callback ids found")
    return {int(number): name for name, number in found if name != "SIZE"}


def find_header(folders: list[pathlib.Path], name: str) -> pathlib.Path:
    """The first folder's file of that name."""
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise HeaderError(f"{name} is in none of: {', '.join(map(str, folders))}")


def parse_structs(text: str) -> dict[str, list[tuple[str, str]]]:
    """Parameter structs in a meta header: name without `_params` -> [(type, field)]."""
    structs = {}
    for name, body in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\} \w+_params;", text, re.DOTALL):
        lines = (re.sub(r"\b__dv\b", "", line).strip() for line in body.split(";"))
        matches = (re.fullmatch(r"(.*?[\s*])(\w+)", line, re.DOTALL) for line in lines if line)
        structs[name] = [(" ".join(m.group(1).split()), m.group(2)) for m in matches if m]
    return structs


def lay_out(
    folders: list[pathlib.Path], structs: dict[str, list[tuple[str, str]]]
) -> tuple[dict[str, Params], dict[str, int]]:
    """Compiles a program that prints size and offsets of every struct, and runs it."""
    source = [
        "#include <cstddef>",
        "#include <cstdio>",
        "#define __CUDA_API_VERSION_INTERNAL",
        '#include "cuda.h"',
        '#include "cuda_runtime_api.h"',
    ]
    body = []
    for name, fields in structs.items():
        source.append(f"struct {name}_params {{ {' '.join(f'{kind} {field};' for kind, field in fields)} }};")
        body.append(f'printf("S {name} %zu\\n", sizeof({name}_params));')
        body += [
            f'printf("F {field} %zu %zu\\n", offsetof({name}_params, {field}), sizeof({name}_params::{field}));'
            for _, field in fields
        ]
    source += [
        "int main() {",
        *body,
        'printf("C cudaLaunchConfig_t %zu\\n", offsetof(cudaLaunchConfig_t, stream));',
        'printf("C CUlaunchConfig %zu\\n", offsetof(CUlaunchConfig, hStream));',
        "}",
        "",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "layout.cc").write_text("\n".join(source))
        (folder / "crt").mkdir()
        (folder / "crt" / "host_defines.h").write_text(CRT_HOST_DEFINES)
        program = str(folder / "layout")
        includes = [f"-I{path}" for path in [*folders, folder]]
        compiler = os.environ.get("CXX", "g++")
        for command in ([compiler, "-std=c++17", "-w", "-O0", *includes, "-o", program, f"{program}.cc"], [program]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise HeaderError(f"{command[0]} failed on the headers in {folders[0]}:\n{done.stderr[:4000]}")
    params: dict[str, Params] = {}
    configs: dict[str, int] = {}
    types = {name: {field: kind for kind, field in fields} for name, fields in structs.items()}
    current = ""
    for line in done.stdout.splitlines():
        tag, name, *numbers = line.split()
        if tag == "S":
            current = name
            params[name] = Params(int(numbers[0]), {})
        elif tag == "F":
            params[current].fields[name] = Field(types[current][name], int(numbers[0]), int(numbers[1]))
        else:
            configs[name] = int(numbers[0])
    return params, configs


def cuda_version(folders: list[pathlib.Path]) -> str:
    """The version that cuda.h states."""
    match = re.search(r"#define CUDA_VERSION (\d+)", find_header(folders, "cuda.h").read_text())
    if not match:
        raise HeaderError(f"{folders[0]}: cuda.h states no version")
    return f"{int(match.group(1)) // 1000}.{int(match.group(1)) % 1000 // 10}"


def read_headers(folders: list[pathlib.Path]) -> HeaderSet:
    """Reads one header set."""
    ids = {domain: read_ids(find_header(folders, f"cupti_{domain}_cbid.h")) for domain in DOMAINS}
    wanted = {name for names in ids.values() for name in names.values() if kind_of(name)}
    structs: dict[str, list[tuple[str, str]]] = {}
    for meta in META_HEADERS:
        if any((folder / meta).is_file() for folder in folders):
            structs.update(parse_structs(find_header(folders, meta).read_text()))
    structs.update(parse_structs(SUPPLEMENT))
    params, configs = lay_out(folders, {name: fields for name, fields in structs.items() if name in wanted})
    return HeaderSet(cuda_version(folders), ids, params, configs)


def comparable(cbid_name: str) -> str:
    """A name as far as versions of the headers agree on it: 13.x renamed cudaMemAdvise_v2_v12020 to _v12020."""
    return re.sub(r"_v\d(?=_|$)", "", display_name(cbid_name))


def merge_ids(sets: list[HeaderSet], domain: str) -> dict[int, str]:
    """All ids of a domain, named by the newest headers that know the function."""
    merged: dict[int, str] = {}
    for headers in sets:
        for number, name in headers.ids[domain].items():
            known = merged.get(number)
            if known is not None and not is_placeholder(known):
                if is_placeholder(name):
                    continue
                if comparable(known) != comparable(name) and (known, name) not in RENAMED:
                    raise HeaderError(f"{domain} id {number} is {known} before CUDA {headers.version} and {name} in it")
            merged[number] = name
    missing = sorted(set(range(max(merged) + 1)) - set(merged))
    if missing:
        raise HeaderError(f"{domain} ids {missing} are in none of the headers")
    return merged


def find_params(sets: list[HeaderSet], domain: str, number: int) -> tuple[Params | None, dict[str, int]]:
    """The parameter struct of an id; every header set that has it must lay it out alike."""
    found: Params | None = None
    configs: dict[str, int] = {}
    for headers in sets:
        params = headers.params.get(headers.ids[domain].get(number, ""))
        if params is None:
            continue
        layout = [(f.offset, f.size) for f in params.fields.values()]
        if found is not None and [(f.offset, f.size) for f in found.fields.values()] != layout:
            raise HeaderError(f"CUDA {headers.version} lays out {headers.ids[domain][number]} differently")
        found, configs = params, headers.config_stream
    return found, configs


POINTER = re.compile(r"(const )?void \*|CUdeviceptr")


def describe(name: str, params: Params | None, configs: dict[str, int]) -> Descriptor | None:
    """The row of one function; None if it is not traced."""
    kind = kind_of(name)
    if kind is None:
        return None
    base = base_name(name)
    row = Descriptor(
        kind, per_thread_stream=per_thread_stream(name), unloads_module=UNLOADS.fullmatch(base) is not None
    )
    if kind == "Copy":
        for pattern, value in (("HtoD|HtoA", 1), ("DtoH|AtoH", 2), ("DtoD|DtoA|AtoD|AtoA|Peer", 3)):
            if re.search(pattern, base):
                row.fixed_copy_kind = value
    if params is None:
        return row
    row.params_size = params.size
    fields = params.fields

    def at(names: str, types: str | None = None, size: int = 8) -> int:
        for field in names.split():
            found = fields.get(field)
            if found and found.size == size and (types is None or re.fullmatch(types, found.type)):
                return found.offset
        return -1

    row.stream = at("stream hStream", r"cudaStream_t|CUstream")
    if "config" in fields:
        row.config = fields["config"].offset
        row.config_stream = configs[re.sub(r"const | ?\*", "", fields["config"].type)]
    if kind == "Launch":
        row.handle = at("func f kernel")
    elif kind == "GraphLaunch":
        row.handle = at("graphExec hGraphExec hGraph")
    elif kind in ("EventRecord", "EventWait") or "EventSynchronize" in base:
        row.handle = at("event hEvent")

    several = any(f in fields for f in ("sizes", "numOps"))  # batches: arrays of addresses and sizes
    area = at("width WidthInBytes Width", "size_t"), at("height Height", "size_t")
    if kind in ("Copy", "Memset") and not several:
        row.destination = at("dst dstHost dstDevice devPtr", POINTER.pattern)
        row.source = at("src srcHost srcDevice", POINTER.pattern)
        if "pitchedDevPtr" in fields and "*" not in fields["pitchedDevPtr"].type:
            row.destination = fields["pitchedDevPtr"].offset  # by value; its first field is the address
        row.bytes = at("count ByteCount N size", "size_t")
        if row.bytes < 0 and -1 not in area:
            row.bytes, row.bytes_factor = area
        row.copy_kind = at("kind", "enum cudaMemcpyKind", 4)
        if kind == "Memset" and (width := re.search(r"D2?D?(8|16|32)(Async)?$", base)):
            row.element_bytes = int(width.group(1)) // 8
    elif kind == "Allocate" and "Array" not in base and "MemCreate" not in base:
        row.bytes = at("size bytesize", "size_t")
        if row.bytes < 0 and -1 not in area:
            row.bytes, row.bytes_factor = area
        outs = r"void \*\*|CUdeviceptr \*|struct cudaPitchedPtr \*"  # the last one begins with the address
        row.address_out = at("devPtr ptr pHost dptr pp pitchedDevPtr", outs)
    elif base == "cuMemCreate":
        row.bytes = at("size", "size_t")
    elif kind == "Free":
        row.address = at("devPtr ptr dptr p", POINTER.pattern)
    elif kind == "Memory" and not several:
        row.address = at("devPtr ptr dptr p", POINTER.pattern)
        row.address_out = at("devPtr ptr pdptr", r"void \*\*|CUdeviceptr \*")
        row.bytes = at("size bytesize count length", "size_t")
    return row


def cpp_row(row: Descriptor | None) -> str:
    """A row as a C++ initializer."""
    if row is None:
        return "{}"
    values: list[str] = []
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if field.name == "kind":
            values.append(f"K::k{value}")
        elif isinstance(value, bool):
            values.append("true" if value else "false")
        else:
            values.append(str(value))
    return "{" + ", ".join(values) + "}"


def generate(sets: list[HeaderSet]) -> str:
    """The text of call_table.cc."""
    tables, names = [], []
    for domain, title in (("runtime", "Runtime"), ("driver", "Driver")):
        ids = merge_ids(sets, domain)
        left = undecided(list(ids.values()))
        if left:
            raise HeaderError("neither traced nor excluded (tools/call_rules.py): " + ", ".join(left))
        rows, labels = [], []
        for number, name in sorted(ids.items()):
            row = describe(name, *find_params(sets, domain, number))
            if row is not None:
                rows.append(f"    /* {number} {display_name(name)} */ {cpp_row(row)},")
            else:
                rows.append(f"    /* {number} {display_name(name)} */ {{}},")
            labels.append("    nullptr," if is_placeholder(name) else f'    "{display_name(name)}",')
        tables.append(
            "\n".join(
                [
                    f"const CallDescriptor k{title}Calls[] = {{",
                    *rows,
                    "};",
                    f"const size_t k{title}CallCount = std::size(k{title}Calls);",
                ]
            )
        )
        names.append("\n".join([f"const char* const k{title}Names[] = {{", *labels, "};"]))
    versions = ", ".join(headers.version for headers in sets)
    fields = ", ".join(field.name for field in dataclasses.fields(Descriptor))
    columns = textwrap.fill(fields, 116, initial_indent="//   ", subsequent_indent="//   ")
    return f"""// Made by tools/gen_call_tables.py from the CUPTI headers of CUDA {versions}: do not edit.
//
// Rules and exclusions stand in tools/call_rules.py. Columns:
{columns}
// clang-format off
#include "cupti/call_table.h"

#include <iterator>

namespace gpuperf::cupti {{
namespace {{

using K = CallKind;

{names[0]}

{names[1]}

}}  // namespace

{tables[0]}

{tables[1]}

static_assert(std::size(kRuntimeNames) == std::size(kRuntimeCalls));
static_assert(std::size(kDriverNames) == std::size(kDriverCalls));

const char* CallName(uint32_t domain, uint32_t cbid) {{
  if (domain == kRuntimeDomain) return cbid < std::size(kRuntimeNames) ? kRuntimeNames[cbid] : nullptr;
  if (domain == kDriverDomain) return cbid < std::size(kDriverNames) ? kDriverNames[cbid] : nullptr;
  return nullptr;
}}

}}  // namespace gpuperf::cupti
"""


def toolkit_include() -> pathlib.Path | None:
    """The include folder of the installed CUDA toolkit, if there is one."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    roots += [str(pathlib.Path(nvcc).resolve().parents[1])] if nvcc else []
    roots += ["/usr/local/cuda"]
    for root in filter(None, roots):
        for include in (pathlib.Path(root) / "include", pathlib.Path(root) / "extras" / "CUPTI" / "include"):
            if (include / "cupti_runtime_cbid.h").is_file():
                return include
    return None


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--headers",
        action="append",
        default=[],
        metavar="DIR[:DIR…]",
        help="a header set; repeat for more versions, oldest first (default: the installed toolkit)",
    )
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT, help="file to write (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file would change")
    args = parser.parse_args()
    if not args.headers:
        include = toolkit_include()
        if include is None:
            parser.error("no CUDA toolkit with CUPTI headers found; name header folders with --headers")
        args.headers = [str(include)]
    try:
        sets = [read_headers([pathlib.Path(p) for p in headers.split(":")]) for headers in args.headers]
        text = generate(sets)
    except (HeaderError, OSError) as error:
        print(f"gen_call_tables: {error}", file=sys.stderr)
        return 3
    if args.check:
        if args.output.read_text() != text:
            print(f"gen_call_tables: {args.output} is not what these headers give; regenerate it", file=sys.stderr)
            return 5
        return 0
    args.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
