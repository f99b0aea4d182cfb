"""Opens the tab of a run that has a page, in a window of its own, and prints what became of it as JSON.

shown_page.py VAR RUN TAB MODULE; MODULE is that of the tab.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.pop("MOSAIC_WEB", None)

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from gym_gui.app import Desktop

OUTSIDE = "https://mosaic.invalid/elsewhere"
ASK = """
window.said = [];
for (const address of ["file:///etc/passwd", "http://127.0.0.1:1/", "https://mosaic.invalid/"])
    fetch(address).then(() => said.push("reached " + address), () => said.push("refused"));
navigator.clipboard.readText().then(() => said.push("read"), () => said.push("refused"));
Notification.requestPermission().then(answer => said.push(answer === "granted" ? answer : "refused"));
"""


def until(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        app.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        time.sleep(0.01)


def evaluate(code):
    answers = []
    view.page.view.page().runJavaScript(code, 0, answers.append)
    until(lambda: answers)
    return answers[0]


def click(address):
    evaluate(f"a = document.createElement('a'); a.href = '{address}'; document.body.append(a); a.click(); 1")
    until(lambda: address in opened)


app = QApplication([])
var, run_id, title, module = sys.argv[1:5]
opened = []
importlib.import_module(module).open_url = lambda address, _: opened.append(address)
desktop = Desktop(Path(var))
window, bar = desktop.window, desktop.window.page.bar
window.resize(1280, 800)
window.show()
at_start = [name for name in sys.modules if "QtWebEngine" in name]
until(lambda: window.context.runs.get(run_id) is not None)
window.select_run(run_id)
until(lambda: title in [bar.tabText(at) for at in range(bar.count())])
bar.setCurrentIndex([bar.tabText(at) for at in range(bar.count())].index(title))
until(lambda: any(type(view).__module__ == module for view in window.page.views.values()))
view = next(view for view in window.page.views.values() if type(view).__module__ == module)
until(lambda: view.page is not None and view.page.isVisible())
until(lambda: "episodic_return" in (evaluate("document.body?.innerText ?? ''") or ""))
address = evaluate("location.href")
evaluate(ASK)
until(lambda: evaluate("said.length") == 5)
click(OUTSIDE)
colours = len({view.page.grab().toImage().pixel(x, y) for x in range(0, 900, 7) for y in range(0, 500, 7)})
told = {
    "at_start": at_start,
    "address": address,
    "said": evaluate("said.join()").split(","),
    "bridge": evaluate("typeof qt + typeof QWebChannel"),
    "still": evaluate("location.href"),
    "opened": opened,
    "colours": colours,
    "board": window.context.board.pid,
    "messages": [one.text for one in desktop.notifications.history if one.kind in ("warn", "bad")],
}
print(json.dumps(told), flush=True)
window.close()
