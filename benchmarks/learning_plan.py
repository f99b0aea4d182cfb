"""What learning.py trains, and what each row must reach."""

from __future__ import annotations

from dataclasses import dataclass

SEEDS = (1, 2, 3)
RANGES = {"CartPole-v1": (0, 500), "Acrobot-v1": (-500, 0), "MountainCar-v0": (-200, 0)}
"""The least and the greatest return of an episode."""


@dataclass(frozen=True)
class Job:
    """One run."""

    trainer: str
    """An algorithm of ours, or `sb3_<algorithm>`."""
    env_id: str
    seed: int
    steps: int
    flags: tuple[str, ...] = ()
    teacher: Job | None = None
    """The run whose policy it learns from, which is trained before."""

    @property
    def folder(self) -> str:
        return f"{self.trainer}__{self.env_id}__{self.seed}__{self.steps}"


@dataclass(frozen=True)
class Row:
    """An algorithm on an environment, with several seeds."""

    algo: str
    env_id: str
    steps: int
    published: tuple[float, float] | None = None
    """Mean and standard deviation over seeds in CleanRL's documentation."""
    published_note: str = ""
    """Where the published figure is of another environment or number of steps."""
    least: float | None = None
    """What the mean must reach; None: what `published` gives, where there is a range to go by."""
    most: float | None = None
    """What the mean must not exceed, on a task that the algorithm cannot solve."""
    flags: tuple[str, ...] = ()
    """Hyperparameters that differ from the defaults."""
    peer: str | None = None
    """The algorithm of Stable-Baselines3 that is trained beside it."""
    seeds: tuple[int, ...] = SEEDS
    teacher: Job | None = None
    """The run whose policy all seeds learn from."""

    @property
    def bound(self) -> float | None:
        """What the mean must reach; None where there is nothing that it could fail to reach."""
        if self.least is not None or self.published is None or self.env_id not in RANGES:
            return self.least
        worst, mean = RANGES[self.env_id][0], self.published[0]
        for bound in (mean - 2.0 * self._spread, mean):
            if bound > worst:
                return bound
        return None

    @property
    def bound_text(self) -> str:
        if self.most is not None:
            return f"at most {self.most:g}"
        if self.bound is None:
            return "–"
        if self.least is not None:
            return f"{self.least:g}"
        assert self.published is not None
        if self.bound == self.published[0]:
            return f"{self.bound:.2f}, as published"
        return f"{self.bound:.2f} = {self.published[0]:.2f} − 2 × {self._spread:.2f}"

    def verdict(self, mean: float) -> str:
        """Whether a mean over all seeds is what it must be."""
        if self.most is not None:
            return "yes" if mean <= self.most else "**no**"
        if self.bound is not None:
            return "yes" if mean >= self.bound else "**no**"
        return "–" if self.env_id not in RANGES or mean > RANGES[self.env_id][0] else "not solved here"

    @property
    def published_text(self) -> str:
        if self.published is None:
            return "–"
        mean, std = self.published
        return f"{mean:.2f} ± {std:.2f}{self.published_note and f' ({self.published_note})'}"

    @property
    def _spread(self) -> float:
        assert self.published is not None
        low, high = RANGES[self.env_id]
        return max(self.published[1], 0.05 * (high - low))

    def jobs(self) -> list[Job]:
        return [
            Job(self.algo, self.env_id, seed, self.steps, self.flags, self.teacher) for seed in self.seeds
        ]

    def peer_job(self) -> Job | None:
        return Job(f"sb3_{self.peer}", self.env_id, self.seeds[0], self.steps) if self.peer else None


