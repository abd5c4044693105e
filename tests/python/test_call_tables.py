"""Holds the call table (csrc/cupti/call_table.cc) and its rules against the CUPTI headers of CUDA 12 and 13."""

import pathlib
import re
import sys

import cuda_wheels
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "csrc" / "cupti" / "call_table.cc"
sys.path.insert(0, str(ROOT / "tools"))

import call_rules  # noqa: E402
import gen_call_tables  # noqa: E402


@pytest.fixture(scope="module")
def toolkit() -> gen_call_tables.HeaderSet:
    """The installed toolkit's headers."""
    include = gen_call_tables.toolkit_include()
    if include is None:
        pytest.skip("no CUDA toolkit with CUPTI headers is installed")
    return gen_call_tables.read_headers([include])


def names(headers: gen_call_tables.HeaderSet) -> list[str]:
    """All callback names of a header set."""
    return [name for domain in gen_call_tables.DOMAINS for name in headers.ids[domain].values()]


def check_against_table(headers: gen_call_tables.HeaderSet) -> None:
    """Every id of the headers stands in the committed table as the rules say."""
    assert gen_call_tables.undecided(names(headers)) == []
    text = TABLE.read_text()
    sections = {
        "runtime": text.split("kRuntimeCalls[]")[1].split("};")[0],
        "driver": text.split("kDriverCalls[]")[1].split("};")[0],
    }
    for domain, section in sections.items():
        rows = {
            int(number): (name, kind)
            for number, name, kind in re.findall(r"/\* (\d+) (\w+) \*/ \{(?:K::k(\w+))?", section)
        }
        for number, name in headers.ids[domain].items():
            name = dict(call_rules.RENAMED).get(name, name)
            kind = gen_call_tables.kind_of(name)
            if kind is None and gen_call_tables.is_placeholder(name):
                continue
            assert rows[number][1] == (kind or ""), f"{domain} id {number} {name}"


def test_every_id_of_the_toolkit_is_traced_or_excluded(toolkit: gen_call_tables.HeaderSet) -> None:
    check_against_table(toolkit)


@pytest.mark.parametrize("version", ["12.9", "13.5"])
def test_every_id_of_other_versions_is_traced_or_excluded(version: str) -> None:
    check_against_table(gen_call_tables.read_headers(cuda_wheels.headers(version)))


def test_the_table_is_what_the_generator_makes() -> None:
    made_of = re.search(r"CUPTI headers of CUDA ([\d., ]+):", TABLE.read_text())
    assert made_of
    sets = [gen_call_tables.read_headers(cuda_wheels.headers(version)) for version in made_of.group(1).split(", ")]
    assert gen_call_tables.generate(sets) == TABLE.read_text()


def test_every_exclusion_has_a_reason_and_is_needed() -> None:
    text = TABLE.read_text()
    for name, reason in call_rules.EXCLUSIONS.items():
        assert len(reason) > 20, name
        assert call_rules.MUST_DECIDE.search(name), f"{name} needs no exclusion"
        assert not re.search(rf"/\* \d+ {name}(_v\d)?(_pt[sd][sz])? \*/ \{{K::", text), f"{name} is traced all the same"


@pytest.mark.parametrize(
    "name",
    [
        "cudaLaunchKernel_v7000",
        "cudaLaunchKernel_ptsz_v7000",
        "cudaLaunchKernelExC_v11060",
        "cudaGraphLaunch_v10000",
        "cudaLaunchCooperativeKernelMultiDevice_v9000",
        "__cudaLaunchKernel_v13000",
        "cuLaunchKernelEx_ptsz",
        "cuLaunchGrid",
        "cudaMemcpyBatchAsync_v12080",
        "cudaMemcpy3DPeerAsync_ptsz_v7000",
        "cuMemcpyDtoDAsync_v2_ptsz",
        "cuMemsetD2D32Async",
        "cudaMemPrefetchAsync_v12020",
        "cuStreamWaitValue32_v2",
        "cuStreamBatchMemOp_v2_ptsz",
        "cuMemBatchDecompressAsync",
        "cudaSignalExternalSemaphoresAsync_v11020",
        "cudaStreamAttachMemAsync_v6000",
        "cuMemMapArrayAsync",
        "cuStreamAddCallback",
        "cudaGraphicsMapResources_v3020",
        "cudaDeviceReset_v3020",
        "cuCtxDestroy_v2",
        "cuDevicePrimaryCtxReset_v2",
        "cudaMemcpyWithAttributesAsync_v13020",
        "cuLaunchHostFunc_v2",
        "cudaExecutionCtxSynchronize_v13010",
    ],
)
def test_what_can_put_work_on_a_device_is_traced(name: str) -> None:
    assert gen_call_tables.kind_of(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "cudaGetDevice_v3020",
        "cudaGetLastError_v3020",
        "cudaPeekAtLastError_v3020",
        "cudaStreamIsCapturing_v10000",
        "cudaEventQuery_v3020",
        "cudaStreamQuery_v3020",
        "cudaPointerGetAttributes_v4000",
        "cudaEventCreateWithFlags_v3020",
        "cudaEventDestroy_v3020",
        "cudaFuncGetAttributes_v3020",
        "cudaSetDevice_v3020",
        "cuCtxGetCurrent",
        "cuEventQuery",
        "cudaStreamGetCaptureInfo_v2_v11030",
        "cudaThreadExchangeStreamCaptureMode_v10010",
        "cuTensorMapEncodeTiled",
    ],
)
def test_noise_is_not_traced(name: str) -> None:
    assert gen_call_tables.kind_of(name) is None


def test_headers_that_disagree_are_refused() -> None:
    def headers(version: str, name: str) -> gen_call_tables.HeaderSet:
        ids = {"runtime": {0: "INVALID", 1: name}, "driver": {0: "INVALID"}}
        return gen_call_tables.HeaderSet(version, ids, {}, {})

    old, new = headers("1.0", "cudaMalloc_v3020"), headers("2.0", "cudaFree_v3020")
    with pytest.raises(gen_call_tables.HeaderError, match="id 1 is cudaMalloc"):
        gen_call_tables.merge_ids([old, new], "runtime")
    unknown = headers("3.0", "cudaLaunchRocket_v99000")
    with pytest.raises(gen_call_tables.HeaderError, match=r"neither traced nor excluded.*cudaLaunchRocket"):
        gen_call_tables.generate([unknown])
