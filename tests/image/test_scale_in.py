"""A taint of the node has the worker leave. The API server is the test's own, over TLS as ever."""

import http.server
import json
import ssl
import subprocess
import threading

import pytest

from cluster import wait_until

TAINT = {"key": "datasystem/offline", "value": "true", "effect": "NoExecute"}
SCALE_IN_TAINT = "datasystem/offline=true:NoExecute"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN = "token-of-the-account"


class ApiServer:
    """Answers for the one node `node-1`; while `refusing`, as to somebody who lacks the right."""

    def __init__(self, folder):
        self.taints, self.refusing, self.asked = None, False, 0
        self.body = None  # of an answer that is no node
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-nodes",
                        "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=api",
                        "-addext", "subjectAltName=IP:127.0.0.1",
                        "-days", "2", "-keyout", folder / "key", "-out", folder / "ca.crt"],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "ca.crt", folder / "key")
        (folder / "key").unlink()
        (folder / "token").write_text(TOKEN + "\n", encoding="ascii")
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                api.asked += 1
                allowed = self.headers["Authorization"] == f"Bearer {TOKEN}" and not api.refusing
                node = {"spec": {"taints": api.taints} if api.taints else {}}
                body = api.body or json.dumps(node).encode()
                self.send_response(200 if allowed and self.path == "/api/v1/nodes/node-1" else 403)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait_until_asked_again(self):
        before = self.asked
        wait_until(lambda: self.asked > before, 30, "a question of the watcher")

    def end(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def api(pod):
    api = ApiServer(pod.folder("account"))
    yield api
    api.end()


def watched(pod, api):
    return pod.start(volumes={ACCOUNT: pod.folder_of("account")}, SCALE_IN_TAINT=SCALE_IN_TAINT,
                     NODE_ID="node-1", KUBERNETES_SERVICE_HOST="127.0.0.1",
                     KUBERNETES_SERVICE_PORT=api.port)


def test_a_taint_of_the_node_writes_voluntary_scale_in_and_ends_the_worker(pod, api):
    api.refusing = True
    container = watched(pod, api)
    api.wait_until_asked_again()
    api.wait_until_asked_again()
    assert container.output().count("the service account needs the right to get nodes") == 1
    api.refusing, api.taints = False, [{**TAINT, "effect": "NoSchedule"}]
    api.wait_until_asked_again()
    api.wait_until_asked_again()  # the last answer has been looked at
    assert container.worker_pid() and not pod.status_file.exists()
    api.taints.append(TAINT)
    assert container.wait(30) == 0
    assert "the node has the taint datasystem/offline=true:NoExecute" in container.output()
    assert pod.status_file.read_text() in ("voluntary scale in\n", "worker_stop_status:ready\n")


def test_a_worker_serves_on_without_an_api_server_and_stops_as_always(pod, api):
    api.end()
    container = watched(pod, api)
    wait_until(lambda: "cannot read the taints of" in container.output(), 30, "the warning")
    assert container.stop() == 0


def test_an_answer_that_is_no_node_is_a_warning_and_asked_again(pod, api):
    api.body = b'{"spec": {"taints": "none"}}'
    container = watched(pod, api)
    api.wait_until_asked_again()
    api.body, api.taints = None, [TAINT]
    assert container.wait(30) == 0
    assert "cannot read the taints of" in container.output()


def test_outside_kubernetes_taints_are_not_watched_and_that_is_said(pod):
    container = pod.start(SCALE_IN_TAINT=SCALE_IN_TAINT)
    assert "SCALE_IN_TAINT is not watched" in container.output()
    assert container.stop() == 0


@pytest.mark.parametrize("taints", ["offline", "offline=true:Never", "=true:NoExecute",
                                    "a:NoExecute,b"])
def test_a_taint_that_cannot_be_one_is_refused(pod, taints):
    assert "SCALE_IN_TAINT has" in pod.refused(SCALE_IN_TAINT=taints)
