"""The table of results."""

from dataclasses import dataclass

HEADINGS = ("what", "ours (p99)", "peer (p99)", "peer is", "ratio", "target", "met")


@dataclass
class Target:
    limit: float
    at_least: bool = False

    def __str__(self):
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"

    def met_by(self, ratio):
        return ratio >= self.limit if self.at_least else ratio <= self.limit


@dataclass
class Row:
    what: str
    ours: str
    peer: str
    peer_name: str
    ratio: float
    target: "Target | None" = None

    @property
    def met(self):
        if self.target is None:
            return ""
        return "yes" if self.target.met_by(self.ratio) else "NO"

    def cells(self):
        digits = 3 if self.ratio < 0.1 else 2
        return (self.what, self.ours, self.peer, self.peer_name, f"{self.ratio:.{digits}f}",
                str(self.target or ""), self.met)


def size_text(size):
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.0f} ns"


def bandwidth_text(bytes_per_s):
    return f"{bytes_per_s / 1e9:.2f} GB/s"


def markdown(rows):
    lines = ["| " + " | ".join(HEADINGS) + " |", "| " + " | ".join("---" for _ in HEADINGS) + " |"]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def plain(rows):
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([text[0], "-" * max(map(len, text)), *text[1:]])
