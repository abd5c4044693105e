"""The pages hold together: every link between files of this tree leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


def test_every_make_target_of_the_pages_exists() -> None:
    listed = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"make ([a-z-]+)", listed))
    named = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert named <= targets


def test_the_page_names_every_column_of_a_table() -> None:
    """As docs/python.md has them: `name`, with ? behind what may be unknown."""
    pytest.importorskip("gpuperf._analysis")
    from gpuperf import Trace

    text = (ROOT / "docs" / "python.md").read_text().partition("### Columns")[2]
    text = re.sub(r"`(\w+)_x`\? … `\w+_z`\?", r"`\1_x`? `\1_y`? `\1_z`?", text)
    text = re.sub(r"\([^()]*\)", "", text)  # explanations
    text = re.sub(r" and `duration_ns`\?", "", text)  # told beside another column
    rows = dict(re.findall(r"^\| (\S.*?) \| (.*) \|$", text, re.MULTILINE))
    trace = Trace(ROOT / "tests" / "data" / "golden" / "format1.gpuperf")
    for names, told in rows.items():
        for group in re.findall(r"\*(\w+)\*", told):
            rows[names] = rows[names].replace(f"*{group}*", rows[f"*{group}*"].partition(":")[0])
    for name in trace.TABLES:
        table = trace.table(name)
        pyarrow = pytest.importorskip("pyarrow")
        columns = {field.name: field.nullable for field in pyarrow.schema(table)}
        (told,) = (rows[names] for names in rows if f"`{name}`" in names)
        documented = {column: mark == "?" for column, mark in re.findall(r"`(\w+)`(\??)", told)}
        columns.pop("duration_ns" if columns.get("duration_ns") else "", None)
        if name == "allocations":
            columns = dict(list(columns.items())[8:])
            documented.pop("calls")
        assert documented == columns, name
