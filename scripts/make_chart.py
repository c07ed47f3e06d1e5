#!/usr/bin/env python3
"""Writes what the Helm chart takes from docker/chart/keys.json and the worker's table of flags:
Chart.yaml, values.yaml, values.schema.json and templates/_flags.tpl.

    make_chart.py --worker build/src/worker/datasystem_worker            writes them
    make_chart.py --worker build/src/worker/datasystem_worker --check    fails when they differ

keys.json names every key of values.yaml once, in order. A key is one of

    {"flag": NAME}        a flag of the worker; type, default, range and text are the worker's
    {"default": VALUE}    something of the chart, which its templates read

and may have:

    "default"    another one than the worker's
    "text"       more to say
    "schema"     added to the key's JSON schema, or the name of one in chart_schema.py
    "arg"        false: a template passes it in its own way, or nothing does
    "example"    lines below the text
    "path", "base64", "quantity", "numa"    kinds of text
"""
import argparse
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import chart_schema

SOURCE = Path(__file__).resolve().parent.parent
CHART = SOURCE / "docker" / "chart" / "datasystem"
KEYS = SOURCE / "docker" / "chart" / "keys.json"
WIDTH = 100
ATTRIBUTES = {"flag", "default", "text", "schema", "arg", "example", "path", "base64", "quantity",
              "numa"}

CHART_YAML = """\
# Written by scripts/make_chart.py.
apiVersion: v2
name: datasystem
description: A distributed in-memory cache, one worker on each node
type: application
version: {version}
appVersion: "{version}"
kubeVersion: ">=1.25.0-0"
"""

VALUES_HEADER = """\
# Values of the chart. Written by scripts/make_chart.py; in a copy, edit freely.
#
# Most keys are flags of the worker: the name in [brackets], explained in docs/flags.md.
#   No effect:      known, checked, and does nothing in this version; the worker's log says so when
#                   it is changed
#   Not supported:  only the default is accepted
"""

TEMPLATE_HEADER = """\
{{- /* Written by scripts/make_chart.py from docker/chart/keys.json and the worker's flags. */}}
"""


class Key:
    """One key of values.yaml; `flags` is the worker's table: {name: row}."""

    def __init__(self, path, row, flags, version):
        self.path = path
        self.row = row
        unknown = ", ".join(set(row) - ATTRIBUTES)
        if unknown:
            raise SystemExit(f"make_chart.py: {path}: unknown in {KEYS.name}: {unknown}")
        self.flag = row.get("flag")
        if self.flag and self.flag not in flags:
            raise SystemExit(f"make_chart.py: {path}: the worker has no flag {self.flag}")
        self.rule = flags[self.flag] if self.flag else {}
        self.default = row["default"] if "default" in row else self.rule["dscli_default"]
        if isinstance(self.default, str):
            self.default = self.default.replace("@VERSION@", version)
        self.refused = self._reason("refused")
        self.without_effect = self._reason("accepted")
        if self.refused and self.default != self.rule["default"]:
            raise SystemExit(f"make_chart.py: {path}: refused by the worker: {self.default}")

    def _reason(self, effect):
        return self.rule.get("reason", "") if self.rule.get("effect") == effect else ""

    @property
    def description(self):
        words = [self.rule["description"]] if self.flag else []
        if words and self.rule.get("allowed"):
            words.append(f"Allowed: {self.rule['allowed']}.")
        if words and self.without_effect:
            words.append(f"No effect: {self.without_effect}.")
        if self.refused:
            words.append(f"Not supported: {self.refused}.")
        if self.live:
            words.append("Changes without a restart.")
        if "text" in self.row:
            words.append(self.row["text"])
        return " ".join(words)

    @property
    def live(self):
        """Whether it may change while the worker runs: then it is in the ConfigMap."""
        return self.rule.get("live", False) and self.rule["effect"] == "used"

    @property
    def passed(self):
        """Whether the generated templates hand the flag to the worker."""
        return bool(self.flag) and not self.refused and self.row.get("arg", True)

    @property
    def kind(self):
        """Of the flag, whatever the default is written as: a text may hold a number."""
        return type(self.rule["default"] if self.flag else self.default)


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def load(flags, version):
    """keys.json with a Key in place of each row."""
    def walk(path, node):
        if "flag" in node or "default" in node:
            return Key(path, node, flags, version)
        return {name: walk(f"{path}.{name}" if path else name, child)
                for name, child in node.items()}
    return walk("", json.loads(KEYS.read_text()))


def keys_of(tree):
    for node in tree.values():
        if isinstance(node, Key):
            yield node
        else:
            yield from keys_of(node)


def _comment(text, indent):
    prefix = " " * indent + "# "
    return textwrap.fill(text, WIDTH, initial_indent=prefix, subsequent_indent=prefix,
                         break_long_words=False, break_on_hyphens=False) + "\n"


