"""Names of kernels, short enough for a table."""

from __future__ import annotations


def short(name: str | None) -> str:
    """A demangled name without its return type, its parameters and what the compiler adds for anonymous namespaces."""
    if name is None:
        return "(name lost)"
    text = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    if not text.endswith(")"):
        return text.removeprefix("void ")
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            return text[:at].removeprefix("void ") or text
    return text
