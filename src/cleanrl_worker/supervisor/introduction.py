"""What this worker says of itself at the handshake."""

from __future__ import annotations

from cleanrl_worker.config.worker_config import CleanRLWorkerConfig
from mosaic.worker.telemetry import Introduction


def introduce(config: CleanRLWorkerConfig) -> Introduction:
    """The fields of `RegisterWorker`, from the run's config."""
    extras = config.extras
    return Introduction(
        run_id=config.run_id,
        worker_id=config.worker_id or f"cleanrl-worker-{config.run_id[:8]}",
        worker_kind="cleanrl",
        schema_id=str(extras.get("schema_id") or f"cleanrl.{config.algo}"),
        schema_version=int(extras.get("schema_version") or 1),
        supports_pause=bool(extras.get("supports_pause")),
        supports_checkpoint=bool(extras.get("supports_checkpoint")),
        details={
            "algo": config.algo,
            "env_id": config.env_id,
            "seed": config.seed,
            "mode": config.mode,
            **({"agent_id": config.agent_id} if config.agent_id else {}),
        },
    )
