"""A worker's report for people: sections of aligned fields, lists of objects as tables.

It renders whatever the report holds, so that a newer worker's fields show too; what is looked for
first comes first.
"""

from typing import Any, Dict, List, Tuple

from .console import bold

_FIRST = ("version", "address", "pid", "uptime_s", "ready", "serving", "not_serving_because",
          "enable_rdma", "cluster", "peers", "memory", "objects", "directory", "clients", "requests")
_FIRST_OF_ROW = ("address", "lane", "name")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def render(report: Any) -> str:
    """Raises ValueError if the report is no JSON object."""
    if not isinstance(report, dict):
        raise ValueError("not an object")
    fields, sections = _split("", report, _FIRST)
    blocks = [_fields(fields)] if fields else []
    blocks += [f"{bold(title)}\n{_body(content)}" for title, content in sections]
    return "\n\n".join(blocks)


def _split(title: str, content: dict, first: Tuple[str, ...]) -> "tuple[dict, list[tuple[str, Any]]]":
    """The plain fields, and the sections with those nested in them, e.g. ("Cluster members", [...])."""
    fields: Dict[str, Any] = {}
    sections: List[Tuple[str, Any]] = []
    for name in sorted(content, key=lambda n: first.index(n) if n in first else len(first)):
        value = content[name]
        full_title = f"{title} {_label(name)}".strip().capitalize()
        if isinstance(value, dict):
            inner, nested = _split(full_title, value, _FIRST_OF_ROW)
            sections += [(full_title, inner), *nested]
        elif isinstance(value, list) and all(isinstance(row, dict) for row in value):
            sections.append((full_title, value))
        else:
            fields[name] = value
    return fields, sections


def _body(content: Any) -> str:
    if not content:
        return "  none"
    return _fields(content) if isinstance(content, dict) else _table(content)


def _fields(section: dict) -> str:
    width = max(len(_label(name)) for name in section)
    return "\n".join(f"  {_label(name):<{width}}  {_text(name, value)}" for name, value in section.items())


def _table(rows: List[dict]) -> str:
    columns = dict.fromkeys(name for row in rows for name in row)
    columns = sorted(columns, key=lambda n: _FIRST_OF_ROW.index(n) if n in _FIRST_OF_ROW else 9)
    cells = [[_label(name) for name in columns]]
    cells += [[_text(name, row.get(name)) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths)).rstrip()
                     for line in cells)


def _label(name: str) -> str:
    """Names without their units, which the values carry."""
    words = name.split("_")
    kept = [word for word in words if word not in ("bytes", "s")]
    return " ".join(kept or words)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and "bytes" in name.split("_"):
        return _size(value)
    if isinstance(value, (int, float)) and name.endswith("_s"):
        return f"{value} s"
    if isinstance(value, list):
        return ", ".join(_text(name, item) for item in value) or "-"
    return "-" if value is None or value == "" else str(value)


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} B"
    size: float = size_bytes
    unit = 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size /= 1024
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}"