IN_PYTHON = "--env-backend=python"
"""The small tasks are Python's, also for algorithms that are named after EnvPool."""
IMAGES = ("--num-envs=16", "--num-steps=64", "--update-epochs=3")
CATCH = (*IMAGES, "--learning-rate=5e-4")
CATCH_SAC = (
    "--no-autotune",
    "--alpha=0.01",
    "--policy-lr=5e-4",
    "--q-lr=5e-4",
    "--learning-starts=2000",
    "--target-network-frequency=500",
    "--batch-size=32",
    "--buffer-size=60000",
)
SMALL_TRXL = (
    *("--num-envs=8", "--num-steps=128", "--trxl-dim=64", "--trxl-num-layers=2", "--trxl-memory-length=16"),
    *("--init-lr=1e-3", "--final-lr=1e-4", "--max-grad-norm=0.5"),
    *("--init-ent-coef=0.01", "--final-ent-coef=0.001"),
)
CATCH_TOGETHER = ("--num-envs=8", *CATCH[1:])
"""Of each of two processes: together they have the same rollouts and minibatches."""
CATCHER = Job("ppo_atari", "mosaic/Catch-v0", 1, 150_000, CATCH)
DAGGER = (
    *("--teacher-steps=8000", "--offline-steps=3000", "--learning-rate=5e-4"),
    *("--buffer-size=10000", "--target-network-frequency=250"),
)
CATCH_TRAIL = (*CATCH, '--env-kwargs={"trail": true}', IN_PYTHON)
"""For algorithms that see one frame at a time, as those of Procgen do."""
RECALL = (*IMAGES, "--learning-rate=1e-3", "--ent-coef=0.001")
CATCH_Q = (
    "--learning-starts=2000",
    "--buffer-size=20000",
    "--exploration-fraction=0.3",
    "--target-network-frequency=500",
)
"""The same for algorithms with a replay buffer."""
CATCH_REPLAY = (
    *("--num-envs=4", "--gamma=0.97", "--learning-rate=2.5e-4", "--learning-starts=2000"),
    *("--buffer-size=50000", "--target-network-frequency=500"),
)
EXPLORES = ("--exploration-fraction=0.3", "--end-e=0.02")
UP_TO_ONE = ("--v-min=-1", "--v-max=1")
"""The returns of a catch."""

