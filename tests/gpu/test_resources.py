"""Item 10: contexts and streams as CUDA makes and destroys them, and the memory that is allocated and freed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import support

JOB = """
import json, torch
x = torch.ones(1 << 20, device="cuda")
streams = [torch.cuda.Stream() for _ in range(3)]
for stream in streams:
    with torch.cuda.stream(stream):
        x.add_(1)
torch.cuda.synchronize()
external = torch.cuda.caching_allocator_alloc(64 << 20)
torch.cuda.caching_allocator_delete(external)
pinned = torch.empty(1 << 20).pin_memory()
torch.cuda.empty_cache()
print(json.dumps([stream.cuda_stream for stream in streams]))
"""
CONTEXT_CREATED, STREAM_CREATED = 1, 3


@pytest.mark.item(10)
def test_streams_are_told_with_the_ids_that_their_work_has(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Each stream of the job: made, with its handle, and with the id that CUPTI gives the kernels on it."""
    path = tmp_path / "run.gpuperf"
    done = support.succeed(support.run(support.traced(path, [support.sys.executable, "-c", JOB])))
    handles = json.loads(done.stdout)
    trace = support.whole(path)
    contexts = [row for row in trace.resource_events if row["change"] == CONTEXT_CREATED]
    made = {row["handle"]: row for row in trace.resource_events if row["change"] == STREAM_CREATED}
    figures["contexts, streams made"] = [len(contexts), len(made)]
    assert len(contexts) == 1
    assert set(handles) <= set(made)
    by_correlation = dict(zip(trace.calls["correlation"].tolist(), trace.calls["stream_handle"].tolist(), strict=True))
    found = {}
    for correlation, stream, context, device in zip(
        *(trace.kernels[key].tolist() for key in ("correlation", "stream", "context", "device")), strict=True
    ):
        handle = by_correlation[correlation]
        if handle in made:
            found[handle] = (stream, context, device)
    assert set(handles) <= set(found)
    for handle in handles:
        row = made[handle]
        assert found[handle] == (row["stream"], row["context"], row["device"])
        assert row["context"] == contexts[0]["context"]


@pytest.mark.item(10)
def test_allocations_and_pinned_memory(tmp_path: Path, figures: dict[str, Any]) -> None:
    """Sizes and addresses of what PyTorch's allocator takes and gives back, and of pinned memory."""
    import gpuperf

    path = tmp_path / "run.gpuperf"
    support.succeed(support.run(support.traced(path, [support.sys.executable, "-c", JOB])))
    table = gpuperf.Trace(path).allocations
    rows = list(table)
    kinds = {row.name for row in rows}
    figures["calls"] = sorted(kinds)
    large = [row for row in rows if row.bytes == 64 << 20 and row.name == "cudaMalloc"]
    assert len(large) == 1
    freed = [row for row in rows if row.name == "cudaFree" and row.address == large[0].address]
    assert len(freed) == 1
    assert freed[0].enter_host_ns > large[0].exit_host_ns
    assert any(row.name in ("cudaHostAlloc", "cudaHostRegister") for row in rows)
