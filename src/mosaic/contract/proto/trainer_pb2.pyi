from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Transition(_message.Message):
    __slots__ = ("seq", "run_id", "status", "outcome", "reason", "at")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    seq: int
    run_id: str
    status: str
    outcome: str
    reason: str
    at: float
    def __init__(self, seq: _Optional[int] = ..., run_id: _Optional[str] = ..., status: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "run_name", "worker_type", "status", "outcome", "reason", "run_dir", "tags", "submitted_at", "started_at", "ended_at", "exit_code", "supervisor_pid", "training_pid", "config_json", "headline_json", "worker_json", "history", "priority", "gpus", "place", "brief_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_NAME_FIELD_NUMBER: _ClassVar[int]
    WORKER_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RUN_DIR_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SUPERVISOR_PID_FIELD_NUMBER: _ClassVar[int]
    TRAINING_PID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_JSON_FIELD_NUMBER: _ClassVar[int]
    WORKER_JSON_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    BRIEF_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    run_name: str
    worker_type: str
    status: str
    outcome: str
    reason: str
    run_dir: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    submitted_at: float
    started_at: float
    ended_at: float
    exit_code: int
    supervisor_pid: int
    training_pid: int
    config_json: str
    headline_json: str
    worker_json: str
    history: _containers.RepeatedCompositeFieldContainer[Transition]
    priority: int
    gpus: _containers.RepeatedScalarFieldContainer[int]
    place: float
    brief_json: str
    def __init__(self, run_id: _Optional[str] = ..., run_name: _Optional[str] = ..., worker_type: _Optional[str] = ..., status: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., run_dir: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., submitted_at: _Optional[float] = ..., started_at: _Optional[float] = ..., ended_at: _Optional[float] = ..., exit_code: _Optional[int] = ..., supervisor_pid: _Optional[int] = ..., training_pid: _Optional[int] = ..., config_json: _Optional[str] = ..., headline_json: _Optional[str] = ..., worker_json: _Optional[str] = ..., history: _Optional[_Iterable[_Union[Transition, _Mapping]]] = ..., priority: _Optional[int] = ..., gpus: _Optional[_Iterable[int]] = ..., place: _Optional[float] = ..., brief_json: _Optional[str] = ...) -> None: ...

class SubmitRunRequest(_message.Message):
    __slots__ = ("config_json", "request_id", "environment")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    config_json: str
    request_id: str
    environment: _containers.ScalarMap[str, str]
    def __init__(self, config_json: _Optional[str] = ..., request_id: _Optional[str] = ..., environment: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CancelRunRequest(_message.Message):
    __slots__ = ("run_id", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ResumeRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ReorderRunRequest(_message.Message):
    __slots__ = ("run_id", "priority", "before_run_id")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    BEFORE_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    priority: int
    before_run_id: str
    def __init__(self, run_id: _Optional[str] = ..., priority: _Optional[int] = ..., before_run_id: _Optional[str] = ...) -> None: ...

class LabelRunRequest(_message.Message):
    __slots__ = ("run_id", "run_name", "tags", "notes")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_NAME_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    run_name: str
    tags: TagList
    notes: str
    def __init__(self, run_id: _Optional[str] = ..., run_name: _Optional[str] = ..., tags: _Optional[_Union[TagList, _Mapping]] = ..., notes: _Optional[str] = ...) -> None: ...

class TagList(_message.Message):
    __slots__ = ("tags",)
    TAGS_FIELD_NUMBER: _ClassVar[int]
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tags: _Optional[_Iterable[str]] = ...) -> None: ...

class ControlStreamRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ControlMessage(_message.Message):
    __slots__ = ("pause", "resume", "grant_steps", "max_rate_hz")
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    GRANT_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    pause: bool
    resume: bool
    grant_steps: int
    max_rate_hz: float
    def __init__(self, pause: _Optional[bool] = ..., resume: _Optional[bool] = ..., grant_steps: _Optional[int] = ..., max_rate_hz: _Optional[float] = ...) -> None: ...

class Published(_message.Message):
    __slots__ = ("seq", "at", "payload_json")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    seq: int
    at: float
    payload_json: str
    def __init__(self, seq: _Optional[int] = ..., at: _Optional[float] = ..., payload_json: _Optional[str] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("run_id", "items")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    items: _containers.RepeatedCompositeFieldContainer[Published]
    def __init__(self, run_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Published, _Mapping]]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("accepted",)
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    accepted: int
    def __init__(self, accepted: _Optional[int] = ...) -> None: ...

class StreamPublishedRequest(_message.Message):
    __slots__ = ("run_id", "since_seq", "follow")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_SEQ_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    since_seq: int
    follow: bool
    def __init__(self, run_id: _Optional[str] = ..., since_seq: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class PublishedBatch(_message.Message):
    __slots__ = ("items", "dropped")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Published]
    dropped: int
    def __init__(self, items: _Optional[_Iterable[_Union[Published, _Mapping]]] = ..., dropped: _Optional[int] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("statuses", "outcomes", "tags", "without_tags", "algo", "env_id", "run_ids", "ended_before", "filter", "order_by", "ascending", "fields", "limit", "cursor", "count")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TAGS_FIELD_NUMBER: _ClassVar[int]
    ALGO_FIELD_NUMBER: _ClassVar[int]
    ENV_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    ENDED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    ASCENDING_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedScalarFieldContainer[str]
    outcomes: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.RepeatedScalarFieldContainer[str]
    without_tags: _containers.RepeatedScalarFieldContainer[str]
    algo: str
    env_id: str
    run_ids: _containers.RepeatedScalarFieldContainer[str]
    ended_before: float
    filter: str
    order_by: str
    ascending: bool
    fields: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    cursor: str
    count: bool
    def __init__(self, statuses: _Optional[_Iterable[str]] = ..., outcomes: _Optional[_Iterable[str]] = ..., tags: _Optional[_Iterable[str]] = ..., without_tags: _Optional[_Iterable[str]] = ..., algo: _Optional[str] = ..., env_id: _Optional[str] = ..., run_ids: _Optional[_Iterable[str]] = ..., ended_before: _Optional[float] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ..., ascending: _Optional[bool] = ..., fields: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., count: _Optional[bool] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_cursor", "counts")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[Run]
    next_cursor: str
    counts: _containers.RepeatedCompositeFieldContainer[StateCount]
    def __init__(self, runs: _Optional[_Iterable[_Union[Run, _Mapping]]] = ..., next_cursor: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[StateCount, _Mapping]]] = ...) -> None: ...

class StateCount(_message.Message):
    __slots__ = ("status", "outcome", "runs")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    status: str
    outcome: str
    runs: int
    def __init__(self, status: _Optional[str] = ..., outcome: _Optional[str] = ..., runs: _Optional[int] = ...) -> None: ...

class DeleteRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class DeleteRunResponse(_message.Message):
    __slots__ = ("freed_bytes",)
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    freed_bytes: int
    def __init__(self, freed_bytes: _Optional[int] = ...) -> None: ...

class AdoptRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class WatchRunsRequest(_message.Message):
    __slots__ = ("since_seq", "run_id", "headlines")
    SINCE_SEQ_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HEADLINES_FIELD_NUMBER: _ClassVar[int]
    since_seq: int
    run_id: str
    headlines: bool
    def __init__(self, since_seq: _Optional[int] = ..., run_id: _Optional[str] = ..., headlines: _Optional[bool] = ...) -> None: ...

class RunUpdate(_message.Message):
    __slots__ = ("transition", "headline", "run", "removed")
    TRANSITION_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    transition: Transition
    headline: Headline
    run: Run
    removed: str
    def __init__(self, transition: _Optional[_Union[Transition, _Mapping]] = ..., headline: _Optional[_Union[Headline, _Mapping]] = ..., run: _Optional[_Union[Run, _Mapping]] = ..., removed: _Optional[str] = ...) -> None: ...

class Headline(_message.Message):
    __slots__ = ("run_id", "headline_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    headline_json: str
    def __init__(self, run_id: _Optional[str] = ..., headline_json: _Optional[str] = ...) -> None: ...

class RegisterWorkerRequest(_message.Message):
    __slots__ = ("run_id", "worker_id", "worker_kind", "proto_version", "schema_id", "schema_version", "supports_pause", "supports_checkpoint", "pid", "details_json")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_KIND_FIELD_NUMBER: _ClassVar[int]
    PROTO_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_PAUSE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    DETAILS_JSON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    worker_id: str
    worker_kind: str
    proto_version: str
    schema_id: str
    schema_version: int
    supports_pause: bool
    supports_checkpoint: bool
    pid: int
    details_json: str
    def __init__(self, run_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., worker_kind: _Optional[str] = ..., proto_version: _Optional[str] = ..., schema_id: _Optional[str] = ..., schema_version: _Optional[int] = ..., supports_pause: _Optional[bool] = ..., supports_checkpoint: _Optional[bool] = ..., pid: _Optional[int] = ..., details_json: _Optional[str] = ...) -> None: ...

class RegisterWorkerResponse(_message.Message):
    __slots__ = ("session_token",)
    SESSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    session_token: str
    def __init__(self, session_token: _Optional[str] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("run_id", "seq")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    seq: int
    def __init__(self, run_id: _Optional[str] = ..., seq: _Optional[int] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StreamMetricsRequest(_message.Message):
    __slots__ = ("run_id", "cursor", "follow")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    cursor: str
    follow: bool
    def __init__(self, run_id: _Optional[str] = ..., cursor: _Optional[str] = ..., follow: _Optional[bool] = ...) -> None: ...

class Series(_message.Message):
    __slots__ = ("tag", "steps", "wall_times", "values")
    TAG_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    WALL_TIMES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    tag: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    wall_times: _containers.RepeatedScalarFieldContainer[float]
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, tag: _Optional[str] = ..., steps: _Optional[_Iterable[int]] = ..., wall_times: _Optional[_Iterable[float]] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class MetricChunk(_message.Message):
    __slots__ = ("source", "purge_from", "series")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PURGE_FROM_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    source: str
    purge_from: int
    series: _containers.RepeatedCompositeFieldContainer[Series]
    def __init__(self, source: _Optional[str] = ..., purge_from: _Optional[int] = ..., series: _Optional[_Iterable[_Union[Series, _Mapping]]] = ...) -> None: ...

class MetricBatch(_message.Message):
    __slots__ = ("chunks", "cursor")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[MetricChunk]
    cursor: str
    def __init__(self, chunks: _Optional[_Iterable[_Union[MetricChunk, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class StreamLogsRequest(_message.Message):
    __slots__ = ("run_id", "stream", "offset", "follow")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    stream: str
    offset: int
    follow: bool
    def __init__(self, run_id: _Optional[str] = ..., stream: _Optional[str] = ..., offset: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class LogChunk(_message.Message):
    __slots__ = ("data", "offset")
    DATA_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    offset: int
    def __init__(self, data: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...

class GetHealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Health(_message.Message):
    __slots__ = ("version", "pid", "uptime_seconds", "live_runs", "waiting_runs", "cpus", "cpus_reserved", "last_seq", "problems", "disk_free_bytes", "memory_mb", "memory_mb_reserved", "gpus", "gpus_reserved", "notices")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LIVE_RUNS_FIELD_NUMBER: _ClassVar[int]
    WAITING_RUNS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CPUS_RESERVED_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_RESERVED_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    GPUS_RESERVED_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    version: str
    pid: int
    uptime_seconds: float
    live_runs: int
    waiting_runs: int
    cpus: int
    cpus_reserved: int
    last_seq: int
    problems: _containers.RepeatedScalarFieldContainer[str]
    disk_free_bytes: int
    memory_mb: int
    memory_mb_reserved: int
    gpus: int
    gpus_reserved: int
    notices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[str] = ..., pid: _Optional[int] = ..., uptime_seconds: _Optional[float] = ..., live_runs: _Optional[int] = ..., waiting_runs: _Optional[int] = ..., cpus: _Optional[int] = ..., cpus_reserved: _Optional[int] = ..., last_seq: _Optional[int] = ..., problems: _Optional[_Iterable[str]] = ..., disk_free_bytes: _Optional[int] = ..., memory_mb: _Optional[int] = ..., memory_mb_reserved: _Optional[int] = ..., gpus: _Optional[int] = ..., gpus_reserved: _Optional[int] = ..., notices: _Optional[_Iterable[str]] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
