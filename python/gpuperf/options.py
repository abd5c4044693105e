"""The one table of options, as libgpuperf.so holds it, and what is made of it.

`python -m gpuperf.options --markdown` prints docs/options.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from gpuperf._env import FALSE, TRUE
from gpuperf._libpath import load_core
from gpuperf.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "GPUPERF_"
_OWN_PREFIXES = ("GPUPERF_TEST_", "GPUPERF_FAKE_", "GPUPERF_RECORD")  # of the project's tests and tools
NO_FLAG = ("disable", "run-start-ns")  # GPUPERF_DISABLE=1 has to win over all; `gpuperf run` itself sets the other
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Option(NamedTuple):
    """One row of the table.

    Attributes:
        name: as on the command line, e.g. "ring-bytes".
        type: "bool", "bytes", "int", "path" or "text".
        default: as text.
        env: the variable that sets it, e.g. "GPUPERF_RING_BYTES".
        help: one sentence.
    """

    name: str
    type: str
    default: str
    env: str
    help: str

    @property
    def keyword(self) -> str:
        """The name as a Python argument."""
        return self.name.replace("-", "_")

    def to_text(self, value: object) -> str:
        """`value` as the library takes it.

        Raises:
            OptionError: the value does not fit the option's type.
        """
        if self.type == "path" and isinstance(value, bytes | os.PathLike):
            return os.fsdecode(value)
        if self.type == "bool":
            text = str(int(value)) if isinstance(value, bool) else str(value).lower()
            if text in TRUE + FALSE:
                return "1" if text in TRUE else "0"
        elif self.type in ("int", "bytes") and not isinstance(value, bool):
            pattern = r"(\d+)([kmg]?)(?:i?b)?" if self.type == "bytes" else r"(\d+)()"
            match = re.fullmatch(pattern, str(value).strip().lower())
            if match:
                return str(int(match[1]) * _UNITS[match[2]])
        elif isinstance(value, str) and "\0" not in value:
            return value
        wanted = {
            "bool": "0 or 1",
            "bytes": "a number of bytes, as 1048576, 1024K, 1M or 1G",
            "int": "a whole number, 0 or more",
            "path": "a path, without a NUL",
        }.get(self.type, "text without a NUL")
        raise OptionError(f"option {self.name}: {value!r} does not fit, it takes {wanted}")


_table: tuple[Option, ...] | None = None


def table() -> tuple[Option, ...]:
    """All options, in the order of csrc/session/options.def."""
    global _table
    if _table is None:
        _table = tuple(Option(**row) for row in json.loads(load_core().option_table_json()))
    return _table


def _suggestion(name: str, known: Iterable[str], prefix: str = "") -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


def from_keywords(keywords: Mapping[str, object]) -> list[tuple[str, str | None]]:
    """Options given as Python arguments, as `gpuperf._core.start` takes them. None takes the option's default.

    Raises:
        OptionError: no such option, or a value that does not fit.
    """
    known = {option.keyword: option for option in table()}
    result: list[tuple[str, str | None]] = []
    for keyword, value in keywords.items():
        option = known.get(keyword)
        if option is None:
            raise OptionError(
                f"there is no option {keyword!r}{_suggestion(keyword, known)} (docs/options.md lists all)"
            )
        result.append((option.name, None if value is None else option.to_text(value)))
    return result


def check(keywords: Mapping[str, object]) -> None:
    """Lets the library read these options and the environment's, and does nothing with them.

    Raises:
        OptionError: a value that start() would not take.
    """
    core = load_core()
    given = from_keywords({name: value for name, value in keywords.items() if value is not None})
    if core.start([*given, ("disable", "1")]) == core.INVALID_OPTION:  # options are read before `disable` is looked at
        raise OptionError(core.last_error())


def to_environment(options: Mapping[str, object]) -> dict[str, str]:
    """Options by their Python names as environment variables. None is left out."""
    known = {option.keyword: option for option in table()}
    return {known[key].env: known[key].to_text(value) for key, value in options.items() if value is not None}


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Options that `environment` sets, by their Python names. An empty variable is none."""
    return {option.keyword: environment[option.env] for option in table() if environment.get(option.env)}


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each GPUPERF_* variable that is no option."""
    known = {option.env.removeprefix(PREFIX) for option in table()}
    names = {name for name in environment if name.startswith(PREFIX) and not name.startswith(_OWN_PREFIXES)}
    unknown = sorted({name.removeprefix(PREFIX) for name in names} - known)
    return [f"there is no variable {PREFIX}{name}{_suggestion(name, known, PREFIX)} (ignored)" for name in unknown]


def markdown() -> str:
    """docs/options.md."""
    lines = [
        "# Options",
        "",
        "<!-- Written by `python -m gpuperf.options --markdown` from csrc/session/options.def. Do not edit. -->",
        "",
        "Each option has three spellings: an argument of `gpuperf.start()` and `gpuperf.profile()`, a flag of",
        "`gpuperf run`, and an environment variable. An argument beats a variable, and a variable beats the default;",
        "`gpuperf run` hands its flags on as variables, so that every process of the job sees them. A `GPUPERF_*`",
        "variable that is not in the table is named in a warning, and ignored; an empty one is as good as not set.",
        "`GPUPERF_DISABLE=1` beats all, also values that do not fit, and says nothing.",
        "",
        "| `gpuperf run` | `gpuperf.start()` | variable | type | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for option in table():
        default = f"`{option.default}`" if option.default else "empty"
        shown = f"`{flag(option)}`" if flag(option) else ""
        cells = (shown, f"`{option.keyword}`", f"`{option.env}`", option.type, default, option.help)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [
        "",
        "Booleans are `1` or `0`, also `true`/`false`, `yes`/`no` and `on`/`off`. Bytes are a number, or `512K`,",
        "`24M`, `1G` (powers of 1024).",
        "",
    ]
    return "\n".join(lines)


def flag(option: Option) -> str:
    """The flag of `gpuperf run` that changes `option` from its default, "" if it has none."""
    if option.name in NO_FLAG:
        return ""
    if option.type == "bool":
        return f"--no-{option.name}" if option.default == "1" else f"--{option.name}"
    return f"--{option.name} {option.type.upper()}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--markdown"]:
        sys.exit("usage: python -m gpuperf.options --markdown")
    sys.stdout.write(markdown())
