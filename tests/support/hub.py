"""A stand-in of the Hugging Face hub: so much of its HTTP interface as the real client needs, on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

yaml: Any = import_module("yaml")

TOKEN = "hf_stand1nT0kenOfTh1sTest0nly99"
READ_TOKEN = "hf_r3adT0kenOfTh1sTest0nly4242"
USER, TEAM = "tester", "team"
_LARGE = 4_000
"""Files from this size on go by LFS, as do those that are binary."""


@dataclass
class Repo:
    """A model on the hub, by its revisions."""

    private: bool = False
    commits: list[dict[str, bytes]] = field(default_factory=lambda: [{}])
    named: dict[str, int] = field(default_factory=dict)
    """Tags, by the numbers of their commits."""
    messages: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes that are told in place of the real ones."""

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1]


def sha(number: int) -> str:
    """The id of a commit."""
    return hashlib.sha1(str(number).encode()).hexdigest()


class StandInHub:
    """What the hub has, what it was asked, and how it is to fail."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens = {TOKEN: USER, READ_TOKEN: "reader"}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.fails: dict[str, int] = {}
        """The status with which requests whose line has this part are answered."""
        self.silent = threading.Event()
        """While it is set, a commit is not answered."""
        self.address = ""

    def add(self, repo: str, files: dict[str, bytes], private: bool = False) -> Repo:
        self.repos[repo] = Repo(private, [files])
        return self.repos[repo]

    def environment(self, token: str | None = TOKEN) -> dict[str, str]:
        """Variables with which a process asks this hub and no other."""
        told = {"HF_ENDPOINT": self.address, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        return {**told, "HF_HOME": "/nonexistent/hf", "HF_TOKEN": token or ""}


@contextmanager
def stand_in_hub() -> Iterator[StandInHub]:
    hub = StandInHub()

    class Handler(_Handler):
        pass

    Handler.hub = hub
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            hub.silent.clear()
            server.shutdown()
            thread.join()


class _Refused(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


_MODEL = r"/api/models/(?P<repo>[^/]+/[^/]+)"


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET

    def _answer(self) -> None:
        place = urlsplit(self.path)
        path = unquote(place.path)
        self.query = parse_qs(place.query)
        length = int(self.headers.get("Content-Length") or 0)
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        self.body = self._chunks() if chunked else self.rfile.read(length)
        line = f"{self.command} {path}"
        self.hub.asked.append(line)
        try:
            for part, status in self.hub.fails.items():
                if part in line:
                    raise _Refused(status, message="as the test wants it")
            for verb, pattern, name in _ROUTES:
                found = re.fullmatch(pattern, path)
                if found and self.command in verb.split():
                    getattr(self, name)(**found.groupdict())
                    return
            raise _Refused(404, "EntryNotFound", f"no such route: {line}")
        except _Refused as refused:
            headers = {"X-Error-Code": refused.code} if refused.code else {}
            self._send(
                refused.status, {"error": refused.message}, {**headers, "X-Error-Message": refused.message}
            )
        except (BrokenPipeError, ConnectionResetError):
            return

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().strip(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _user(self, needed: bool = True) -> str | None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if given and given not in self.hub.tokens:
            raise _Refused(401, message="Invalid credentials in Authorization header")
        if needed and not given:
            raise _Refused(401, message="Invalid username or password.")
        return self.hub.tokens.get(given)

    def _repo(self, name: str, write: bool = False) -> Repo:
        user = self._user(needed=write)
        repo = self.hub.repos.get(name)
        sees = user == USER and name.partition("/")[0] in (USER, TEAM)
        if repo is None or (repo.private and not sees):
            raise _Refused(404 if user else 401, "RepoNotFound" if user else "", "Repository not found")
        if write and user == "reader":
            raise _Refused(403, message="You don't have the rights to do this")
        return repo

    def _snapshot(self, repo: Repo, revision: str) -> tuple[str, dict[str, bytes]]:
        ids = {sha(number): number for number in range(len(repo.commits))} | repo.named
        number = len(repo.commits) - 1 if revision == "main" else ids.get(revision, -1)
        if number < 0:
            raise _Refused(404, "RevisionNotFound", "Invalid rev id")
        return sha(number), repo.commits[number]

    def whoami(self) -> None:
        self._send(200, {"name": self._user(), "type": "user"})

    def create(self) -> None:
        user, asked = self._user(), json.loads(self.body)
        if user == "reader":
            raise _Refused(403, message="You don't have the rights to create a model under this namespace")
        name = f"{asked.get('organization') or user}/{asked['name']}"
        told = {"url": f"{self.hub.address}/{name}", "name": name}
        if name in self.hub.repos:
            self._send(409, {**told, "error": "You already created this model repo"})
            return
        self.hub.repos[name] = Repo(
            private=asked.get("visibility") == "private" or bool(asked.get("private"))
        )
        self._send(200, told)

    def validate(self) -> None:
        content = json.loads(self.body)["content"]
        try:
            told = yaml.safe_load(content.split("---\n")[1])
            assert isinstance(told["tags"], list)
        except (yaml.YAMLError, LookupError, TypeError, AssertionError) as error:
            self._send(400, {"errors": [{"message": str(error)}], "warnings": []})
            return
        self._send(200, {"errors": [], "warnings": []})

    def tree(self, repo: str, revision: str) -> None:
        _, files = self._snapshot(self._repo(repo), revision)
        rows = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in files.items()
        ]
        self._send(200, rows)

    def info(self, repo: str, revision: str = "main") -> None:
        found = self._repo(repo)
        commit, files = self._snapshot(found, revision)
        parts = files.get("README.md", b"").decode().split("---\n")
        card = yaml.safe_load(parts[1]) if len(parts) > 2 else None
        siblings = [
            {
                "rfilename": name,
                "size": found.sizes.get(name, len(data)),
                "blobId": hashlib.sha1(data).hexdigest(),
            }
            for name, data in files.items()
        ]
        told = {"id": repo, "modelId": repo, "sha": commit, "private": found.private, "siblings": siblings}
        self._send(
            200, {**told, "tags": [], "downloads": 0, "likes": 0, **({"cardData": card} if card else {})}
        )

    def preupload(self, repo: str, revision: str) -> None:
        self._repo(repo, write=True)
        rows = []
        for one in json.loads(self.body)["files"]:
            binary = b"\0" in base64.b64decode(one["sample"])
            large = binary or one["size"] >= _LARGE
            mode = "lfs" if large and one["path"] != "README.md" else "regular"
            rows.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None})
        self._send(200, {"files": rows})

    def batch(self, repo: str) -> None:
        self._repo(repo, write=True)
        objects = []
        for one in json.loads(self.body)["objects"]:
            href = f"{self.hub.address}/lfs/{one['oid']}"
            there = one["oid"] in self.hub.blobs
            actions = (
                {} if there else {"actions": {"upload": {"href": href}, "verify": {"href": f"{href}/verify"}}}
            )
            objects.append({**one, **actions})
        self._send(200, {"transfer": "basic", "objects": objects})

    def put(self, oid: str) -> None:
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.hub.blobs[oid] = self.body
        self._send(200, {})

    def verify(self, oid: str) -> None:
        self._send(200 if oid in self.hub.blobs else 404, {})

    def commit(self, repo: str, revision: str) -> None:
        while self.hub.silent.is_set():
            threading.Event().wait(0.05)
        found = self._repo(repo, write=True)
        files = dict(found.files)
        for line in self.body.splitlines():
            one = json.loads(line)
            value = one["value"]
            if one["key"] == "header":
                found.messages.append(value["summary"])
            elif one["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif one["key"] == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif one["key"] == "deletedFile":
                del files[value["path"]]
        found.commits.append(files)
        commit = sha(len(found.commits) - 1)
        url = f"{self.hub.address}/{repo}/commit/{commit}"
        self._send(200, {"success": True, "commitOid": commit, "commitUrl": url})

    def resolve(self, repo: str, revision: str, name: str) -> None:
        commit, files = self._snapshot(self._repo(repo), revision)
        if name not in files:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        etag = hashlib.sha1(files[name]).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        self._send(200, files[name], headers)


_ROUTES = (
    ("GET", "/api/whoami-v2", "whoami"),
    ("POST", "/api/repos/create", "create"),
    ("POST", "/api/validate-yaml", "validate"),
    ("GET", f"{_MODEL}/tree/(?P<revision>[^/]+)", "tree"),
    ("GET", f"{_MODEL}/revision/(?P<revision>[^/]+)", "info"),
    ("GET", _MODEL, "info"),
    ("POST", f"{_MODEL}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", f"{_MODEL}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", r"/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", "batch"),
    ("PUT", "/lfs/(?P<oid>[0-9a-f]+)", "put"),
    ("POST", "/lfs/(?P<oid>[0-9a-f]+)/verify", "verify"),
    ("GET HEAD", r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)", "resolve"),
)
