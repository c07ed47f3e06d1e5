"""The JSON schema of each key of the chart's values, for make_chart.py."""
import re

_PATH = {"pattern": r"^/[A-Za-z0-9._/-]+$"}
_OPTIONAL_PATH = {"type": "string", "pattern": r"^(/[A-Za-z0-9._/-]+)?$"}
_QUANTITY = {"type": ["string", "number"], "exclusiveMinimum": 0,
             "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|K|M|G|T|Ki|Mi|Gi|Ti)?$"}
_NUMA = {"pattern": r"^(all|[!+]?[0-9]+([-,][0-9]+)*)?$"}
_BASE64 = {"pattern": r"^[A-Za-z0-9+/\r\n]*={0,2}\s*$"}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 67108864}


def closed(properties, **more):
    """An object that has no other properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


_QUANTITIES = closed({name: _QUANTITY for name in ("cpu", "memory", "hugepages2Mi")})
_NAMED = {
    "mount": {"type": "array", "items": closed({
        "hostPath": _OPTIONAL_PATH, "mountPath": _OPTIONAL_PATH, "readOnly": {"type": "boolean"},
        "type": {"enum": ["", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
                          "CharDevice", "BlockDevice"]}})},
    "multiSpec": {"type": "array", "items": closed({
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$"},
        "affinityLabel": {"type": ["object", "string"], "pattern": "^[^=]+=[^=]*$",
                          "additionalProperties": {"type": "string"}, "minProperties": 1},
        "resources": closed({"limits": _QUANTITIES, "requests": _QUANTITIES}),
        "workerResources": closed({"sharedMemory": _COUNT})}, required=["name", "affinityLabel"])},
}

# What the worker's help says after "Allowed:", as patterns.
_WORDS = {
    "letters and digits": r"^[A-Za-z0-9]*$",
    "ip:port or name:port, separated by commas":
        r"^((\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}(,|$))*$",
}


def of(key):
    """The schema of one key; `key` is a Key of make_chart.py."""
    extra = key.row.get("schema", {})
    if isinstance(extra, str):
        return _NAMED[extra]
    if key.row.get("quantity"):
        return _QUANTITY
    schema = {"type": _type(key.default)}
    if schema["type"] == "string" and key.kind is bool:
        return {"enum": [True, False, "true", "false"]}
    if schema["type"] == "string" and key.kind is int:
        return {"type": ["string", "integer"], "pattern": "^[0-9]+$", "minimum": 0}
    if key.flag and schema["type"] == "integer":
        schema.update(minimum=0, maximum=2**31 - 1)
    schema.update(_allowed(key.rule, schema["type"]))
    for name, kind in (("path", _PATH), ("numa", _NUMA), ("base64", _BASE64)):
        if key.row.get(name):
            schema.update(kind)
    schema.update(extra)
    return schema


def _type(value):
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (list, "array"),
                       (dict, "object")):
        if isinstance(value, kind):
            return name
    raise TypeError(f"{value!r} has no type in JSON schema")


def _allowed(rule, kind):
    """Of the flag's row in the worker's table."""
    if kind == "integer":
        return {name: rule[name] for name in ("minimum", "maximum") if name in rule}
    if "choices" in rule:
        return {"enum": rule["choices"]}
    words = rule.get("allowed", "")
    length = re.fullmatch(r"at most ([0-9]+) characters", words)
    if length:
        return {"maxLength": int(length[1])}
    return {"pattern": _WORDS[words]} if words in _WORDS else {}
