"""A page of a server on this machine, or of a tracker, within the window.

Only who shows a page imports this: it brings in QtWebEngine, which is an optional set and large.
`python -m gym_gui.ui.widgets.web_page` tries in a process of its own whether that runs here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import shiboken6
from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QColor
from PySide6.QtNetwork import QNetworkProxy, QNetworkProxyFactory
from PySide6.QtQuick import QQuickWindow, QSGRendererInterface
from PySide6.QtWebEngineCore import (
    QWebEngineDownloadRequest,
    QWebEngineNewWindowRequest,
    QWebEnginePage,
    QWebEngineProfile,
    QWebEngineScript,
    QWebEngineSettings,
    QWebEngineUrlRequestInfo,
    QWebEngineUrlRequestInterceptor,
)
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from gym_gui.services.web import NO_SANDBOX, PROBE_SECONDS
from gym_gui.ui.widgets.basics import vbox

_FLAGS, _SANDBOX = "QTWEBENGINE_CHROMIUM_FLAGS", "QTWEBENGINE_DISABLE_SANDBOX"
_QUIET = "--disable-gpu --disable-logging --log-level=3"
"""Drawn by the processor: a driver that crashes would take the window along."""
_DENIED = (
    QWebEngineSettings.WebAttribute.JavascriptCanAccessClipboard,
    QWebEngineSettings.WebAttribute.JavascriptCanOpenWindows,
    QWebEngineSettings.WebAttribute.LocalContentCanAccessFileUrls,
    QWebEngineSettings.WebAttribute.LocalContentCanAccessRemoteUrls,
    QWebEngineSettings.WebAttribute.PluginsEnabled,
    QWebEngineSettings.WebAttribute.ScreenCaptureEnabled,
    QWebEngineSettings.WebAttribute.WebRTCPublicInterfacesOnly,
)
_Check = Callable[[QUrl], bool]
_OWN_SCHEMES = ("http", "https", "ws", "wss")


@contextmanager
def _started_with(sandboxed: bool) -> Iterator[None]:
    """What QtWebEngine reads when it starts, and no process that the window starts later."""
    before = {name: os.environ.get(name) for name in (_FLAGS, _SANDBOX)}
    os.environ[_FLAGS] = f"{before[_FLAGS] or ''} {_QUIET}".strip()
    if not sandboxed:
        os.environ[_SANDBOX] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@cache
def _draw_in_software() -> None:
    """Qt's part of a page as well; it wants to know before the first."""
    QQuickWindow.setGraphicsApi(QSGRendererInterface.GraphicsApi.Software)


class _OnlyOurs(QWebEngineUrlRequestInterceptor):
    """Blocks every request of a page that leaves what it may reach."""

    def __init__(self, allowed: _Check, parent: QWidget) -> None:
        super().__init__(parent)
        self._allowed = allowed

    def interceptRequest(self, info: QWebEngineUrlRequestInfo) -> None:
        if not self._allowed(info.requestUrl()):
            info.block(True)


