#!/usr/bin/env python3
"""Writes tests/data/golden/format1.*: see the README there. Needs gpuperf installed, protoc and protobuf."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import trace_builder
from gpuperf import report

FOLDER = Path(__file__).resolve().parents[1] / "data" / "golden"
HOST = 5_000_000_000
DEVICE = 1_796_000_000_000_000_000


def header(pb: Any) -> Any:
    return pb.metadata.FileHeader(
        format_version=1,
        trace_uuid=bytes(range(16)),
        producer="gpuperf 0.1.0",
        start={"monotonic_ns": HOST, "realtime_ns": DEVICE, "boottime_ns": HOST + 7},
        process={
            "pid": 4711,
            "parent_pid": 4242,
            "host": "node1",
            "command_line": ["python", "train.py", '--name="é"'],
            "executable": "/usr/bin/python3.12",
        },
    )


def dictionaries(body: Any) -> None:
    names = [
        "_Z3addPf",
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaStreamSynchronize",
        "cudaGraphLaunch",
        "cudaMalloc",
    ]
    names += ["cudaEventRecord", "main", "forward", "loss", 'odd "name"\n\udcff']
    for iid, name in enumerate(names, 1):
        body.strings.add(iid=iid, value=name.encode("utf-8", "surrogateescape"))
    body.threads.add(iid=1, tid=4711, name_iid=8)
    body.threads.add(iid=2, tid=4712)
    body.streams.add(iid=1, device=0, context=1, stream=7, channel=3, channel_type=1)
    body.streams.add(iid=2, device=1, context=2, stream=20, priority=-1)
    body.kernels.add(
        iid=1, name_iid=1, grid_x=8, grid_y=2, grid_z=1, block_x=256, block_y=1, block_z=1, registers_per_thread=32
    )
    body.kernels.add(
        iid=2, name_iid=11, grid_x=1, grid_y=1, grid_z=1, block_x=32, block_y=1, block_z=1, cluster_x=2, cluster_y=1,
        cluster_z=1, registers_per_thread=255, static_shared_bytes=1024, dynamic_shared_bytes=2048,
        executed_shared_bytes=102400, local_bytes_per_thread=8, local_bytes_total=4096, launch_type=1, cache_config=17,
        cluster_scheduling_policy=1, max_potential_cluster_size=8, max_active_clusters=66, device_launched=True,
        shared_carveout_percent=50, shared_carveout_requested=True,
    )  # fmt: skip
    sites = [(1, 211, 2, 1), (1, 41, 3, 4), (1, 131, 4, 6), (1, 311, 5, 2), (2, 243, 6, 9), (1, 135, 7, 7)]
    for iid, (domain, cbid, name, kind) in enumerate(sites, 1):
        body.call_sites.add(
            iid=iid, domain=domain, cbid=cbid, name_iid=name, kind=kind, context=1, has_stream=kind != 9,
            stream_handle=0 if kind == 9 else 0x7F00AA, function_name_iid=1 if kind == 1 else 0,
            capture=1 if kind == 7 else 0, per_thread_stream=kind == 6,
        )  # fmt: skip


def device_rows(body: Any) -> None:
    body.kernel_batches.add(
        stream_iid=1, base_device_ns=DEVICE + 1000, base_correlation=2**32, gap_ns=[0, 64, -32],
        duration_ns=[320, 1024, 32], kernel_iid=[1, 2, 1], correlation_delta=[1, 2, -1], graph_id=[0, 5, 5],
        graph_node_id=[0, 2**33, 2**33 + 1], queued_ns=[0, DEVICE + 10, 0], submitted_ns=[0, DEVICE + 20, 0],
    )  # fmt: skip
    body.copy_batches.add(
        stream_iid=1, base_device_ns=DEVICE + 3000, gap_ns=[0, 10], duration_ns=[500, 40], bytes=[1 << 20, 12],
        correlation_delta=[2**32 + 4, 6], copy_kind=[1, 2], source_kind=[1, 3], destination_kind=[3, 2], flags=[1, 0],
        copy_count=[1, 3],
    )  # fmt: skip
    body.copy_batches.add(
        stream_iid=2, base_device_ns=DEVICE + 3100, gap_ns=[0], duration_ns=[100], bytes=[4096], correlation_delta=[77],
        copy_kind=[10], source_kind=[3], destination_kind=[3], source_device=[0], source_context=[1],
        destination_device=[1], destination_context=[2],
    )  # fmt: skip
    body.memset_batches.add(
        stream_iid=2, base_device_ns=DEVICE + 4000, gap_ns=[5], duration_ns=[64], bytes=[4096], correlation_delta=[78],
        value=[255], memory_kind=[3], flags=[1],
    )  # fmt: skip
    body.opaque_intervals.add(
        stream_iid=2, begin_device_ns=DEVICE + 4500, end_device_ns=DEVICE + 5000, correlation=2**32 + 9, graph_id=6
    )


def host_rows(pb: Any, body: Any) -> None:
    body.call_batches.add(
        thread_iid=1, base_host_ns=HOST + 500, base_correlation=2**32, gap_ns=[0, 50, 50, 50, 50, 50],
        duration_ns=[100, 200, 3000, 80, 70, 60], call_site_iid=[1, 2, 3, 4, 5, 6],
        correlation_delta=[1, 3, 1, -3, 9, 1], result_row=[4], result_code=[2], copy_row=[1],
        copy_destination=[0x7F0000001000], copy_source=[0x5500],
        copy_bytes=[1 << 20], copy_kind=[1], event_row=[5], event_handle=[0xE0], memory_row=[4],
        memory_address=[0x7F0000002000], memory_bytes=[1 << 30], graph_row=[3], graph_handle=[0xA0],
    )  # fmt: skip
    body.open_calls.add(thread_iid=1, call_site_iid=3, correlation=2**32 + 50, enter_host_ns=HOST + 900)
    body.open_calls.add(thread_iid=2, call_site_iid=3, correlation=2**32 + 99, enter_host_ns=HOST + 950)
    body.steps.add(host_ns=HOST + 1000, index=0, thread_iid=1)
    body.steps.add(host_ns=HOST + 3000, index=1, thread_iid=1, samples=32, tokens=4096)
    body.annotations.add(begin_host_ns=HOST + 1100, duration_ns=400, name_iid=9, thread_iid=1)
    body.open_annotations.add(begin_host_ns=HOST + 3500, name_iid=9, thread_iid=2)
    body.marks.add(host_ns=HOST + 1200, name_iid=9, thread_iid=1)
    body.counters.add(host_ns=HOST + 1300, name_iid=10, thread_iid=1, value=0.1)


def about_itself(pb: Any, body: Any) -> None:
    events = pb.events
    body.clock_pairs.add(host_ns=HOST + 100, device_ns=DEVICE + 100, width_ns=120)
    body.clock_pairs.add(host_ns=HOST + 9000, device_ns=DEVICE + 9001, width_ns=90)
    run = body.run_info
    run.rank, run.world_size, run.local_rank = 3, 8, 3
    run.driver_version, run.cuda_driver_api = "580.159.04", 13000
    run.cupti.version, run.cupti.path, run.cupti.found_by = 130001, "/x/libcupti.so.13", "already loaded"
    run.cupti.record_kind.extend([3, 10])
    run.cupti.record_bytes.extend([216, 216])
    run.versions.add(key="torch", value="2.11.0")
    run.options.add(key="output", value="run.gpuperf")
    run.warnings.append("a warning")
    device = run.devices.add(device=0, name="NVIDIA H200", uuid="GPU-1", pci_bus_id="0000:18:00.0", compute_major=9)
    device.pcie_generation, device.pcie_width, device.nvlink_known = 5, 16, True
    device.nvlinks.add(link=0, active=True, version=4)
    body.losses.add(
        reason=events.LOSS_REASON_RING_FULL, kind=events.EVENT_KIND_CALL, count=3, first_host_ns=HOST + 10,
        last_host_ns=HOST + 20, thread_iid=1,
    )  # fmt: skip
    body.outages.add(
        reason=events.OUTAGE_REASON_YIELDED, begin_host_ns=HOST + 6000, end_host_ns=HOST + 7000, detail="x"
    )
    body.level_changes.add(host_ns=HOST + 7000, level=events.LEVEL_KERNELS)
    body.certificates.add(begin_host_ns=HOST, end_host_ns=HOST + 9000, lost=3, retired=1, outage_ns=1000, opaque_ns=500)
    cost = {"callbacks": 12, "callback_ns": 600, "callback_samples": 1, "collector_cpu_ns": 9000, "flush_cpu_ns": 800}
    cost |= {"buffer_bytes_peak": 65536, "ring_bytes": 49152, "written_bytes": 300}
    body.self_cost.CopyFrom(events.SelfCost(host_ns=HOST + 8000, **cost))


def main() -> int:
    pb = trace_builder.schema()
    first = pb.trace.ChunkBody()
    dictionaries(first)
    device_rows(first)
    host_rows(pb, first)
    about_itself(pb, first)
    second = pb.trace.ChunkBody()
    second.call_batches.add(
        thread_iid=1, base_host_ns=HOST + 900, gap_ns=[0], duration_ns=[9000], call_site_iid=[3],
        correlation_delta=[2**32 + 50],
    )  # fmt: skip
    chunks = [
        trace_builder.chunk(first, 0, checkpoint=True, first=HOST, last=HOST + 9000),
        trace_builder.chunk(second, 1, first=HOST + 9000, last=HOST + 10_000),
    ]
    path = FOLDER / "format1.gpuperf"
    if not path.exists():  # a released format stays as it was; only what is read of it may grow
        path.write_bytes(trace_builder.file(header(pb), chunks))

    lines: list[str] = []
    report.dump(path, lines.append)
    (FOLDER / "format1.dump").write_text("".join(lines))
    trace = report.summary(path)
    trace["trace"]["path"] = path.name
    del trace["trace"]["bytes"]
    document = {"schema": 1, "traces": [trace]}
    (FOLDER / "format1.report.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
