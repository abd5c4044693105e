"""gpuperf.Trace against tables computed the slow way (reference_tables.py), on random traces and on real ones."""

from __future__ import annotations

import gc
import pickle
import re
import sys
import weakref
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

import trace_builder
from random_traces import HOST, SECOND, RandomTrace
from reference_tables import Reference, Row, nvtx_ranges

np = pytest.importorskip("numpy")
pytest.importorskip("gpuperf._analysis")

import gpuperf  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "format1.gpuperf"
SEEDS = st.integers(0, 2**32)
random_settings = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)


@pytest.fixture(scope="module", autouse=True)
def schema() -> None:
    trace_builder.schema()


def write(folder: Path, parts: list[bytes]) -> Path:
    path = folder / "run.gpuperf"
    for old in folder.glob("run.gpuperf*"):
        old.unlink()
    for at, part in enumerate(parts):
        (folder / (f"run.gpuperf.{at:04}" if at else "run.gpuperf")).write_bytes(part)
    return path


def rows(table: Any) -> list[Row]:
    return [row._asdict() for row in table]


def cut(expected: list[Row], table: Any) -> list[Row]:
    """Expected rows with the table's columns, every one of which they must know."""
    return [{column: row[column] for column in table.columns} for row in expected]


# ----------------------------------------------------------------------------------------------------------- all rows


@random_settings
@given(seed=SEEDS)
def test_every_table_has_every_row(tmp_path, seed):
    made = RandomTrace(seed)
    expected = Reference(*made.parts)
    with gpuperf.Trace(write(tmp_path, made.parts)) as trace:
        assert trace.parts == len(made.parts)
        for name in trace.TABLES:
            table = trace.table(name)
            assert rows(table) == cut(getattr(expected, name), table), name
        assert trace.complete == (not expected.losses)
        assert (trace.begin_host_ns, trace.end_host_ns) == expected.span


@pytest.mark.parametrize("name", gpuperf.Trace.TABLES)
def test_the_golden_trace(name):
    expected = Reference(GOLDEN.read_bytes())
    table = gpuperf.Trace(GOLDEN).table(name)
    assert len(table) > 0 or name in ("names", "resources")  # the golden trace is older
    assert rows(table) == cut(getattr(expected, name), table)


@random_settings
@given(seed=SEEDS)
def test_columns_are_the_rows(tmp_path, seed):
    trace = gpuperf.Trace(write(tmp_path, RandomTrace(seed).parts))
    for name in trace.TABLES:
        table = trace.table(name)
        for column in table.columns:
            values = table[column]
            listed = [getattr(row, column) for row in table]
            if isinstance(values, tuple):
                assert values.decode().tolist() == listed
                assert len(set(values.names)) == len(values.names)
                assert [code == -1 for code in values.codes] == [value is None for value in listed]
            else:
                assert values.tolist() == listed  # a masked array's list has None where it is masked
                assert not values.flags.writeable
                assert isinstance(values, np.ma.MaskedArray) or None not in listed


def test_a_column_is_the_readers_own_memory():
    table = gpuperf.Trace(GOLDEN).kernels
    first, second = table["begin_device_ns"], table["begin_device_ns"]
    assert np.shares_memory(first, second)
    assert first.dtype == np.int64
    masked = table["graph_id"]
    assert np.shares_memory(masked.data, table["graph_id"].data)
    del table
    assert first[0] > 0  # the memory lives as long as an array


# -------------------------------------------------------------------------------------------------------------- Arrow


@random_settings
@given(seed=SEEDS)
def test_arrow_has_the_same_rows(tmp_path, seed):
    pyarrow = pytest.importorskip("pyarrow")
    trace = gpuperf.Trace(write(tmp_path, RandomTrace(seed).parts))
    for name in trace.TABLES:
        table = trace.table(name)
        arrow = pyarrow.table(table)
        arrow.validate(full=True)
        assert arrow.to_pylist() == rows(table)
        assert arrow.equals(table.to_arrow())
        assert pyarrow.schema(table) == arrow.schema