PLAN = [
    Row("ppo", "CartPole-v1", 500_000, (490.04, 6.12)),
    Row("ppo", "Acrobot-v1", 500_000, (-86.36, 1.32)),
    Row("ppo_atari", "mosaic/Catch-v0", 150_000, least=0.9, flags=CATCH),
    Row("sac_atari", "mosaic/Catch-v0", 60_000, least=0.8, flags=CATCH_SAC),
    Row("dqn_atari", "mosaic/Catch-v0", 50_000, least=0.9, flags=(*CATCH_REPLAY, *EXPLORES)),
    Row("c51_atari", "mosaic/Catch-v0", 60_000, least=0.9, flags=(*CATCH_REPLAY, *EXPLORES, *UP_TO_ONE)),
    Row("rainbow_atari", "mosaic/Catch-v0", 25_000, least=0.9, flags=(*CATCH_REPLAY, *UP_TO_ONE)),
    Row("ppo_atari", "mosaic/Recall-v0", 100_000, most=0.35, flags=RECALL),
    Row("ppo_atari_lstm", "mosaic/Recall-v0", 100_000, least=0.9, flags=RECALL),
    Row("qdagger_dqn_atari_impalacnn", "mosaic/Catch-v0", 20_000, least=0.8, flags=DAGGER, teacher=CATCHER),
    Row(
        "qdagger_dqn_atari_jax_impalacnn",
        "mosaic/Catch-v0",
        20_000,
        least=0.8,
        flags=DAGGER,
        teacher=CATCHER,
    ),
    Row("ppo", "mosaic/Dial-v0", 200_000, most=0.1),
    Row("ppo_masked", "mosaic/Dial-v0", 200_000, least=0.85),
    Row("ppo", "mosaic/Corridor-v0", 150_000, most=0.6),
    Row("ppo_gru", "mosaic/Corridor-v0", 150_000, least=0.9),
    Row("ppo_atari_multigpu", "mosaic/Catch-v0", 150_000, least=0.9, flags=CATCH_TOGETHER),
    Row("ppo_trxl", "mosaic/Corridor-v0", 150_000, least=0.9, flags=SMALL_TRXL),
    Row("a2c", "CartPole-v1", 500_000, least=450.0),
    Row("ppo_pettingzoo_ma_atari", "mosaic/Rally-v0", 150_000, least=2.0, flags=CATCH),
    Row("trpo", "CartPole-v1", 200_000, least=450.0),
    Row("trpo", "InvertedPendulum-v5", 200_000, least=900.0),
    Row("dqn", "CartPole-v1", 500_000, (488.69, 16.11)),
    Row("dqn", "Acrobot-v1", 500_000, (-91.54, 7.20)),
    Row("dqn", "MountainCar-v0", 500_000, (-194.95, 8.48)),
    Row("dqn_jax", "CartPole-v1", 500_000, (498.38, 2.29)),
    Row("dqn_jax", "Acrobot-v1", 500_000, (-88.89, 1.56)),
    Row("c51", "CartPole-v1", 500_000, (481.20, 20.53)),
    Row("c51", "Acrobot-v1", 500_000, (-87.70, 5.52)),
    Row("c51", "MountainCar-v0", 500_000, (-166.38, 27.94)),
    Row("qr_dqn", "CartPole-v1", 300_000, least=400.0),
    Row("iqn", "CartPole-v1", 300_000, least=400.0),
    Row("c51_jax", "CartPole-v1", 500_000, (491.07, 9.70)),
    Row("c51_jax", "Acrobot-v1", 500_000, (-86.74, 2.19)),
    Row("c51_jax", "MountainCar-v0", 500_000, (-174.30, 36.35)),
    Row("sac_discrete", "CartPole-v1", 300_000, least=400.0),
    Row("dqn_atari_jax", "mosaic/Catch-v0", 100_000, least=0.9, flags=CATCH_Q),
    Row("c51_atari_jax", "mosaic/Catch-v0", 100_000, least=0.9, flags=CATCH_Q),
    Row("pqn", "CartPole-v1", 500_000, (495.13, 6.89)),
    Row("pqn", "Acrobot-v1", 500_000, (-95.63, 5.73)),
    Row("pqn", "MountainCar-v0", 500_000, (-200.00, 0.00)),
    Row("ppo_atari_envpool_xla_jax", "mosaic/Catch-v0", 150_000, least=0.9, flags=(*CATCH, IN_PYTHON)),
    Row("ppo_atari_envpool_xla_jax_scan", "mosaic/Catch-v0", 150_000, least=0.9, flags=(*CATCH, IN_PYTHON)),
    Row("pqn_atari_envpool", "mosaic/Catch-v0", 300_000, least=0.9, flags=(*CATCH, IN_PYTHON)),
    Row(
        "pqn_atari_envpool_lstm",
        "mosaic/Recall-v0",
        100_000,
        least=0.9,
        flags=(*IMAGES, "--learning-rate=1e-3", IN_PYTHON),
    ),
    Row(
        "ppo_rnd_envpool",
        "mosaic/Catch-v0",
        150_000,
        least=0.9,
        flags=(*CATCH, "--num-iterations-obs-norm-init=5", IN_PYTHON),
    ),
    Row("ppo_procgen", "mosaic/Catch-v0", 50_000, least=0.9, flags=CATCH_TRAIL),
    Row(
        "ppg_procgen",
        "mosaic/Catch-v0",
        100_000,
        least=0.9,
        flags=(*CATCH_TRAIL[:2], *CATCH_TRAIL[3:], "--n-iteration=8", "--e-auxiliary=3"),
    ),
    Row("ppo_continuous_action", "InvertedPendulum-v5", 1_000_000, (963.09, 22.20), "-v4", least=900.0),
    Row(
        "ppo_continuous_action", "HalfCheetah-v5", 1_000_000, (1442.64, 46.03), "-v4", peer="ppo", seeds=(1,)
    ),
    Row("rpo_continuous_action", "Pendulum-v1", 1_000_000, (-151.08, 3.73), "8,000,000 steps", least=-200.0),
    Row("ddpg_continuous_action", "Pendulum-v1", 50_000, least=-200.0),
    Row("td3_continuous_action", "Pendulum-v1", 50_000, least=-200.0),
    Row("ddpg_continuous_action_jax", "Pendulum-v1", 50_000, least=-200.0),
    Row("td3_continuous_action_jax", "Pendulum-v1", 50_000, least=-200.0),
    Row("sac_continuous_action", "Pendulum-v1", 40_000, least=-200.0),
    Row("tqc", "Pendulum-v1", 20_000, least=-200.0),
    Row("crossq", "Pendulum-v1", 20_000, least=-200.0),
    Row("sac_continuous_action", "HalfCheetah-v5", 40_000, peer="sac", seeds=(1,)),
]
