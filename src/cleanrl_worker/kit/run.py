"""A training run: what an algorithm's page asks for, and what happens between two of its updates."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cleanrl_worker.config.checkpoint_files import PolicyCard
from cleanrl_worker.evaluation.episodes import FIRST_SEED, MOST_ENVS, Evaluator, evaluate
from cleanrl_worker.kit.args import CommonArgs
from cleanrl_worker.kit.backend import Backend, find_backend
from cleanrl_worker.kit.checkpoints import Checkpoints
from cleanrl_worker.kit.envs import Envs, Episode, Step
from cleanrl_worker.kit.open_envs import open_envs, open_episodes
from cleanrl_worker.kit.parsing import make_args, parse_args
from cleanrl_worker.kit.spec import AlgorithmSpec, Misfit, fill_model, split_model
from cleanrl_worker.kit.state import Held, Stateful
from cleanrl_worker.kit.stopping import Stopped, StopSignals, run_script
from cleanrl_worker.kit.timing import Stopwatch
from cleanrl_worker.kit.video import warn
from cleanrl_worker.kit.writer import RUN_DIR_VARIABLE, RunWriter
from cleanrl_worker.portable.fastlane.lane import unwatched
from cleanrl_worker.schemas.check import check_together, warn_together
from cleanrl_worker.schemas.environments import choose_backend, gymnasium_id
from mosaic.contract.atomic import write_json
from mosaic.contract.errors import MosaicError, UserError
from mosaic.contract.outside import read_json
from mosaic.contract.phases import announce_phase

if TYPE_CHECKING:
    from cleanrl_worker.evaluation.episodes import Evaluation
    from cleanrl_worker.evaluation.models import SavedModel
    from cleanrl_worker.kit.policy import Policy

ArgsT = TypeVar("ArgsT", bound=CommonArgs)
PartT = TypeVar("PartT")
LOG_EVERY = 100
"""Environment steps between two points of the loss curves, where there is an update at every few steps."""
FLUSH_SECONDS = 1.0
"""So long readers wait for what was recorded."""
_OF_THIS_PROCESS = ("resume_from", "resume_changes", "stop_at")
PAUSE_SECONDS = 0.05
"""So long a loop of short updates runs on before it is asked whether something is due."""


class Update(NamedTuple):
    """One turn of an algorithm's loop."""

    number: int
    """Counted from 0."""
    steps: int
    """How many steps each environment takes in it; the last one may have fewer."""
    first_step: int
    """How many steps all environments together had taken before."""
    last_step: int
    """How many they will have taken after it."""
    progress: float
    """Which share of all updates came before, for what is annealed."""


