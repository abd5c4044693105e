"""Random traces that a writer could have written: made from one number, so that a failure can be made again.

Some seconds long, so that readings of a part have chunks to leave out; rows come late, as CUPTI hands them over.
"""

from __future__ import annotations

import random
from typing import Any

import trace_builder

SECOND = 10**9
HOST = 5 * SECOND
OFFSET = 1_796_000_000 * SECOND  # device clock - host clock, about
STRINGS = [
    b"_Z3addPf", b"_ZN2at4gemmIfLi4EEEvPT_i", b"triton_gemm", b"odd\xff", b"cudaLaunchKernel", b"cudaMemcpyAsync",
    b"cudaMemcpy", b"cudaStreamSynchronize", b"cudaMalloc", b"cudaGraphLaunch", b"main", b"forward", b"loss",
    b"NCCL", b"a@b",
]  # fmt: skip
# name, kind, name of the launched kernel
SITES = [(5, 1, 1), (5, 1, 2), (5, 1, 3), (6, 4, 0), (7, 4, 0), (8, 6, 0), (9, 9, 0), (10, 2, 0)]


class RandomTrace:
    """One trace: its parts as bytes.

    Attributes:
        parts: the files.
        seconds: how long it is.
    """

    def __init__(self, seed: int) -> None:
        self.pb = trace_builder.schema()
        self.random = random.Random(seed)
        self.chunks = self.random.randint(1, 7)
        self.seconds = 2 * self.chunks
        self.drift = self.random.randint(-1000, 1000)  # ns a second
        self.ids = list(range(2**32, 2**32 + 200))
        self.random.shuffle(self.ids)
        self.used: dict[int, int] = {}  # ids of calls, and when they were entered
        self.open: list[tuple[int, int, int, int]] = []  # thread, site, id, enter
        self.step_at = HOST
        self.step_index = self.random.choice((0, 0, 3))
        two_parts = self.chunks > 2 and self.random.random() < 0.4
        cut = self.random.randint(1, self.chunks - 1) if two_parts else self.chunks
        bodies = [self.body(at, checkpoint=at in (0, cut) or self.random.random() < 0.4) for at in range(self.chunks)]
        self.parts = [self.file(0, bodies[:cut], 0)]
        if two_parts:
            self.parts.append(self.file(1, bodies[cut:], cut))

    def file(self, part: int, bodies: list[tuple[Any, bool]], first: int) -> bytes:
        header = self.pb.metadata.FileHeader(
            format_version=1, trace_uuid=bytes(range(16)), part=part, start={"monotonic_ns": HOST}
        )
        chunks = [
            trace_builder.chunk(body, at, checkpoint=is_checkpoint, first=self.begin_of(first + at),
                                last=self.begin_of(first + at + 1))
            for at, (body, is_checkpoint) in enumerate(bodies)
        ]  # fmt: skip
        return trace_builder.file(header, chunks)

    @staticmethod
    def begin_of(chunk: int) -> int:
        return HOST + 2 * chunk * SECOND

    def device(self, host: int) -> int:
        return OFFSET + host + (host - HOST) * self.drift // SECOND

    def times(self, at: int, count: int) -> list[tuple[int, int]]:
        """Begins and ends before the end of chunk `at`, the ends rising."""
        rng, limit = self.random, self.begin_of(at + 1) - 2000
        ends = sorted(rng.randint(max(HOST, limit - 4 * SECOND), limit) for _ in range(count))
        lengths = [rng.choice((0, 1, rng.randint(0, 5000), rng.randint(0, SECOND))) for _ in ends]
        return [(max(HOST - 1000, end - length), end) for end, length in zip(ends, lengths, strict=True)]

    def correlation(self, begin: int) -> int:
        """Of some call that had been entered by then, or of none."""
        entered = [id_ for id_, enter in self.used.items() if enter <= begin]
        if entered and self.random.random() < 0.85:
            return self.random.choice(entered)
        return self.ids.pop() if self.ids else 2**40

    def define(self, body: Any) -> None:
        for iid, value in enumerate(STRINGS, 1):
            body.strings.add(iid=iid, value=value)
        body.threads.add(iid=1, tid=77, name_iid=11)
        body.threads.add(iid=2, tid=78)
        body.streams.add(iid=1, device=0, context=1, stream=7)
        body.streams.add(iid=2, device=0, context=1, stream=20, priority=-1)
        body.streams.add(iid=3, device=1, context=2, stream=7)
        for iid, name in enumerate((1, 2, 3, 4, 1), 1):
            body.kernels.add(iid=iid, name_iid=name, grid_x=iid, grid_y=2, grid_z=1, block_x=32 * iid, block_y=1,
                             block_z=1, cluster_x=iid % 2, registers_per_thread=16 * iid,
                             dynamic_shared_bytes=iid)  # fmt: skip
        for iid, (name, kind, function) in enumerate(SITES, 1):
            body.call_sites.add(iid=iid, domain=1, cbid=iid, name_iid=name, kind=kind, function_name_iid=function,
                                context=iid % 3, has_stream=iid % 2 == 0, stream_handle=iid * 16,
                                capture=int(iid == 3))  # fmt: skip

    def body(self, at: int, *, checkpoint: bool) -> tuple[Any, bool]:
        rng, body = self.random, self.pb.trace.ChunkBody()
        if checkpoint:
            self.define(body)
        for _ in range(rng.randint(0, 2)):
            self.calls(body, at)
        for thread_iid, site, id_, enter in self.open:
            body.open_calls.add(thread_iid=thread_iid, call_site_iid=site, correlation=id_, enter_host_ns=enter)
        for batches in (body.kernel_batches, body.copy_batches, body.memset_batches):
            for _ in range(rng.randint(0, 3)):
                self.device_rows(batches, at)
        self.markers(body, at)
        self.about_itself(body, at)
        return body, checkpoint

    def device_rows(self, batches: Any, at: int) -> None:
        rng = self.random
        rows = self.times(at, rng.randint(0, 6))
        batch = batches.add(stream_iid=rng.choice((1, 2, 3, 9)), base_device_ns=self.device(HOST), base_correlation=5)
        end, correlation = batch.base_device_ns, batch.base_correlation
        graphs = rng.random() < 0.3
        peers = rng.random() < 0.3
        for begin, until in rows:
            start = self.device(begin)
            batch.gap_ns.append(start - end)
            batch.duration_ns.append(self.device(until) - start)
            end = self.device(until)
            new = self.correlation(begin)
            batch.correlation_delta.append(new - correlation)
            correlation = new
            if graphs:
                batch.graph_id.append(rng.choice((0, 5)))
                batch.graph_node_id.append(rng.randint(1, 2**40))
            if batch.DESCRIPTOR.name == "KernelBatch":
                batch.kernel_iid.append(rng.choice((1, 2, 3, 4, 5, 17)))
                batch.queued_ns.append(rng.choice((0, start - 5)))
                batch.submitted_ns.append(rng.choice((0, start - 2)))
                continue
            batch.bytes.append(rng.choice((0, 1, 1023, 1024, 1 << 20, rng.randint(0, 1 << 40))))
            batch.flags.append(rng.randint(0, 3))
            if batch.DESCRIPTOR.name == "MemsetBatch":
                batch.value.append(rng.randint(0, 255))
                batch.memory_kind.append(rng.choice((2, 3)))
                continue
            batch.copy_kind.append(rng.choice((1, 1, 2, 8, 10, 99)))
            batch.source_kind.append(rng.choice((1, 2, 3)))
            batch.destination_kind.append(rng.choice((1, 3)))
            if peers:
                for key in ("source_device", "source_context", "destination_device", "destination_context"):
                    getattr(batch, key).append(rng.randint(0, 2))

    def calls(self, body: Any, at: int) -> None:
        rng = self.random
        thread = rng.choice((1, 2, 2, 9))
        batch = body.call_batches.add(thread_iid=thread, base_host_ns=HOST, base_correlation=1)
        exit_, correlation = batch.base_host_ns, batch.base_correlation
        rows = [(begin, end, rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 19)), None) for begin, end in self.times(at, 6)]
        finished = [call for call in self.open if call[0] == thread and rng.random() < 0.5]
        self.open = [call for call in self.open if call not in finished]
        limit = self.begin_of(at + 1)
        rows += [(enter, rng.randint(enter, limit), site, id_) for _, site, id_, enter in finished]
        for row, (enter, until, site, id_) in enumerate(rows):
            new = id_ or (self.ids.pop() if self.ids else 2**41)
            if new != 2**41:
                self.used[new] = enter
            batch.gap_ns.append(enter - exit_)
            batch.duration_ns.append(until - enter)
            batch.call_site_iid.append(site)
            batch.correlation_delta.append(new - correlation)
            exit_, correlation = until, new
            if rng.random() < 0.2:
                batch.result_row.append(row)
                batch.result_code.append(rng.randint(1, 999))
            if rng.random() < 0.3:
                batch.copy_row.append(row)
                batch.copy_destination.append(rng.randint(0, 2))
                batch.copy_source.append(rng.randint(0, 2))
                batch.copy_bytes.append(rng.choice((0, 1 << 20)))
                batch.copy_kind.append(rng.randint(0, 4))
            if rng.random() < 0.2:
                batch.event_row.append(row)
                batch.event_handle.append(rng.randint(0, 2**50))
            if site == 7 or rng.random() < 0.1:
                batch.memory_row.append(row)
                batch.memory_address.append(rng.choice((0, 2**47)))
                batch.memory_bytes.append(rng.choice((0, 4096)))
            if site == 8:
                batch.graph_row.append(row)
                batch.graph_handle.append(rng.choice((0, 2**45)))
        if rng.random() < 0.5 and self.ids:
            enter = rng.randint(self.begin_of(at), limit)
            self.open.append((rng.choice((1, 2)), rng.choice((1, 6, 6)), self.ids.pop(), enter))
            self.used[self.open[-1][2]] = enter

    def markers(self, body: Any, at: int) -> None:
        rng, limit = self.random, self.begin_of(at + 1)
        while self.step_at < limit - SECOND and rng.random() < 0.8:
            self.step_at = rng.randint(max(self.step_at + 1, self.begin_of(at)), limit)
            step = body.steps.add(host_ns=self.step_at, index=self.step_index, thread_iid=rng.choice((1, 9)))
            if rng.random() < 0.5:
                step.samples = rng.randint(0, 64)
            if rng.random() < 0.3:
                step.tokens = rng.randint(0, 4096)
            self.step_index += 2 if rng.random() < 0.1 else 1
        for begin, end in self.times(at, rng.randint(0, 3)):
            row = body.annotations.add(begin_host_ns=begin, duration_ns=end - begin, name_iid=rng.choice((12, 13, 99)),
                                       thread_iid=rng.choice((1, 2)))  # fmt: skip
            self.label(row)
            if row.source == 2:
                row.end_thread_iid = rng.choice((0, 1, 2, 9))
        if rng.random() < 0.2:
            self.label(body.open_annotations.add(begin_host_ns=rng.randint(HOST, limit), name_iid=12, thread_iid=1))
        for time, _ in self.times(at, rng.randint(0, 2)):
            self.label(body.marks.add(host_ns=time, name_iid=rng.choice((12, 0, 99)), thread_iid=rng.choice((1, 9))))
            body.counters.add(host_ns=time, name_iid=13, thread_iid=1, value=rng.choice((0.1, -1e300, 0.0)))

    def label(self, row: Any) -> None:
        """Whose it is; of NVTX's also what NVTX says of it."""
        rng = self.random
        kinds = 2 if row.DESCRIPTOR.name == "Mark" else 3
        row.source = rng.randrange(kinds)
        if row.source == 0:
            return
        if rng.random() < 0.2:
            row.name_iid = 15
        if rng.random() < 0.7:
            row.nvtx.domain_iid = rng.choice((0, 14, 15, 98))
        if rng.random() < 0.5:
            row.nvtx.category = rng.choice((0, 3))
            row.nvtx.color = rng.choice((0, 0xFF00FF00))
        if rng.random() < 0.5:
            row.nvtx.payload_kind = rng.randrange(5)
            bits = (0, 2**64 - 1, 2**63, 0x4009_21FB_5444_2D18)  # the last one: pi
            row.nvtx.payload = rng.choice(bits[::3] if row.nvtx.payload_kind == 3 else bits)
            if row.nvtx.payload_kind == 4 and rng.random() < 0.5:
                row.nvtx.payload_bytes = rng.choice((0, 64))

    def about_itself(self, body: Any, at: int) -> None:
        rng, pb = self.random, self.pb
        for host in [
            self.begin_of(at) + 5,
            *(self.begin_of(at) + rng.randint(6, SECOND) for _ in range(rng.randint(0, 2))),
        ]:
            body.clock_pairs.add(host_ns=host, device_ns=self.device(host) + rng.randint(-20, 20), width_ns=80)
        if rng.random() < 0.3:
            first, last = sorted(rng.randint(HOST, self.begin_of(at + 1)) for _ in range(2))
            body.losses.add(reason=rng.choice((1, 3)), kind=rng.choice((1, 4)), count=rng.randint(1, 9),
                            first_host_ns=first, last_host_ns=last, thread_iid=rng.choice((0, 1)))  # fmt: skip
            if rng.random() < 0.5:
                body.outages.add(reason=pb.events.OUTAGE_REASON_YIELDED, begin_host_ns=first, end_host_ns=last,
                                 detail=rng.choice(("", "x")))  # fmt: skip
        for _ in range(rng.randint(0, 2)):
            body.resource_names.add(kind=rng.choice((1, 2, 5)), id=rng.choice((77, 2**63)),
                                    domain_iid=rng.choice((0, 14, 98)), name_iid=rng.choice((11, 13, 99)))  # fmt: skip
        for time, _ in self.times(at, rng.randint(0, 2)):
            body.resource_events.add(host_ns=time, change=rng.choice((1, 2, 3, 4)), thread_iid=rng.choice((1, 9)),
                                     device=rng.randint(0, 1), context=1, stream=rng.choice((7, 20)),
                                     handle=2**63 + 5)  # fmt: skip
        if rng.random() < 0.5:
            run = body.run_info
            run.devices.add(device=0, pcie_generation=1, pcie_generation_max=5, pcie_width=16)
            if rng.random() < 0.5:
                run.devices.add(device=1, pcie_generation=4, pcie_width_max=8)
