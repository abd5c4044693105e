"""The table of options and all that is made of it stay in step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from gpuperf import options
from gpuperf._env import is_on
from gpuperf.errors import OptionError
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]


def declared() -> list[tuple[str, str, str, str, str]]:
    """Rows of csrc/session/options.def: name, type, default, variable, help."""
    text = (ROOT / "csrc/session/options.def").read_text()
    row = re.compile(
        r'^GPUPERF_OPTION\(\w+,\s*"(.+?)",\s*(\w+?)_?,\s*"(.*?)",\s*"(\w+)",\s*"((?:\\.|[^"\\])*)"\)', re.MULTILINE
    )
    return [(*match[:4], match[4].replace('\\"', '"')) for match in row.findall(text)]


def test_the_library_holds_the_declared_table() -> None:
    rows = declared()
    assert len(rows) == (ROOT / "csrc/session/options.def").read_text().count("\nGPUPERF_OPTION(") > 10
    assert [tuple(option) for option in options.table()] == rows


def test_names_variables_and_keywords_follow_one_rule() -> None:
    for option in options.table():
        assert option.env == "GPUPERF_" + option.name.upper().replace("-", "_")
        assert option.keyword.isidentifier()
        assert option.type in ("bool", "bytes", "int", "path", "text")
        assert option.help


def test_every_default_fits_its_own_type() -> None:
    for option in options.table():
        assert option.to_text(option.default) == option.default


def test_the_page_is_the_one_that_the_table_makes() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "gpuperf.options", "--markdown"], capture_output=True, text=True, check=True
    ).stdout
    assert (ROOT / "docs/options.md").read_text() == made, "python -m gpuperf.options --markdown > docs/options.md"


def test_arguments_to_environment_and_back() -> None:
    given = {"output": "x.gpuperf", "force": True, "hooks": False, "ring_bytes": "2M", "flush_ms": 100, "cupti": None}
    environment = options.to_environment(given)
    assert environment == {
        "GPUPERF_OUTPUT": "x.gpuperf",
        "GPUPERF_FORCE": "1",
        "GPUPERF_HOOKS": "0",
        "GPUPERF_RING_BYTES": "2097152",
        "GPUPERF_FLUSH_MS": "100",
    }
    back = options.from_environment(environment | {"PATH": "/bin"})
    assert back == {"output": "x.gpuperf", "force": "1", "hooks": "0", "ring_bytes": "2097152", "flush_ms": "100"}
    assert options.to_environment(back) == environment


@pytest.mark.parametrize("option", options.table(), ids=lambda option: option.env)
def test_an_empty_variable_is_none(option: options.Option, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(option.env, "")
    assert options.from_environment(os.environ).get(option.keyword) is None
    if option.type == "bool":
        assert is_on(option.env, default=True)
        assert not is_on(option.env)
    options.check({})  # raises if the library, which reads the environment here, sees a value that does not fit


ROWS = st.sampled_from(options.table())


@given(ROWS, st.one_of(st.text(), st.integers(), st.booleans(), st.floats(), st.binary()))
def test_a_value_is_refused_or_becomes_text_that_stays(option: options.Option, value: object) -> None:
    try:
        text = option.to_text(value)
    except OptionError:
        return
    assert option.to_text(text) == text


@given(st.integers(min_value=0, max_value=1 << 40), st.sampled_from(["", "K", "m", "G", "kB", "MiB"]))
def test_bytes_take_units(number: int, unit: str) -> None:
    option = next(option for option in options.table() if option.type == "bytes")
    scale = {"": 0, "k": 10, "m": 20, "g": 30}[unit[:1].lower()]
    assert option.to_text(f"{number}{unit}") == str(number << scale)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1T", "0x10", "M", "1 000"])
def test_bytes_refuse_what_is_no_amount(text: str) -> None:
    option = next(option for option in options.table() if option.type == "bytes")
    with pytest.raises(OptionError, match="number of bytes"):
        option.to_text(text)


def test_unknown_variables_are_named_with_a_guess() -> None:
    names = ("GPUPERF_ZZZ", "GPUPERF_OUTPT", "GPUPERF_OUTPUT", "GPU_PERF", "GPUPERF_TEST_BUILD")
    environment = dict.fromkeys(names, "x")
    assert options.unknown_variables(environment) == [
        "there is no variable GPUPERF_OUTPT; did you mean GPUPERF_OUTPUT? (ignored)",
        "there is no variable GPUPERF_ZZZ (ignored)",
    ]