def test_arrow_types_and_nullability_do_not_depend_on_the_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    empty = trace_builder.file(trace_builder.schema().metadata.FileHeader(format_version=1), [])
    nothing = gpuperf.Trace(write(tmp_path, [empty]))
    for name in nothing.TABLES:
        assert len(nothing.table(name)) == 0
        assert pyarrow.table(nothing.table(name)).schema == pyarrow.table(gpuperf.Trace(GOLDEN).table(name)).schema
    kernels = pyarrow.schema(gpuperf.Trace(GOLDEN).kernels)
    assert kernels.field("begin_device_ns").type == pyarrow.int64()
    assert not kernels.field("begin_device_ns").nullable
    assert kernels.field("call_enter_host_ns").nullable
    assert kernels.field("name").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())


def test_arrays_outlive_the_trace():
    pyarrow = pytest.importorskip("pyarrow")
    trace = gpuperf.Trace(GOLDEN)
    arrow = pyarrow.table(trace.kernels)
    one = arrow.column("name").combine_chunks()
    trace.close()
    del trace, arrow
    assert one.to_pylist()[0] == "add(float*)"


def test_the_memory_goes_with_the_last_user():
    """Without the garbage collector: big tables must not wait for it."""
    gc.disable()
    try:
        trace = gpuperf.Trace(GOLDEN)
        part = trace.filter(steps=1)
        watched = [weakref.ref(part), weakref.ref(part.kernels), weakref.ref(part.kernels._source)]
        column = part.kernels["begin_device_ns"]
        del part
        assert [reference() for reference in watched] == [None, None, None]
        assert column[0] == 1_796_000_000_000_001_000  # the memory is still its own
    finally:
        gc.enable()


def test_a_capsule_that_nobody_takes_is_released():
    table = gpuperf.Trace(GOLDEN).kernels
    for _ in range(3):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()


def test_polars_takes_a_table():
    polars = pytest.importorskip("polars")
    trace = gpuperf.Trace(GOLDEN)
    for name in trace.TABLES:
        assert polars.DataFrame(trace.table(name)).rows() == [tuple(row) for row in trace.table(name)]


def test_duckdb_takes_a_table():
    duckdb = pytest.importorskip("duckdb")
    kernels = gpuperf.Trace(GOLDEN).kernels
    relation = duckdb.from_arrow(kernels)
    found = relation.aggregate("name, sum(duration_ns)").fetchall()
    assert sorted(found) == [("add(float*)", 352), ('odd "name"\n\ufffd', 1024)]


# ------------------------------------------------------------------------------------------------------------ filters


