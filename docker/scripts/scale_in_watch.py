#!/usr/bin/env python3
"""Waits until the node of this pod has one of the given taints, then has the worker leave for good.

Started by worker_entry.sh. Reads the node from the Kubernetes API with the pod's service account,
which needs the right to get nodes. What cannot be reached is a warning, once, and asked again: a
cluster whose API is away serves on.
"""

import argparse
import http.client
import json
import os
import signal
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
INTERVAL_S = 5
ANSWER_BYTES_MAX = 16 << 20
# Not reached, not HTTP, not JSON, not a node.
UNREADABLE = (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError)


def say(text):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{now} scale_in_watch.py: {text}", file=sys.stderr, flush=True)


def spelled(taint):
    """key=value:Effect, as in `kubectl taint`; key:Effect for a taint without a value."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def node_url():
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    node = urllib.parse.quote(os.environ["NODE_ID"], safe="")
    return f"https://{host}:{port}/api/v1/nodes/{node}"


def node_taints(url):
    # Token and authority are read each time: Kubernetes replaces them.
    token = (ACCOUNT / "token").read_text(encoding="ascii").strip()
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    # Never by a proxy of the environment: it would get the token.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                         urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=INTERVAL_S) as answer:
        node = json.loads(answer.read(ANSWER_BYTES_MAX))
    return {spelled(taint) for taint in node["spec"].get("taints") or []}


def reason_of(error):
    if isinstance(error, urllib.error.HTTPError) and error.code in (401, 403):
        return f"{error}; the service account needs the right to get nodes"
    return repr(error)


def wait_for_taint(url, wanted, pid):
    """The taint that was found; None when the worker has ended."""
    warned = False
    while Path(f"/proc/{pid}").exists():
        try:
            found = node_taints(url) & wanted
        except UNREADABLE as error:
            if not warned:
                say(f"WARNING: cannot read the taints of {url}, trying on: {reason_of(error)}")
            warned = True
        else:
            warned = False
            if found:
                return min(found)
        time.sleep(INTERVAL_S)
    return None


def leave(status_file, pid):
    scratch = Path(f"{status_file}.new")
    try:
        scratch.write_text("voluntary scale in\n", encoding="ascii")
        scratch.replace(status_file)
    except OSError as error:
        say(f"WARNING: cannot write {status_file}, the worker leaves as if it came back: {error}")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it was faster


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taints", required=True, help="key=value:Effect, several with commas")
    parser.add_argument("--status-file", required=True, help="where to write 'voluntary scale in'")
    parser.add_argument("--pid", required=True, type=int, help="the worker")
    options = parser.parse_args()
    try:
        url = node_url()
    except KeyError as missing:
        say(f"WARNING: taints are not watched: the environment has no {missing.args[0]}")
        return
    wanted = {taint for taint in options.taints.split(",") if taint}
    say(f"watching {url} for {', '.join(sorted(wanted))}")
    taint = wait_for_taint(url, wanted, options.pid)
    if taint:
        say(f"the node has the taint {taint}: the worker leaves the cluster for good")
        leave(options.status_file, options.pid)


if __name__ == "__main__":
    main()
