"""A stand-in for the HTTP interface of Weights & Biases, on loopback: it keeps what the real client sends.

It answers what `wandb` 0.31 asks, and keeps runs as the service does: the lines of a run's history by their
numbers, so that a line that is sent twice is seen, files, and artifacts with their files.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef0123456789abcdef01234567"
ENTITY = "somebody"


@dataclass
class ServiceRun:
    """One run as the service knows it."""

    name: str
    project: str
    entity: str
    said: dict[str, Any] = field(default_factory=dict)
    """What its last upsert said, by the names of the variables; null values are left out."""
    streams: dict[str, list[str]] = field(default_factory=dict)
    """The lines of its history, events and summary."""
    exit_code: int | None = None
    overwritten: int = 0
    """Lines of the history that were sent a second time."""

    @property
    def history(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.streams.get("wandb-history.jsonl", [])]

    @property
    def summary(self) -> dict[str, Any]:
        lines = self.streams.get("wandb-summary.json", [])
        return dict(json.loads(lines[-1])) if lines else {}

    @property
    def config(self) -> dict[str, Any]:
        told = json.loads(self.said.get("config") or "{}")
        return {name: entry["value"] for name, entry in told.items() if name != "_wandb"}

    @property
    def telemetry(self) -> dict[str, Any]:
        """By this the client tells a run that was begun by another from an empty one."""
        told = json.loads(self.said.get("config") or "{}").get("_wandb", {}).get("value", {})
        return {"t": told["t"]} if "t" in told else {}

    def points(self, tag: str, step: str = "global_step") -> list[tuple[int, float]]:
        """A curve, in the order in which it came."""
        return [(row[step], row[tag]) for row in self.history if tag in row]


@dataclass
class ServiceArtifact:
    """One artifact: what it is called, and the names of its files with their bytes."""

    name: str
    type: str
    run: str
    committed: bool = False
    files: dict[str, bytes] = field(default_factory=dict)


class WandbService:
    """The service; a context manager. `url` goes to the client as `WANDB_BASE_URL`."""

    def __init__(self) -> None:
        self.runs: dict[str, ServiceRun] = {}
        self.artifacts: dict[str, ServiceArtifact] = {}
        self.blobs: dict[str, bytes] = {}
        self.asked: list[str] = []
        """The operations of GraphQL that were asked for, and the paths of all else."""
        self.unknown: list[str] = []
        """What nobody here has an answer for."""
        self.via_proxy: list[str] = []
        """Absolute addresses that it was asked for, as a proxy is."""
        self.keys: set[str] = set()
        self.accepts = True
        """Whether it takes the API key."""
        self.delay = 0.0
        """Seconds before each answer."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        # Each answer comes to its end before a test does.
        self._server.daemon_threads = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> WandbService:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 3.0

            def log_message(self, format: str, *args: Any) -> None: ...

            def handle(self) -> None:
                # A client that is killed, or has all it wants, hangs up.
                with contextlib.suppress(ConnectionError):
                    super().handle()

            def _body(self) -> bytes:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

            def _answer(self, value: Any, code: int = 200) -> None:
                data = json.dumps(value).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _serve(self) -> None:
                body = self._body()
                service._closing.wait(service.delay)
                with service._lock:
                    code, value = service._take(self.command, self.path, self.headers, body)
                self._answer(value, code)

            do_GET = do_POST = do_PUT = _serve

        return Handler

    def _take(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path.startswith("http"):
            self.via_proxy.append(path)
            path = "/" + path.split("/", 3)[3]
        if path.startswith("/blobs/"):
            self.blobs[path] = body
            return 200, {}
        sign = headers.get("Authorization", "")
        if sign.startswith("Basic "):
            self.keys.add(base64.b64decode(sign[6:]).decode().partition(":")[2])
        if not self.accepts or not sign:
            return 401, {"errors": [{"message": "user is not logged in"}]}
        if path == "/graphql":
            return self._graphql(json.loads(body))
        self.asked.append(path)
        stream = re.fullmatch(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream", path)
        if stream and method == "POST":
            return self._file_stream(self.runs[stream[3]], json.loads(body))
        self.unknown.append(f"{method} {path}")
        return 404, {"errors": [{"message": "there is no such page"}]}

    def _file_stream(self, run: ServiceRun, sent: dict[str, Any]) -> tuple[int, Any]:
        for name, part in (sent.get("files") or {}).items():
            lines, offset = run.streams.setdefault(name, []), part["offset"]
            if name == "wandb-history.jsonl":
                run.overwritten += max(0, min(len(lines), offset + len(part["content"])) - offset)
            lines[offset : offset + len(part["content"])] = part["content"]
        if sent.get("complete"):
            run.exit_code = sent.get("exitcode")
        return 200, {"limits": {}}

    def _graphql(self, asked: dict[str, Any]) -> tuple[int, Any]:
        found = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"])
        name = found[1] if found else "?"
        self.asked.append(name)
        answer: Callable[[dict[str, Any]], Any] | None = getattr(self, f"_{name}", None)
        if answer is None:
            self.unknown.append(name)
            return 400, {"errors": [{"message": f"no such operation {name}"}]}
        return 200, {"data": answer(asked.get("variables") or {})}

    # The operations, by their names in the client's queries.

    def _Viewer(self, said: dict[str, Any]) -> Any:
        return {
            "viewer": {
                "id": "u1",
                "entity": ENTITY,
                "username": ENTITY,
                "email": "",
                "flags": "{}",
                "teams": {"edges": [{"node": {"name": ENTITY}}]},
            }
        }

    def _ServerFeaturesQuery(self, said: dict[str, Any]) -> Any:
        return {"serverInfo": {"features": []}}

    def _OrganizationCoreWeaveOrganizationID(self, said: dict[str, Any]) -> Any:
        return {"entity": {"organization": {"coreWeaveOrganizationId": None}}}

    def _RunResumeStatus(self, said: dict[str, Any]) -> Any:
        run = self.runs.get(said["name"])
        if run is None:
            return {"model": None}
        history = run.streams.get("wandb-history.jsonl", [])
        events = run.streams.get("wandb-events.jsonl", [])
        bucket = {
            "id": f"b-{run.name}",
            "name": run.name,
            "displayName": run.said.get("displayName"),
            "summaryMetrics": json.dumps(run.summary),
            "config": run.said.get("config") or "{}",
            "historyLineCount": len(history),
            "eventsLineCount": len(events),
            "logLineCount": 0,
            "historyTail": json.dumps(history[-1:]),
            "eventsTail": json.dumps(events[-1:]),
            "tags": run.said.get("tags") or [],
            "notes": run.said.get("notes"),
            "wandbConfig": json.dumps(run.telemetry),
        }
        entity = {"id": "e1", "name": run.entity}
        return {"model": {"id": "p1", "name": run.project, "entity": entity, "bucket": bucket}}

    def _UpsertBucket(self, said: dict[str, Any]) -> Any:
        name = said.get("name") or str(said["id"]).removeprefix("b-")
        entity, project = said.get("entity") or ENTITY, said.get("project") or "uncategorized"
        known = name in self.runs
        run = self.runs.setdefault(name, ServiceRun(name, project, entity))
        run.said |= {key: value for key, value in said.items() if value is not None}
        bucket = {
            "id": f"b-{name}",
            "name": name,
            "displayName": run.said.get("displayName") or name,
            "description": None,
            "config": run.said.get("config") or "{}",
            "sweepName": None,
            "project": {"id": "p1", "name": run.project, "entity": {"id": "e1", "name": run.entity}},
            "historyLineCount": len(run.history),
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": not known}}

    def _CreateRunFiles(self, said: dict[str, Any]) -> Any:
        files = [{"name": name, "uploadUrl": self._blob(f"{said['run']}/{name}")} for name in said["files"]]
        return {"createRunFiles": {"runID": said["run"], "uploadHeaders": [], "files": files}}

    def files_of(self, run: str) -> dict[str, bytes]:
        """The files of a run that have arrived, by their names."""
        return self._below(f"/blobs/{run}/")

    def _below(self, prefix: str) -> dict[str, bytes]:
        found = [path for path in self.blobs if path.startswith(prefix)]
        return {path.removeprefix(prefix): self.blobs[path] for path in found}

    def _MarkRunFilesUploaded(self, said: dict[str, Any]) -> Any:
        return {"markRunFilesUploaded": {"success": True}}

    def _ArtifactType(self, said: dict[str, Any]) -> Any:
        return {"project": None}

    def _blob(self, name: str) -> str:
        return f"{self.url}/blobs/{name}"

    def _FetchArtifactDigestAlgorithm(self, said: dict[str, Any]) -> Any:
        return {"project": None}

    def _XXHashDigestsEnabled(self, said: dict[str, Any]) -> Any:
        return {"entity": {"xxhashDigestsEnabled": False}}

    def _CreateArtifact(self, said: dict[str, Any]) -> Any:
        given = said["input"]
        number = f"a{len(self.artifacts)}"
        name = (given.get("artifactCollectionNames") or [given.get("artifactCollectionName")])[0]
        self.artifacts[number] = ServiceArtifact(str(name), given["artifactTypeName"], given["runName"])
        sequence = {"id": "s1", "latestArtifact": None}
        artifact = {
            "id": number,
            "state": "PENDING",
            "digest": given.get("digest"),
            "artifactSequence": sequence,
        }
        return {"createArtifact": {"artifact": artifact}}

    def _manifest(self, artifact: str) -> Any:
        url = self._blob(f"manifest/{artifact}")
        return {"id": f"m-{artifact}", "file": {"id": f"f-{artifact}", "uploadUrl": url, "uploadHeaders": []}}

    def _CreateArtifactManifest(self, said: dict[str, Any]) -> Any:
        return {"createArtifactManifest": {"artifactManifest": self._manifest(said["artifactID"])}}

    def _UpdateArtifactManifest(self, said: dict[str, Any]) -> Any:
        artifact = str(said["artifactManifestID"]).removeprefix("m-")
        return {"updateArtifactManifest": {"artifactManifest": self._manifest(artifact)}}

    def _CreateArtifactFiles(self, said: dict[str, Any]) -> Any:
        nodes: list[dict[str, Any]] = []
        for file in said["input"]["artifactFiles"]:
            artifact, name = file["artifactID"], file["name"]
            place = f"artifacts/{artifact}/{name}"
            url = self._blob(place)
            nodes.append(
                {
                    "storagePath": place,
                    "uploadUrl": url,
                    "uploadHeaders": [],
                    "uploadMultipartUrls": None,
                    "artifact": {"id": artifact},
                }
            )
        return {"createArtifactFiles": {"files": {"edges": [{"node": node} for node in nodes]}}}

    def _CommitArtifact(self, said: dict[str, Any]) -> Any:
        artifact = self.artifacts[said["artifactID"]]
        artifact.files = self._below(f"/blobs/artifacts/{said['artifactID']}/")
        artifact.committed = True
        return {"commitArtifact": {"artifact": {"id": said["artifactID"], "digest": "d"}}}