class Run(Generic[ArgsT]):
    """One training run while it is open."""

    def __init__(
        self,
        spec: AlgorithmSpec,
        args: ArgsT,
        backend: Backend,
        envs: Envs,
        checkpoints: Checkpoints,
        writer: RunWriter,
        evaluator: Evaluator,
        stop: StopSignals,
    ) -> None:
        self.spec = spec
        self.args = args
        self.envs = envs
        self.backend = backend
        self.device = backend.device
        self.is_new = checkpoints.earlier is None
        self._checkpoints = checkpoints
        self._writer = writer
        self._evaluator = evaluator
        self._stop = stop
        self._watch = Stopwatch()
        self._flush_time = perf_counter() + FLUSH_SECONDS
        self._counters = Held(step=0, update=0, scored_at=0)
        self._parts: dict[str, Stateful] = {}
        self._choices: dict[str, Any] = {}
        self.step_count = 0
        """How many steps all environments together have taken."""
        self.ranks = 1
        """How many processes take these steps together, each in as many environments."""
        self.played_by = ""
        """Who plays in the environments where it is not the policy that is trained, such as a teacher."""
        self.newest_returns = writer.recent_returns.newest
        """The returns of the newest ten episodes, or of as many as there were."""
        for name, part in (("run", self._counters), ("envs", envs), ("returns", writer.recent_returns)):
            self.keep(name, part)

    # What an algorithm asks for

    def keep(self, name: str, part: PartT) -> PartT:
        """Have a part in every checkpoint, by its name; in a resumed run it is where it was afterwards.

        A part is a module, or has `state()` and `load(state)`.
        """
        adapted = self.backend.adapt(part)
        self._parts[name] = adapted
        self._checkpoints.restore(name, adapted)
        return part

    def updates(self, every: int) -> Iterator[Update]:
        """The turns of the loop, each of `every` steps of all environments, until the budget is used.

        Between two of them the run reports, evaluates, writes checkpoints and ends when it is asked to. The
        turn that `stop_at` lies in is taken whole, so that the run can go on as if it had never ended.
        """
        args, num_envs, counters = self.args, self._all_envs, self._counters.values
        self._begin()
        total, each = args.total_timesteps // num_envs, every // num_envs
        turns = -(-total // each)
        done = counters["step"] // num_envs
        end = min(total, -(-args.stop_at // num_envs)) if args.stop_at else total
        self._watch.enter("act")
        while done < end:
            steps = min(each, total - done)
            done += steps
            number = counters["update"]
            last_step = done * num_envs
            yield Update(number, steps, self.step_count, last_step, number / turns)
            self.step_count = last_step
            counters["update"], counters["step"] = number + 1, last_step
            now = self._watch.enter("act")
            if last_step >= self._due_step or now >= self._due_time or self._stop.requested:
                self._between(last_step, done >= end)
                self._watch.enter("act")

    def step(self, actions: list[Any], out: NDArray[Any], then: str = "act") -> Step:
        """Take one action in each environment and write the next observations to `out`.

        `then` is what the time after it counts as.
        """
        self._watch.enter("env")
        step = self.envs.step(actions, out)
        self.step_count += self._all_envs
        if step.episodes:
            self._writer.add_episodes(step.episodes, self.step_count, self.played_by)
        now = self._watch.enter(then)
        # Asked at each step, as steps may be slow.
        if now >= self._flush_time:
            self._writer.flush()
            self._flush_time = now + FLUSH_SECONDS
        return step

    @property
    def _all_envs(self) -> int:
        return self.envs.num_envs * self.ranks

    def add_episodes(self, episodes: list[Episode], step: int) -> None:
        """Record episodes that ended in other processes of the run."""
        if episodes:
            self._writer.add_episodes(episodes, step)

    def minibatches(self, size: int, parts: int) -> list[NDArray[np.int64]]:
        """All rows of a batch in a new random order, cut into `parts`."""
        rows = self.backend.permutation(size)
        # Splitting evenly is a matter of shape, at a tenth of the time.
        return list(rows.reshape(parts, -1)) if size % parts == 0 else np.array_split(rows, min(parts, size))

    @staticmethod
    def begin_phase(number: int, text: str) -> None:
        """Tell whoever watches the run which of its parts begins, counted from 1."""
        if RUN_DIR_VARIABLE in os.environ:
            announce_phase(Path(os.environ[RUN_DIR_VARIABLE]), number, text)

    def preparing(self) -> None:
        """To be called now and then in long work before the loop, which ends here when the run is to stop."""
        self._stop.check()

    def learning(self) -> None:
        """From here to the end of this update time counts as learning."""
        self._watch.enter("update")

    def log(self, step: int, losses: Mapping[str, float], **charts: float) -> None:
        """Record the losses of an update; training that has come apart ends here, with a word."""
        for name, value in charts.items():
            self._writer.add_scalar(f"charts/{name}", value, step)
        for name, value in losses.items():
            if value != value or value in (float("inf"), float("-inf")):
                raise MosaicError(
                    f"The loss {name} is no longer finite at step {step}; try a lower learning rate."
                )
            self._writer.add_scalar(f"losses/{name}", value, step)

    def play(self, policy: Policy, episodes: int) -> float:
        """The mean return of another policy, which draws its actions as in its training."""
        seed, count = self.args.seed + FIRST_SEED, min(episodes, MOST_ENVS)
        with (
            unwatched(),
            self.backend.untouched(),
            open_episodes(self.spec, self.args, count) as envs,
        ):
            return evaluate(policy, envs, episodes, seed, False, self._stop.check).mean

    # Between two updates

    def _begin(self) -> None:
        origin, counters = self._checkpoints.origin, self._counters.values
        if origin is not None and origin.step is None:
            self._begin_with_model(origin.path, origin.normaliser)
        # The random states come last: making and replaying other parts may have drawn numbers.
        self.keep("random", self.backend)
        self._checkpoints.begin()
        self.step_count = int(counters["step"])
        self._writer.begin_stage(self.envs.stage, self.step_count)
        self._watch.start(self.step_count)
        if not self.is_new and not self.envs.exact:
            warn(
                f"{self.args.env_id} starts new episodes, because its backend cannot continue within one: "
                "the run will not end with the same weights as one that was never stopped."
            )
        # An evaluation that a stop signal cut short is made up for.
        self._score_when_due()
        self._plan()

    def _begin_with_model(self, path: Path, statistics: Mapping[str, Any] | None) -> None:
        """Put the weights of a model file in the networks and their targets, and statistics beside them in
        the normaliser."""
        try:
            for name, weights in split_model(self.spec.model, self.backend.read_model(path)).items():
                self._parts[name].load(weights)
        except Misfit as error:
            raise UserError(f"The weights in {path} do not fit this run: {error}.") from error
        for part in self._parts.values():
            if hasattr(part, "follow"):
                part.follow(1.0)
            elif hasattr(part, "begin_with") and statistics is not None:
                part.begin_with(statistics)

    def _between(self, step: int, last: bool) -> None:
        """A moment to report, to evaluate, to checkpoint and to stop."""
        self._watch.enter("log")
        self._note_choices()
        self._watch.report(self._writer, step)
        self._score_when_due()
        every = self.args.checkpoint_every
        # Asked after the evaluation, which a signal may have cut short.
        if every and (last or self._stop.requested or step - self._checkpoints.saved_at >= every):
            self._checkpoints.save(step, self._writer, self._parts)
        self._stop.check()
        self._plan()

    def _plan(self) -> None:
        """When the next checkpoint or evaluation is due, or the end, and when to look at the clock again."""
        steps = [self.args.total_timesteps // self._all_envs * self._all_envs]
        if self.args.stop_at:
            steps.append(self.args.stop_at)
        if self.args.checkpoint_every:
            steps.append(self._checkpoints.saved_at + self.args.checkpoint_every)
        if self._score_every:
            steps.append(int(self._counters.values["scored_at"]) + self._score_every)
        self._due_step, self._due_time = min(steps), perf_counter() + PAUSE_SECONDS

    def _note_choices(self) -> None:
        """Let the run's provenance tell what computes its losses: a kernel or torch."""
        for name, part in self._parts.items():
            choice = getattr(part, "choice", None)
            if choice is not None and name not in self._choices:
                self._choices[name] = {"by": choice.by, "why": choice.why}
                if choice.differs:
                    warn(f"The loss is computed by torch: {choice.why}.")
                note_provenance({"losses": self._choices})

    @property
    def _score_every(self) -> int:
        return self.args.eval_every or self.args.checkpoint_every

    def _score_when_due(self) -> None:
        """Now and then, see how good the policy is: by an evaluation if asked for, else by its training."""
        step, counters = self.step_count, self._counters.values
        if not self._score_every or step - int(counters["scored_at"]) < self._score_every:
            return
        self._watch.enter("eval")
        if not self.args.eval_every:
            counters["scored_at"] = step
            mean = self._writer.recent_returns.take_mean()
            if mean is not None:
                self._checkpoints.save_best(step, self._writer, self._parts, mean, self.envs.reached_stage)
            return
        with contextlib.suppress(Stopped):
            name = f"The policy of step {step}"
            self._keep_score(self._evaluator.play(name, lambda: self._present_model(name)))

    def _keep_score(self, found: Evaluation | None) -> None:
        """Record an evaluation of the policy as it is now, and keep the policy if it is the best so far."""
        step = self._counters.values["scored_at"] = self.step_count
        if found is None:
            return
        self._writer.add_scalar("eval/mean_return", found.mean, step)
        self._writer.add_scalar("eval/std_return", found.std, step)
        for player, totals in found.players.items():
            self._writer.add_scalar(f"eval/mean_return/{player}", float(np.mean(totals)), step)
        if self._checkpoints.save_best(step, self._writer, self._parts, found.mean) and self.args.save_model:
            self._save_model(best=True)

    # The model

    def finish(self) -> None:
        """The budget is used: save the model and play it, as anybody would who has it."""
        self._watch.finish(self._writer)
        if not self.args.save_model:
            return
        self._save_model()
        if not self.args.eval_episodes:
            return
        from cleanrl_worker.evaluation.models import open_model

        path = self._writer.model_path()
        found = self._evaluator.play(str(path), lambda: open_model(path, self.spec, self.args.env_id))
        for number, total in enumerate(found.returns if found else ()):
            self._writer.add_scalar("eval/episodic_return", total, number)
        for player, totals in (found.players if found else {}).items():
            self._writer.add_scalar(f"eval/mean_return/{player}", float(np.mean(totals)), self.step_count)
        if self.args.eval_every and self._counters.values["scored_at"] < self.step_count:
            self._keep_score(found)

    def stopped(self) -> None:
        """The run was asked to stop: save the model as it is, once there is one."""
        if self.args.save_model and "random" in self._parts:
            self._save_model()

    def _save_model(self, best: bool = False) -> None:
        self._writer.save_model(self.backend.encode_model(self._model()), self._card(), best)

    def _model(self) -> Any:
        args = {name: value for name, value in vars(self.args).items() if name not in _OF_THIS_PROCESS}
        return fill_model(self.spec.model, lambda name: self._parts[name].state(), args)

    def _present_model(self, name: str) -> SavedModel:
        from cleanrl_worker.evaluation.models import SavedModel

        card = self._card()
        weights = self.backend.decode_weights(self._model())
        return SavedModel(name, self.spec, self.args, weights, card.normaliser, card.step)

    def _card(self) -> PolicyCard:
        args = {name: value for name, value in vars(self.args).items() if name not in _OF_THIS_PROCESS}
        normaliser: Any = self._parts.get("normaliser")
        seen = normaliser.statistics() if normaliser is not None else None
        return PolicyCard(self.spec.name, args, self.step_count, seen, self.spec.file)


def note_provenance(fields: Mapping[str, Any]) -> None:
    """Add to the run's `provenance.json`, where a supervisor has made one."""
    path = Path("provenance.json")
    try:
        known = read_json(path)
    except (OSError, ValueError):
        return
    with contextlib.suppress(OSError):
        write_json(path, {**known, **fields})


@contextlib.contextmanager
def open_run(spec: AlgorithmSpec, args: Any, stop: StopSignals) -> Iterator[Run[Any]]:
    """A run of an algorithm with everything around it."""
    args.env_id = gymnasium_id(args.env_id, choose_backend(args.env_backend, spec.env_backend))
    check_together(vars(args))
    spec.check(args)
    if warning := warn_together(vars(args)):
        warn(warning)
    backend = find_backend(spec.backend)(args.seed, args.torch_deterministic, args.cuda)
    checkpoints = Checkpoints(spec.name, args, spec.file)
    with contextlib.ExitStack() as opened:
        envs = opened.enter_context(open_envs(spec, args))
        writer = opened.enter_context(contextlib.closing(RunWriter(args, checkpoints.earlier)))
        evaluator = opened.enter_context(contextlib.closing(Evaluator(args, backend, stop)))
        yield Run(spec, args, backend, envs, checkpoints, writer, evaluator, stop)


def train(spec: AlgorithmSpec, args: Any, stop: StopSignals) -> None:
    """Train from the first step to the last, and leave curves and weights in the results folder."""
    with open_run(spec, args, stop) as run:
        try:
            spec.train(run)
        except Stopped:
            run.stopped()
            raise
        run.finish()


def run_algorithm(spec: AlgorithmSpec, argv: Sequence[str] | None = None) -> int:
    """Train as the command line says; gives the exit code."""
    return run_script(lambda: parse_args(spec.args, argv, spec.name), functools.partial(train, spec))


def run_with(spec: AlgorithmSpec, values: Mapping[str, Any]) -> int:
    """Train with these arguments; gives the exit code."""
    return run_script(lambda: make_args(spec.args, values, spec.name), functools.partial(train, spec))
