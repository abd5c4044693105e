"""Tables that fit: the least important columns go first where a terminal is narrow, then names are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_LEAST_NAME = 12  # cells that a name keeps before columns go
_GAP = 2


class Column(NamedTuple):
    """One column.

    Attributes:
        title: its head.
        rank: 0 stays; of the others the greatest goes first.
        is_name: left-aligned text that may be cut; the others are numbers and are shown whole.
    """

    title: str
    rank: int = 0
    is_name: bool = False


def plain(text: str) -> str:
    """`text` without control characters: a name out of a trace must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def show(console: Console, title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; nothing if it has no rows."""
    if not rows:
        return
    rows = [[plain(cell) for cell in row] for row in rows]
    kept = _fit(console.width, columns, rows)
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
    )
    for at in kept:
        column = columns[at]
        table.add_column(
            Text(column.title),
            justify="left" if column.is_name else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if column.is_name else _width(at, columns, rows),
        )
    for row in rows:
        table.add_row(*(Text(row[at]) for at in kept))
    console.print()
    console.print(table)


def _width(at: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    return max(cell_len(columns[at].title), *(cell_len(row[at]) for row in rows))


def _fit(width: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    def needed(at: int) -> int:
        full = _width(at, columns, rows)
        return _GAP + (min(full, _LEAST_NAME) if columns[at].is_name else full)

    kept = list(range(len(columns)))
    while sum(map(needed, kept)) > width:
        least = max(kept, key=lambda at: columns[at].rank)
        if columns[least].rank == 0:
            break
        kept.remove(least)
    return kept
