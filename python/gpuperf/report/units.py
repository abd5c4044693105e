"""Numbers for people: thousands separators, units, three digits that mean something."""

from __future__ import annotations

UNKNOWN = "–"


def count(value: int | None) -> str:
    """12345 → "12,345"."""
    return UNKNOWN if value is None else f"{value:,}"


def duration(ns: int | None) -> str:
    """1234567 → "1.23 ms"; seconds keep growing ("4,321 s")."""
    if ns is None:
        return UNKNOWN
    if abs(ns) < 1000:
        return f"{ns} ns"
    return _scaled(ns, ((1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")))


def size(value: int | None) -> str:
    """1234567 → "1.23 MB" (decimal, as bandwidths are)."""
    if value is None:
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value} B"
    return _scaled(value, ((1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB"), (1_000_000_000_000, "TB")))


def binary(value: int) -> str:
    """65536 → "64 KiB": a limit of a class of sizes, a power of two."""
    scale = max((value.bit_length() - 1) // 10, 0)
    return f"{value >> 10 * scale} {('B', 'KiB', 'MiB', 'GiB')[min(scale, 3)]}"


def bandwidth(bytes_per_second: int | None) -> str:
    """24600000000 → "24.6 GB/s"."""
    return UNKNOWN if bytes_per_second is None else f"{size(bytes_per_second)}/s"


def rate(amount: int | None, ns: int) -> str:
    """A number of things in a time, per second."""
    if amount is None or ns <= 0:
        return UNKNOWN
    per_second = amount * 1e9 / ns
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def share(part: int | None, whole: int | None) -> str:
    """(1, 3) → "33.3 %". Never "0.0 %" or "100.0 %" for what is not exactly that."""
    if part is None or not whole:
        return UNKNOWN
    percent = f"{100 * part / whole:.1f}"
    if 0 < part < whole and percent in ("0.0", "100.0"):
        percent = "<0.1" if percent == "0.0" else ">99.9"
    return f"{percent} %"


def _scaled(value: int, scales: tuple[tuple[int, str], ...]) -> str:
    scale, unit = max((pair for pair in scales if abs(value) >= pair[0]), default=scales[0])
    scaled = value / scale
    digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
    if digits == 0 and abs(round(scaled)) >= 1000 and scale != scales[-1][0]:
        scale, unit = scales[scales.index((scale, unit)) + 1]
        return f"{value / scale:.2f} {unit}"
    return f"{scaled:,.{digits}f} {unit}"
