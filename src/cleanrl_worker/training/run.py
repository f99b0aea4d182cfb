"""What every algorithm has around its loop: seeds, environments, curves, checkpoints and a clean end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from cleanrl_worker.curriculum import parse_schedule
from cleanrl_worker.eval_registry import SavedModel, find_entry, open_model
from cleanrl_worker.policy_card import PolicyCard
from cleanrl_worker.training.checkpoints import Checkpoints
from cleanrl_worker.training.common import CommonArgs
from cleanrl_worker.training.device import pick_device
from cleanrl_worker.training.envs import VectorEnv, make_envs
from cleanrl_worker.training.evaluation import Evaluation
from cleanrl_worker.training.evaluator import Evaluator
from cleanrl_worker.training.normalise import Normaliser
from cleanrl_worker.training.seeding import seed_everything
from cleanrl_worker.training.state import Held, Stateful
from cleanrl_worker.training.stopping import Stopped, StopSignals
from cleanrl_worker.training.timing import Stopwatch
from cleanrl_worker.training.weights import plain_weights
from cleanrl_worker.training.writer import RunWriter
from mosaic.contract.errors import MosaicError, UserError


@dataclass
class Run:
    """One training run while it is open."""

    algo: str
    args: CommonArgs
    envs: VectorEnv
    writer: RunWriter
    checkpoints: Checkpoints
    evaluator: Evaluator
    device: torch.device
    stop: StopSignals
    watch: Stopwatch = field(default_factory=Stopwatch)
    model: Any = None
    """What `save_model` writes at the end: a module, or the algorithm's known form of several."""
    _step: int = 0
    _normaliser: Stateful | None = None
    _scores: Held = field(default_factory=lambda: Held(scored_at=0))

    def resume(self, loop: Held, **parts: Stateful) -> None:
        """Let checkpoints hold the loop's values and these parts, and take them up from an earlier run."""
        self._normaliser = parts.get("normaliser")
        self.checkpoints.hold(
            loop=loop, envs=self.envs, scores=self._scores, returns=self.writer.recent_returns, **parts
        )
        self.checkpoints.restore(self.model)
        self.writer.begin_stage(self.envs.stage, int(loop.values["global_step"]))
        self._step = int(loop.values["global_step"])
        self.watch.start(self._step)
        # An evaluation that a stop signal cut short is made up for.
        self._score_when_due()

    def between_updates(self, step: int, loop: Held, **values: Any) -> None:
        """The loop is between two updates at `step`: a moment to report, to checkpoint and to stop."""
        self.watch.report(self.writer, step)
        loop.values.update(values)
        self._step = step
        self._score_when_due()
        self.checkpoints.between_updates(step, self.writer, self.stop)

    def add_losses(self, losses: dict[str, float], step: int) -> None:
        """Record the losses of an update; training that has come apart ends here, with a word."""
        for name, value in losses.items():
            if value != value or value in (float("inf"), float("-inf")):
                raise MosaicError(
                    f"The loss {name} is no longer finite at step {step}; try a lower learning rate."
                )
            self.writer.add_scalar(f"losses/{name}", value, step)

    def _score_when_due(self) -> None:
        """Now and then, see how good the policy is: by an evaluation if asked for, else by its training."""
        every = self.args.eval_every or self.args.checkpoint_every
        if not every or self._step - self._scores.values["scored_at"] < every:
            return
        self.watch.enter("eval")
        if not self.args.eval_every:
            self._scores.values["scored_at"] = self._step
            mean = self.writer.recent_returns.take_mean()
            if mean is not None:
                self.checkpoints.save_best(self._step, self.writer, mean, self.envs.reached_stage)
            return
        with contextlib.suppress(Stopped):
            name = f"The policy of step {self._step}"
            self._keep_score(self.evaluator.play(name, lambda: self._present_model(name)))

    def _keep_score(self, found: Evaluation | None) -> None:
        """Record an evaluation of the policy as it is now, and keep the policy if it is the best so far."""
        self._scores.values["scored_at"] = self._step
        if found is None:
            return
        self.writer.add_scalar("eval/mean_return", found.mean, self._step)
        self.writer.add_scalar("eval/std_return", found.std, self._step)
        if self.checkpoints.save_best(self._step, self.writer, found.mean) and self.args.save_model:
            self.save_model(best=True)

    def _present_model(self, name: str) -> SavedModel:
        card = self._card()
        weights = plain_weights(self.model)
        return SavedModel(name, find_entry(self.algo), self.args, weights, card.normaliser, card.step)

    def save_model(self, best: bool = False) -> None:
        """Write the weights, with a card that says what they are of; not before there are any."""
        if self.model is not None:
            self.writer.save_model(plain_weights(self.model), self._card(), best)

    def evaluate_saved(self) -> None:
        """Play the model file, as anybody would who has it."""
        if self.model is None or not self.args.eval_episodes:
            return
        path = self.writer.model_path()
        found = self.evaluator.play(str(path), lambda: open_model(path))
        for number, total in enumerate(found.returns if found else ()):
            self.writer.add_scalar("eval/episodic_return", total, number)
        if self.args.eval_every and self._scores.values["scored_at"] < self._step:
            self._keep_score(found)

    def _card(self) -> PolicyCard:
        args = {name: value for name, value in dataclasses.asdict(self.args).items() if name != "resume_from"}
        seen = self._normaliser.statistics() if isinstance(self._normaliser, Normaliser) else None
        return PolicyCard(self.algo, args, self._step, seen)


@contextlib.contextmanager
def open_run(algo: str, args: CommonArgs, num_envs: int, stop: StopSignals) -> Iterator[Run]:
    """A run of `algo`; its model is saved when the loop ends, and then evaluated, or is asked to stop."""
    check_budget(args, num_envs)
    schedule = parse_schedule(args.curriculum)
    seed_everything(args.seed, args.torch_deterministic)
    checkpoints = Checkpoints(algo, args)
    with contextlib.ExitStack() as opened:
        envs = opened.enter_context(
            make_envs(algo, args.env_id, num_envs, args.env_kwargs, args.capture_video, schedule)
        )
        writer = opened.enter_context(RunWriter(args, checkpoints.earlier))
        evaluator = opened.enter_context(Evaluator(args, stop))
        run = Run(algo, args, envs, writer, checkpoints, evaluator, pick_device(args.cuda), stop)
        try:
            yield run
        except Stopped:
            if args.save_model:
                run.save_model()
            raise
        run.watch.finish(writer)
        if args.save_model:
            run.save_model()
            run.evaluate_saved()


def check_budget(args: CommonArgs, num_envs: int) -> None:
    """Raise UserError for numbers that each may be right, but not together."""
    if args.total_timesteps < num_envs:
        raise UserError(
            f"total_timesteps is {args.total_timesteps}, which is less than one step of {num_envs} "
            "environments; raise it or lower num_envs."
        )
    if args.eval_every and not args.eval_episodes:
        raise UserError("eval_every asks for evaluations of no episodes; raise eval_episodes.")