class _Page(QWebEnginePage):
    """Stays where it may be; other places that somebody clicks are `left`."""

    left = Signal(str)

    def __init__(self, profile: QWebEngineProfile, allowed: _Check, is_own: _Check, parent: QWidget) -> None:
        super().__init__(profile, parent)
        self._allowed, self._is_own = allowed, is_own
        self.newWindowRequested.connect(self._open_outside)
        self.permissionRequested.connect(lambda asked: asked.deny())

    def acceptNavigationRequest(
        self, url: QUrl | str, kind: QWebEnginePage.NavigationType, main: bool
    ) -> bool:
        url = QUrl(url)
        clicked = main and kind == QWebEnginePage.NavigationType.NavigationTypeLinkClicked
        if clicked and not self._is_own(url):
            self._leave(url)
            return False
        return self._allowed(url)

    def javaScriptConsoleMessage(self, *_: object) -> None:
        """What a page says to its developers is nothing for the window's log."""

    def _open_outside(self, request: QWebEngineNewWindowRequest) -> None:
        self._leave(request.requestedUrl())

    def _leave(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https"):
            self.left.emit(url.toString())


def _site(url: QUrl) -> str:
    """The end of a name by which its owner is known; all of a number."""
    host = url.host()
    return host if host.replace(".", "").isdigit() else ".".join(host.split(".")[-2:])


def _proxy_at(address: str) -> QNetworkProxy:
    url = QUrl(address)
    if not url.host():
        return QNetworkProxy(QNetworkProxy.ProxyType.NoProxy)
    kind = QNetworkProxy.ProxyType.HttpProxy
    return QNetworkProxy(kind, url.host(), url.port(8080), url.userName(), url.password())


class WebPage(QWidget):
    """One page, with a profile of its own that writes nothing to disk and knows nothing of the window."""

    left = Signal(str)
    """An address that somebody clicked and that is not shown here."""
    loaded = Signal(bool)
    crashed = Signal()
    """The process that shows the page has ended."""

    def __init__(self, sandboxed: bool, local: bool = True, proxy: str = "") -> None:
        """With `local` the page is of a server on loopback, and reaches nothing else.

        Another one is read through `proxy`, where that is given. There may be one such page at a time: Qt has
        one proxy for all of a process, which a page takes up when it is made.
        """
        super().__init__()
        self._local = local
        if not local:
            QNetworkProxy.setApplicationProxy(_proxy_at(proxy))
        self._origin = QUrl()
        _draw_in_software()
        # Those of the environment are for programs that were asked to use them.
        QNetworkProxyFactory.setUseSystemConfiguration(False)
        with _started_with(sandboxed):
            self._profile = QWebEngineProfile(self)
            self.view = QWebEngineView(self)
        self._profile.setUrlRequestInterceptor(_OnlyOurs(self._allowed, self))
        self._profile.downloadRequested.connect(self._download)
        self._page = _Page(self._profile, self._allowed, self._is_own, self)
        for attribute in _DENIED:
            self._page.settings().setAttribute(attribute, False)
        self._page.left.connect(self.left)
        self._page.loadFinished.connect(self.loaded)
        if not local:
            # What says nothing of its colours is written in black, and meant to be on white.
            self._page.loadFinished.connect(lambda _: self._page.setBackgroundColor(QColor("white")))
        self._page.renderProcessTerminated.connect(lambda *_: self.crashed.emit())
        self.view.setPage(self._page)
        self.view.setContextMenuPolicy(self.view.contextMenuPolicy().NoContextMenu)
        vbox(self.view, on=self)

    def prepare(self, source: str) -> None:
        """What every page runs before its own scripts."""
        script = QWebEngineScript()
        script.setInjectionPoint(QWebEngineScript.InjectionPoint.DocumentCreation)
        script.setWorldId(QWebEngineScript.ScriptWorldId.MainWorld)
        script.setSourceCode(source)
        self._page.scripts().clear()
        self._page.scripts().insert(script)

    def open(self, address: str, background: QColor) -> None:
        """Show an address; until it has something to show, the colour of the window."""
        self._origin = QUrl(address)
        self._page.setBackgroundColor(background)
        self._page.load(self._origin)

    def end(self) -> None:
        """Let go of the page before its profile: QtWebEngine wants it so."""
        if shiboken6.isValid(self._page):
            self.view.setPage(None)  # type: ignore[arg-type]
            shiboken6.delete(self._page)

    def _allowed(self, url: QUrl) -> bool:
        if url.scheme() in ("about", "data", "blob"):
            return True
        # Who is logged in somewhere comes by way of other servers.
        return (not self._local and url.scheme() in ("https", "wss")) or self._is_own(url)

    def _is_own(self, url: QUrl) -> bool:
        """Whether an address is of the server of the page; a tracker's may have several names."""
        if url.scheme() not in _OWN_SCHEMES:
            return False
        if not self._local and url.scheme() in ("https", "wss"):
            return _site(url) == _site(self._origin)
        return (url.host(), url.port()) == (self._origin.host(), self._origin.port())

    def _download(self, request: QWebEngineDownloadRequest) -> None:
        asked, _ = QFileDialog.getSaveFileName(self.window(), "Save", request.downloadFileName())
        if not asked:
            request.cancel()
            return
        folder, _, name = asked.rpartition("/")
        request.setDownloadDirectory(folder)
        request.setDownloadFileName(name)
        request.accept()


def main() -> int:
    """Draw a page as the window would, where nobody sees it; 0 when that has worked."""
    app = QApplication(sys.argv[:1])
    page = WebPage(NO_SANDBOX not in sys.argv)
    page.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    page.resize(64, 64)
    page.show()
    page.loaded.connect(lambda good: app.exit(0 if good and not page.grab().isNull() else 1))
    page.crashed.connect(lambda: app.exit(1))
    page.open("data:text/html,<p>MOSAIC", QColor("white"))
    QTimer.singleShot(int(PROBE_SECONDS * 1000), lambda: app.exit(1))
    code = app.exec()
    page.end()
    return code


if __name__ == "__main__":
    sys.exit(main())
