"""Opens pages with and without a proxy; prints what was loaded, and what the proxy was asked for, as JSON.

proxied_page.py LOCAL-ADDRESS
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from gym_gui.ui.widgets.web_page import WebPage

asked = []


class Proxy(BaseHTTPRequestHandler):
    """Answers every page with the same words."""

    def do_GET(self):
        asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>through the proxy")

    def log_message(self, *_):
        pass


def opened(address):
    """Whether the page was loaded."""
    answers = []
    page.loaded.connect(answers.append)
    page.open(address, QColor("white"))
    deadline = time.monotonic() + 60
    while not answers and time.monotonic() < deadline:
        app.processEvents()
        time.sleep(0.01)
    page.loaded.disconnect(answers.append)
    return answers


server = HTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"127.0.0.1:{server.server_port}"
# Of the environment, which nobody asked the page to use.
os.environ["http_proxy"] = os.environ["HTTP_PROXY"] = f"http://{address}"
app = QApplication([])
told = []
for proxy, wanted in (("", 0), (f"http://somebody:word@{address}", 1), ("", 2)):
    page = WebPage(sandboxed=os.geteuid() != 0, local=False, proxy=proxy)
    page.show()
    told += [opened(f"http://tracker.invalid/me/runs/{wanted}"), opened(sys.argv[1])]
    page.end()
    page.deleteLater()
print(json.dumps({"loaded": told, "asked": [path for path in asked if "favicon" not in path]}), flush=True)
server.shutdown()
