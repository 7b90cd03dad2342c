"""How numbers and tables are written."""

from __future__ import annotations


def ms(seconds):
    """Milliseconds to three digits."""
    return f"{seconds * 1e3:.3g}" if seconds < 0.9995 else f"{seconds * 1e3:.0f}"


def mb(size):
    return f"{size / 1e6:.1f}"


def times(ratio):
    """How many times as long somebody takes; nothing where nobody came to an end."""
    return f"{ratio:.2f}x" if ratio < float("inf") else ""


def table(head, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])
