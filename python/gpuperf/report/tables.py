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
    widths = _fit(console.width, columns, rows)
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - console.is_terminal, 0, 0),  # the box puts a blank between columns
    )
    for at, width in widths.items():
        table.add_column(
            Text(columns[at].title),
            justify="left" if columns[at].is_name else "right",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in rows:
        table.add_row(*(Text(row[at]) for at in widths))
    console.print()
    console.print(table)
    left_out = [column.title for at, column in enumerate(columns) if at not in widths]
    if left_out:
        console.print(Text(f"(too narrow for: {', '.join(left_out)})", style="dim"))


def _fit(width: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> dict[int, int]:
    """The columns that are shown, and their widths."""
    full = [
        max(cell_len(text) for text in (column.title, *(row[at] for row in rows))) for at, column in enumerate(columns)
    ]
    least = [min(full[at], _LEAST_NAME) if column.is_name else full[at] for at, column in enumerate(columns)]
    kept = list(range(len(columns)))

    def spare() -> int:
        return width - sum(least[at] for at in kept) - _GAP * (len(kept) - 1)

    while spare() < 0:
        last = max(kept, key=lambda at: columns[at].rank)
        if columns[last].rank == 0:
            break
        kept.remove(last)
    widths = {at: least[at] for at in kept}
    left = max(spare(), 0)
    for at in kept:
        more = min(full[at] - least[at], left)
        widths[at] += more
        left -= more
    return widths
