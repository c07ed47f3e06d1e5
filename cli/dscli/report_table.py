"""A worker's report for people: sections of aligned fields, lists of objects as tables.

It renders whatever the report holds, in the report's order, so that a newer worker's fields show too.
"""

from typing import Any, List

from .console import bold

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def render(report: Any) -> str:
    if not isinstance(report, dict):
        raise ValueError("not an object")
    plain = {name: value for name, value in report.items() if not _is_section(value)}
    blocks = [_fields(plain)] if plain else []
    for name, value in report.items():
        if _is_section(value):
            lines = _fields(value) if isinstance(value, dict) else _table(value)
            blocks.append(f"{bold(_title(name))}\n{lines}")
    return "\n\n".join(blocks)


def _is_section(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _fields(section: dict) -> str:
    if not section:
        return "  none"
    width = max(len(_label(name)) for name in section)
    return "\n".join(f"  {_label(name):<{width}}  {_text(name, value)}" for name, value in section.items())


def _table(rows: List[dict]) -> str:
    if not rows:
        return "  none"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_label(name) for name in columns]]
    cells += [[_text(name, row.get(name, "")) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = ["  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths)).rstrip()
             for line in cells]
    return "\n".join(lines)


def _label(name: str) -> str:
    return (name[:-len("_bytes")] if name.endswith("_bytes") else name).replace("_", " ")


def _title(name: str) -> str:
    return _label(name).capitalize()


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("_bytes"):
        return _size(value)
    if isinstance(value, dict):
        return ", ".join(f"{_label(k)} {_text(k, v)}" for k, v in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(_text(name, v) for v in value) or "-"
    return "-" if value is None or value == "" else str(value)


def _size(size_bytes: int) -> str:
    size: float = size_bytes
    for unit in _UNITS:
        if abs(size) < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
