"""The fields that every run has beside its algorithm's parameters."""

from __future__ import annotations

from gym_gui.models.form_state import Field

WATCH = (
    Field("live_mode", default="grid", label="Live view", choices=("grid", "single", "off")),
    Field("live_count", "int", 8, "environments at most", "Pictures", minimum=1, maximum=63),
    Field("live_slot", "int", 0, "the environment that is shown", "Picture of", minimum=0, maximum=63),
)
KEEP = (
    Field("tensorboard", "bool", True, label="TensorBoard", help="a link to the event files in one folder"),
    Field("wandb", "bool", False, label="Weights & Biases"),
)
WANDB = (
    Field("wandb_project_name", label="Project", optional=True, default=None, placeholder="cleanRL"),
    Field("wandb_entity", label="Team or user", optional=True, default=None, placeholder="your own"),
    Field("wandb_run_name", label="Run name", optional=True, default=None, placeholder="the run's id"),
    Field(
        "wandb_api_key",
        "secret",
        None,
        "kept as a secret: in no config, log or database",
        "API key",
        optional=True,
        placeholder="that of this machine",
    ),
    Field("wandb_use_vpn_proxy", "bool", False, label="Through a proxy"),
    Field(
        "wandb_http_proxy", label="HTTP proxy", optional=True, default=None, placeholder="http://host:port"
    ),
    Field(
        "wandb_https_proxy",
        label="HTTPS proxy",
        optional=True,
        default=None,
        placeholder="http://host:port",
        help="empty: what $WANDB_VPN_HTTP_PROXY and $WANDB_VPN_HTTPS_PROXY say",
    ),
)
RESOURCES = (
    Field("cpus", "int", 1, "reserved while the run lives", "CPUs", minimum=1),
    Field("memory_mb", "count", None, "reserved, in megabytes", "Memory", (), 1, None, True, "not reserved"),
    Field("gpu", "bool", False, "reserves a GPU; without a free one it trains on the CPU", "GPU"),
    Field("gpu_mandatory", "bool", False, "start only when one is free", "Wait for the GPU"),
    Field(
        "max_minutes",
        "float",
        None,
        "of work; pauses do not count",
        "Minutes",
        (),
        0.01,
        None,
        True,
        "no limit",
    ),
    Field("max_restarts", "int", 0, "after a fault, from the last checkpoint", "Restarts", minimum=0),
    Field("priority", "int", 0, "the higher starts first", "Priority", minimum=-1000, maximum=1000),
    Field(
        "python",
        "str",
        None,
        "of another virtual environment",
        "Interpreter",
        (),
        None,
        None,
        True,
        "this one",
    ),
)
NAMING = (
    Field(
        "run_name",
        "str",
        None,
        "how the list calls it",
        "Name",
        (),
        None,
        None,
        True,
        "algorithm-environment",
    ),
    Field("tags", "str", "", "words to find it by, with commas between", "Tags"),
    Field("notes", "str", "", "kept with the run", "Notes"),
)
SECRETS = (
    Field(
        "secrets",
        "str",
        "",
        "names of parameters that no file keeps, with commas between; a value @env:NAME is one as well",
        "Secrets",
        placeholder="such as api_key",
    ),
    Field(
        "plain", "str", "", "names of parameters that only look like keys, and may be stored", "No secrets"
    ),
)
TRUST = "trust"
"""Modules that the file of a policy or a checkpoint names, and that the person has said yes to."""
ALL = (*WATCH, *KEEP, *WANDB, *RESOURCES, *NAMING, *SECRETS, Field(TRUST))