def values_yaml(tree):
    lines = [VALUES_HEADER, "global:\n"]

    def write(node, indent):
        for name, child in node.items():
            if indent == 2:
                lines.append("\n")
            if not isinstance(child, Key):
                lines.append(f"{' ' * indent}{name}:\n")
                write(child, indent + 2)
                continue
            flag = f"[{child.flag}] " if child.flag else ""
            lines.append(_comment(flag + child.description, indent))
            for line in child.row.get("example", "").splitlines():
                lines.append(f"{' ' * indent}#   {line}\n")
            # JSON is YAML.
            lines.append(f"{' ' * indent}{name}: {json.dumps(child.default)}\n")
    write(tree, 2)
    return "".join(lines)


def schema_json(tree):
    def node_schema(node):
        if isinstance(node, Key):
            return chart_schema.of(node)
        # Helm takes null for "without this key". Only a list or a mapping may be left out so.
        needed = [name for name, child in node.items()
                  if not (isinstance(child, Key) and isinstance(child.default, (list, dict)))]
        return chart_schema.closed({name: node_schema(child) for name, child in node.items()},
                                   required=needed)
    document = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "datasystem",
                **chart_schema.closed({"global": node_schema(tree)})}
    return json.dumps(document, indent=1) + "\n"


def _shown(key):
    """The value as the worker reads it; Helm takes numbers for floating-point ones."""
    value = f".Values.global.{key.path}"
    return f"{value} | int64" if key.kind is int else value


def _line(key, dash):
    value = _shown(key)
    text = f'{{{{ printf "{dash}{key.flag}=%v" ({value}) | quote }}}}'
    if dash == "--":
        text = f"{dash}{key.flag}={{{{ {value} }}}}"
    else:
        text = "- " + text
    # A text that is empty is a flag that is not given. And a key without effect is passed when it
    # was changed, for the worker to say so in its log, not for nothing at every start.
    if key.without_effect:
        unless = json.dumps(_text(key.default))
        return f"{{{{- if ne (toString ({value})) {unless} }}}}\n{text}\n{{{{- end }}}}\n"
    if key.kind is str:
        return f"{{{{- if {value} }}}}\n{text}\n{{{{- end }}}}\n"
    return text + "\n"


def _refusal(key):
    value = f".Values.global.{key.path}"
    default = _text(key.default)
    say = f"global.{key.path}: not supported, {key.refused}; leave it at {json.dumps(key.default)}"
    return (f"{{{{- if ne (toString ({value})) {json.dumps(default)} }}}}"
            f"{{{{ fail {json.dumps(say)} }}}}{{{{ end }}}}\n")


def flags_template(tree):
    keys = list(keys_of(tree))
    args = "".join(_line(key, "-") for key in keys if key.passed and not key.live)
    live = "".join(_line(key, "--") for key in keys if key.passed and key.live)
    refusals = "".join(_refusal(key) for key in keys if key.refused)
    return "\n".join([
        TEMPLATE_HEADER,
        "{{- /* Arguments that values.yaml decides alone. */}}",
        '{{- define "datasystem.flagArgs" }}\n' + args + "{{- end }}\n",
        "{{- /* Content of monitor_config_file: the flags that may change at run time. */}}",
        '{{- define "datasystem.liveFlags" }}\n' + live + "{{- end }}\n",
        "{{- /* Ends the rendering when a value asks for what the worker refuses. */}}",
        '{{- define "datasystem.refusals" }}\n' + refusals + "{{- end }}\n"])


def generated(flags):
    """{path below the chart: content}"""
    version = (SOURCE / "VERSION").read_text().strip()
    tree = load(flags, version)
    return {"Chart.yaml": CHART_YAML.format(version=version), "values.yaml": values_yaml(tree),
            "values.schema.json": schema_json(tree), "templates/_flags.tpl": flags_template(tree)}


def printed_flags(worker):
    """The worker's table of flags: {name: row}."""
    table = subprocess.run([str(worker), "--print_flags=table"], check=True,
                           stdout=subprocess.PIPE).stdout
    return {row["name"]: row for row in json.loads(table)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", required=True, help="datasystem_worker of this source")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args()
    differ = []
    for name, content in generated(printed_flags(options.worker)).items():
        path = CHART / name
        if path.exists() and path.read_text() == content:
            continue
        differ.append(name)
        if not options.check:
            path.write_text(content)
    if options.check and differ:
        sys.exit(f"{CHART}: not as scripts/make_chart.py makes them: {', '.join(differ)}; run it")
    print(f"{CHART}: {'wrote ' + ', '.join(differ) if differ else 'nothing to change'}")


if __name__ == "__main__":
    main()