def region_of(data: st.DataObject, expected: Reference) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Arguments of filter(), and the intervals that they mean."""
    begin, end = expected.span
    ways = ["time", "relative"]
    numbers = [step["index"] for step in expected.steps]
    names = sorted({row["name"] for row in expected.annotations if row["name"]})
    ways += ["steps"] if numbers == list(range(len(numbers))) and numbers else []
    ways += ["annotation"] if names else []
    ranges = nvtx_ranges(expected)
    ways += ["nvtx"] if ranges else []
    way = data.draw(st.sampled_from(ways))
    if way == "steps":
        bounds = st.none() | st.integers(-len(numbers) - 2, len(numbers) + 2)
        first, last = data.draw(bounds), data.draw(bounds)
        return {"steps": slice(first, last)}, expected.steps_region(first, last)
    if way == "annotation":
        name = data.draw(st.sampled_from(names))
        return {"annotation": name}, expected.annotation_region(name)
    if way == "nvtx":
        told, name, domain = data.draw(st.sampled_from(ranges))
        return {"nvtx": told}, expected.nvtx_region(name, domain)
    if way == "relative":
        first, last = data.draw(st.integers(0, end - begin)), data.draw(st.integers(0, end - begin))
        return {"time": f"{first}ns:{last}ns"}, expected.time_region(begin + first, begin + last)
    edges = [row[key] for row in expected.kernels for key in ("begin_host_ns", "end_host_ns")]
    times = st.integers(begin - SECOND, end + SECOND) | st.sampled_from([begin, *edges])
    first, last = data.draw(times), data.draw(times)
    return {"time": (first, last)}, expected.time_region(first, last)


@settings(random_settings, max_examples=150)
@given(seed=SEEDS, data=st.data())
def test_a_region_has_the_rows_that_touch_it(tmp_path, seed, data):
    made = RandomTrace(seed)
    expected = Reference(*made.parts)
    trace = gpuperf.Trace(write(tmp_path, made.parts))
    arguments, region = region_of(data, expected)
    part = trace.filter(**arguments)
    for name in trace.TABLES:
        table = part.table(name)
        wanted = expected.restricted(name, region)
        if name == "allocations":
            wanted = [row for row in expected.allocations if row in wanted]
        assert rows(table) == cut(wanted, table), (name, arguments)
        assert rows(trace.table(name).filter(**arguments)) == rows(table)


@random_settings
@given(seed=SEEDS, data=st.data())
def test_streams_devices_and_names(tmp_path, seed, data):
    made = RandomTrace(seed)
    expected = Reference(*made.parts)
    trace = gpuperf.Trace(write(tmp_path, made.parts))
    streams = data.draw(st.sets(st.sampled_from([7, 20, 99]), min_size=1))
    devices = data.draw(st.sets(st.sampled_from([0, 1]), min_size=1))
    part = trace.filter(stream=streams).filter(device=devices)
    for name in ("kernels", "copies", "memsets"):
        wanted = [row for row in getattr(expected, name) if row["stream"] in streams and row["device"] in devices]
        assert rows(part.table(name)) == cut(wanted, part.table(name))
    for name in ("calls", "launches"):
        mine = getattr(expected, name)
        wanted = [row for row in mine if row["work_stream"] in streams and row["work_device"] in devices]
        assert rows(part.table(name)) == cut(wanted, part.table(name))
    assert rows(part.steps) == rows(trace.steps)

    glob = data.draw(st.sampled_from(["*gemm*", "add(*", "_Z3addPf", "cuda*", "*", "nothing", "FORWARD"]))
    named = trace.filter(name=glob)
    searched = trace.filter(name=re.compile(glob.strip("*").replace("(", r"\(")))

    def wants(*names: str | None) -> bool:
        return any(name is not None and fnmatchcase(name, glob) for name in names)

    def finds(*names: str | None) -> bool:
        return any(name is not None and glob.strip("*").replace("\\", "") in name for name in names)

    for test, which in ((wants, named), (finds, searched)):
        wanted = [row for row in expected.kernels if test(row["name"], row["symbol"])]
        assert rows(which.kernels) == cut(wanted, which.kernels)
        wanted = [row for row in expected.calls if test(row["name"], row["kernel_name"], row["_symbol"])]
        assert rows(which.calls) == cut(wanted, which.calls)
        wanted = [row for row in expected.annotations if test(row["name"])]
        assert rows(which.annotations) == cut(wanted, which.annotations)
        assert rows(which.copies) == rows(trace.copies)


def test_numbers_of_numpy_are_numbers():
    trace = gpuperf.Trace(GOLDEN)
    ends = trace.steps["end_host_ns"]
    part = trace.filter(time=(ends[0], ends[1]))
    assert rows(part.calls) == rows(trace.filter(steps=np.int64(1)).calls)
    assert rows(part.filter(stream=np.uint32(7)).kernels) == rows(part.filter(stream=range(7, 8)).kernels)


def test_filters_add_up():
    trace = gpuperf.Trace(GOLDEN)
    part = trace.filter(time="0ns:2us").filter(name="add*", stream=7)
    assert [row.symbol for row in part.kernels] == ["_Z3addPf"]
    assert len(part.filter(name=re.compile("x")).kernels) == 0
    assert len(part.filter(steps=1).kernels) == len(trace.filter(steps=1, time="0ns:2us", name="add*").kernels)
    with pytest.raises(gpuperf.RegionError, match="already restricted by time"):
        part.filter(time="1ns:2ns")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nvtx": ""}, "an NVTX range is NAME or NAME@DOMAIN"),
        ({"nvtx": 7}, "an NVTX range is NAME or NAME@DOMAIN"),
        ({"steps": "a:b"}, "steps are A:B"),
        ({"steps": slice(0, 9, 2)}, "steps are A:B"),
        ({"steps": True}, "steps are A:B"),
        ({"steps": slice(1.5, 2)}, "steps are A:B"),
        ({"steps": 1.5}, "steps are A:B"),
        ({"steps": (1, "2")}, "steps are A:B"),
        ({"steps": ""}, "steps are A:B"),
        ({"time": (1.5, 2)}, "each with its unit"),
        ({"time": "1:2"}, "each with its unit"),
        ({"time": "1s"}, "each with its unit"),
        ({"time": "0.5ns:"}, "not a whole number of ns"),
        ({"stream": "7"}, "stream is a number or several"),
        ({"device": -1}, "device is a number or several"),
        ({"stream": [True, 2.5]}, "stream is a number or several"),
    ],
)
def test_a_wrong_filter_is_told_at_once(arguments, message):
    with pytest.raises(gpuperf.RegionError, match=message):
        gpuperf.Trace(GOLDEN).filter(**arguments)


def test_what_the_trace_does_not_have_is_told_when_it_is_read(tmp_path):
    pb = trace_builder.schema()
    body = pb.trace.ChunkBody()
    body.strings.add(iid=1, value=b"x")
    for index in (0, 1, 4, 5):
        body.steps.add(host_ns=HOST + index, index=index)
    body.kernel_batches.add(gap_ns=[5], duration_ns=[5], kernel_iid=[1], correlation_delta=[1], base_device_ns=7)
    header = pb.metadata.FileHeader(format_version=1, start={"monotonic_ns": HOST - 1})
    path = write(tmp_path, [trace_builder.file(header, [trace_builder.chunk(body, 0, first=HOST, last=HOST + 9)])])
    trace = gpuperf.Trace(path)
    with pytest.raises(gpuperf.RegionError, match=r"the end of step 3 is not in the trace, so it is not .* begins"):
        len(trace.filter(steps="4:").steps)
    with pytest.raises(gpuperf.RegionError, match=r"the end of step 2 is not in the trace, so it is not .* ends"):
        len(trace.filter(steps="0:3").steps)
    assert [step.index for step in trace.filter(steps="-1:").steps] == [5]
    assert [step.index for step in trace.filter(steps=slice(100, 200)).steps] == []
    with pytest.raises(gpuperf.RegionError, match=r'run\.gpuperf: the trace has no annotation "y"'):
        len(trace.filter(annotation="y").calls)
    with pytest.raises(gpuperf.RegionError, match="no clock pair carries device times"):
        len(trace.filter(time="0ns:5ns").kernels)
    assert trace.kernels[0].begin_host_ns is None


def test_an_exception_of_a_name_test_comes_through():
    trace = gpuperf.Trace(GOLDEN).filter(name="x")
    trace._source.wanted = trace._source.wanted._replace(names=(lambda: None,))  # no pattern at all
    with pytest.raises(AttributeError):
        len(trace.kernels)


def test_a_region_near_the_end_reads_the_chunks_that_it_needs(tmp_path):
    """Damage in an early chunk is not even met, and the join reaches back where it has to."""
    pb = trace_builder.schema()
    bodies = []
    for at in range(8):
        body = pb.trace.ChunkBody()
        if at in (0, 5):
            body.strings.add(iid=1, value=b"k%d" % (at == 0))
            body.streams.add(iid=1, stream=7)
            body.kernels.add(iid=1, name_iid=1)
            body.threads.add(iid=1, tid=9)
            body.call_sites.add(iid=1, kind=1, name_iid=1)
        start = HOST + at * 10 * SECOND
        body.clock_pairs.add(host_ns=start, device_ns=start)
        body.kernel_batches.add(stream_iid=1, base_device_ns=start + SECOND, gap_ns=[0], duration_ns=[5],
                                kernel_iid=[1], correlation_delta=[at + 1 if at != 7 else 100])  # fmt: skip
        body.call_batches.add(thread_iid=1, base_host_ns=start, gap_ns=[0, 1], duration_ns=[5, 5],
                              call_site_iid=[1, 1], correlation_delta=[at + 1, 99 if at == 0 else 1000])  # fmt: skip
        bodies.append(body)
    chunks = [
        trace_builder.chunk(body, at, checkpoint=at in (0, 5), first=HOST + at * 10 * SECOND,
                            last=HOST + (at + 1) * 10 * SECOND - 1)
        for at, body in enumerate(bodies)
    ]  # fmt: skip
    data = bytearray(trace_builder.file(pb.metadata.FileHeader(format_version=1, start={"monotonic_ns": HOST}), chunks))
    path = write(tmp_path, [bytes(data)])
    late = gpuperf.Trace(path).filter(time="60s:70s")
    assert [(row.name, row.correlation, row.call_tid) for row in late.kernels] == [("k0", 7, 9)]
    # The launch of the last kernel lies in the first chunk.
    last = gpuperf.Trace(path).filter(time="70s:80s")
    assert [(row.correlation, row.call_enter_host_ns) for row in last.kernels] == [(100, HOST + 6)]
    # And the work of that launch in the last one.
    first = gpuperf.Trace(path).filter(time="0s:1ms")
    assert [(row.correlation, row.work_rows) for row in first.launches] == [(1, 1), (100, 1)]


# ------------------------------------------------------------------------------------------------------ damaged files


@random_settings
@given(seed=SEEDS, data=st.data())
def test_a_torn_file_has_its_whole_chunks_and_says_so(tmp_path, seed, data):
    made = RandomTrace(seed)
    whole = made.parts[0]
    file = trace_builder.schema().trace.TraceFile.FromString(whole)
    ends = [0, *(entry.offset for entry in file.index.entries), int.from_bytes(whole[-8:], "little")]
    size = data.draw(st.integers(ends[1], len(whole) - 1))
    chunks = sum(end <= size for end in ends[2:])
    path = write(tmp_path, [whole[:size]])
    trace = gpuperf.Trace(path)
    assert not trace.complete
    assert not trace.cleanly_closed
    del file.chunks[chunks:]
    file.ClearField("index")
    expected = Reference(file.SerializeToString())
    for name in trace.TABLES:
        assert rows(trace.table(name)) == cut(getattr(expected, name), trace.table(name))
    at_an_end = size in (*ends, len(whole) - 9)  # also of the index, before the footer
    assert at_an_end == (len(trace.damages) == 0)


@random_settings
@given(seed=SEEDS, data=st.data())
def test_a_mangled_file_raises_nothing_but_our_errors(tmp_path, seed, data):
    raw = bytearray(RandomTrace(seed).parts[0])
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path, [bytes(raw)])
    said = ""
    try:
        trace = gpuperf.Trace(path)
        for part in (trace, trace.filter(time="3s:5s"), trace.filter(steps="1:")):
            for name in trace.TABLES:
                list(part.table(name))
    except (gpuperf.TraceError, gpuperf.RegionError) as error:
        said = str(error)
    assert "\n" not in said


def test_a_damaged_chunk_is_told(tmp_path):
    made = next(trace for trace in map(RandomTrace, range(100)) if trace.chunks >= 3 and len(trace.parts) == 1)
    raw = bytearray(made.parts[0])
    index = trace_builder.schema().trace.TraceFile.FromString(bytes(raw)).index
    raw[index.entries[2].offset - 1] ^= 1
    trace = gpuperf.Trace(write(tmp_path, [bytes(raw)]))
    assert trace.cleanly_closed
    assert not trace.complete
    damage = trace.damages[0]
    assert (damage.what, damage.offset) == ("a chunk has a wrong check sum", index.entries[1].offset)
    assert damage.bytes == index.entries[2].offset - index.entries[1].offset
    assert damage.before_host_ns == made.begin_of(2)


def test_a_batch_that_breaks_a_rule_makes_the_trace_incomplete(tmp_path):
    pb = trace_builder.schema()
    body = pb.trace.ChunkBody()
    body.kernel_batches.add(gap_ns=[1, 2], duration_ns=[3])
    header = pb.metadata.FileHeader(format_version=1)
    trace = gpuperf.Trace(write(tmp_path, [trace_builder.file(header, [trace_builder.chunk(body, 0)])]))
    assert len(trace.kernels) == 0
    assert not trace.complete
    assert "breaks the rules" in trace.damages[0].what


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "it is empty"),
        (b"hello, world", "not a gpuperf trace"),
        (b"\x7a\x08GPUPERF1", "cut off inside its header"),
    ],
)
def test_what_is_no_trace(tmp_path, content, message):
    path = tmp_path / "x.gpuperf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(gpuperf.TraceError, match=message) as raised:
        gpuperf.Trace(path)
    assert str(raised.value).startswith(str(path))
    assert isinstance(raised.value, ValueError)


# ------------------------------------------------------------------------------------------------------------- object


def test_opening_reads_no_chunk(tmp_path):
    raw = bytearray(GOLDEN.read_bytes())
    index = trace_builder.schema().trace.TraceFile.FromString(bytes(raw)).index
    raw[index.entries[0].offset : index.entries[1].offset] = bytes(index.entries[1].offset - index.entries[0].offset)
    trace = gpuperf.Trace(write(tmp_path, [bytes(raw)]))
    assert (trace.parts, trace.bytes, trace.cleanly_closed) == (1, len(raw), True)
    assert "19 events" in repr(trace)
    assert not trace.complete


def test_closing():
    trace = gpuperf.Trace(GOLDEN)
    part = trace.filter(steps=1)
    kernels, steps = trace.kernels, trace.steps
    assert len(kernels) == 3
    trace.close()
    trace.close()
    assert len(kernels) == 3  # what was read stays
    assert "closed" in repr(trace)
    for use in (lambda: len(steps), lambda: trace.kernels, lambda: part.calls, lambda: trace.complete, trace.summary):
        with pytest.raises(gpuperf.TraceError, match="has been closed"):
            use()


def test_a_trace_is_pickled_as_its_path_and_filters(monkeypatch, tmp_path):
    monkeypatch.chdir(GOLDEN.parent)
    trace = gpuperf.Trace(GOLDEN.name).filter(steps=slice(0, 1), name=re.compile("a"), stream=[7])
    kernels = rows(trace.kernels)
    pickled = pickle.dumps((trace, trace.kernels))
    assert len(pickled) < 2000
    monkeypatch.chdir(tmp_path)  # the path is absolute
    again, table = pickle.loads(pickled)
    assert rows(again.kernels) == rows(table) == kernels
    assert repr(again) == repr(trace)


def test_rows(tmp_path):
    table = gpuperf.Trace(GOLDEN).copies
    assert repr(table) == "<gpuperf copies of <gpuperf.Trace 'format1.gpuperf': 1,618 bytes, 19 events>, not read yet>"
    assert len(table) == 3
    assert repr(table).endswith(f"3 rows, {len(table.columns)} columns>")
    assert type(table[0]).__name__ == "Copy"
    assert table[-1] == table[2] == list(table)[2]
    assert table[1:] == list(table)[1:]
    assert table[::-2] == list(table)[::-2]
    assert table[5:2] == []
    assert "bytes" in table
    assert "no" not in table
    with pytest.raises(IndexError, match="copies has 3 rows"):
        table[3]
    with pytest.raises(KeyError, match="copies has no column 'no', only direction, "):
        table["no"]
    with pytest.raises(KeyError, match="no table 'nvtx', only kernels, "):
        gpuperf.Trace(GOLDEN).table("nvtx")


def test_facts():
    trace = gpuperf.Trace(GOLDEN)
    assert (trace.pid, trace.host, trace.rank, trace.world_size) == (4711, "node1", 3, 8)
    assert trace.command_line[:2] == ("python", "train.py")
    assert trace.uuid == bytes(range(16)).hex()
    assert trace.producer == "gpuperf 0.1.0"
    assert not trace.complete  # the golden trace tells of a loss
    assert trace.cleanly_closed
    assert [loss.count for loss in trace.losses] == [3]


def test_the_summary_is_of_the_region():
    trace = gpuperf.Trace(GOLDEN)
    assert trace.summary()["region"] is None
    assert trace.filter(steps=1).summary()["steps"]["count"] == 1
    with pytest.raises(gpuperf.RegionError, match="not of streams, devices or names"):
        trace.filter(stream=7).summary()


def test_many_rows_come_in_batches(tmp_path):
    """More rows than a record batch has, and than an iteration asks for at once."""
    pb = trace_builder.schema()
    body = pb.trace.ChunkBody()
    body.strings.add(iid=1, value=b"k")
    body.kernels.add(iid=1, name_iid=1)
    count = (1 << 18) + 1003
    batch = body.kernel_batches.add(base_device_ns=1)
    batch.gap_ns.extend([1] * count)
    batch.duration_ns.extend(i % 7 for i in range(count))
    batch.kernel_iid.extend([1] * (count - 1) + [9])
    batch.correlation_delta.extend([1] * count)
    header = pb.metadata.FileHeader(format_version=1)
    kernels = gpuperf.Trace(write(tmp_path, [trace_builder.file(header, [trace_builder.chunk(body, 0)])])).kernels
    assert [row.duration_ns for row in kernels] == [i % 7 for i in range(count)]
    pyarrow = pytest.importorskip("pyarrow")
    arrow = pyarrow.table(kernels)
    assert arrow.column("name").num_chunks == 2
    assert arrow.column("name").null_count == 1
    assert arrow.column("duration_ns").to_pylist() == [i % 7 for i in range(count)]
