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
