"""Networks in torch: seeds, weights as named arrays, optimizers and target networks."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import io
import math
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cleanrl_worker.kit.backend import Backend
from cleanrl_worker.kit.spec import Misfit, compare_weights
from cleanrl_worker.kit.state import State, Stateful

ModuleT = TypeVar("ModuleT", bound=nn.Module)
BETA_1 = 0.9
BETA_2 = 0.999
RMS_DECAY = 0.99
WEIGHT_DECAY = 0.01
_LONGEST = 2.0 / (1.0 - BETA_2) - 1.0
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_BLOCK, _MOST_KEPT = 2**26, 2**29


class TorchBackend(Backend):
    """Torch's random numbers, modules by their parameters' names, and model files that torch reads."""

    file_kind = "PyTorch"

    def __init__(self, seed: int, deterministic: bool = True, cuda: bool = False) -> None:
        super().__init__(seed, deterministic, cuda)
        torch.manual_seed(seed)
        torch.backends.cudnn.deterministic = deterministic
        self.device = torch.device("cuda" if cuda and torch.cuda.is_available() else "cpu")

    def adapt(self, part: Any) -> Stateful:
        return ModuleState(part) if isinstance(part, nn.Module) else super().adapt(part)

    def permutation(self, size: int) -> NDArray[np.int64]:
        order: NDArray[np.int64] = torch.randperm(size).numpy()
        return order

    def encode_model(self, content: Any) -> bytes:
        data = io.BytesIO()
        torch.save(as_tensors(content), data)
        return data.getvalue()

    @staticmethod
    def limit_threads(count: int) -> None:
        Backend.limit_threads(count)
        torch.set_num_threads(count)

    @staticmethod
    def decode_model(data: bytes) -> Any:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)

    @staticmethod
    def decode_weights(content: Any) -> Any:
        return as_tensors(content)

    @staticmethod
    def unfilled() -> TorchFunctionMode:
        return _Unfilled()

    def state(self) -> State:
        found = {**super().state(), "torch": torch.get_rng_state().numpy()}
        if torch.cuda.is_available():
            found["cuda"] = [state.numpy() for state in torch.cuda.get_rng_state_all()]
        return found

    def load(self, state: State) -> None:
        super().load(state)
        torch.set_rng_state(torch.from_numpy(state["torch"]))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([torch.from_numpy(one) for one in state["cuda"]])


BACKEND = TorchBackend


class _Unfilled(TorchFunctionMode):
    """Leaves out what initial weights cost: the random numbers, and what makes them orthogonal."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.uniform_, Tensor.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            return args[0] if args else kwargs["tensor"]
        if func is torch.linalg.qr:
            return args[0], args[0].new_ones(args[0].shape[1], args[0].shape[1])
        return func(*args, **(kwargs or {}))


def keep_freed_memory() -> None:
    """Let memory that is freed stay with the process, for networks whose activations take megabytes.

    The C library gives such blocks back at once, and the next minibatch pays for each page of them again: a
    quarter of the time of an update. It does nothing where the library has no such setting.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
        libc.mallopt(_TRIM_THRESHOLD, _MOST_KEPT)


class ModuleState:
    """A module's parameters and buffers by their names."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def state(self) -> State:
        return {name: tensor.cpu().numpy().copy() for name, tensor in self._module.state_dict().items()}

    def load(self, state: State) -> None:
        """Take up the values; the memory stays the same, so that views of it stay valid."""
        frozen = [parameter.requires_grad for parameter in self._module.parameters()]
        load_weights(self._module, as_tensors(state))
        for parameter, learns in zip(self._module.parameters(), frozen, strict=True):
            parameter.requires_grad_(learns)


class Adam:
    """Adam whose clipping and step are one operation each, however many parameters there are.

    Parameters and gradients become views of two flat tensors. `torch.optim` would do the same sums one
    parameter at a time, and its first use imports 800 modules, which takes as long as `import torch`.
    """

    def __init__(self, module: nn.Module, eps: float = 1e-8, beta_1: float = BETA_1) -> None:
        self._layouts = {name: Layout(parameter) for name, parameter in module.named_parameters()}
        parameters = dict(module.named_parameters())
        self.weights = torch.cat(
            [layout.flatten(parameters[name].detach()) for name, layout in self._layouts.items()]
        )
        self.gradient = torch.zeros_like(self.weights)
        self._first_moment = torch.zeros_like(self.weights)
        self._second_moment = torch.zeros_like(self.weights)
        self.steps = torch.zeros((), device=self.weights.device)
        on_cpu = self.weights.device.type == "cpu"
        # For so few numbers numpy takes a fraction of the time that torch does.
        self._counted: Any = self.steps.numpy() if on_cpu else self.steps
        self.eps, self.beta_1 = eps, beta_1
        self._array = self.gradient.numpy() if on_cpu else None
        share_memory(module, self.weights, self.gradient)

    def update(self, loss: Tensor, learning_rate: float, max_grad_norm: float = math.inf) -> None:
        """One step down the gradient of `loss`, whose norm is cut to `max_grad_norm`."""
        self.gradient.zero_()
        torch.autograd.backward(loss)
        self.step(learning_rate, max_grad_norm)

    def step(self, learning_rate: float, max_grad_norm: float = math.inf) -> None:
        """One step down the gradient that is in memory, its norm cut to `max_grad_norm`."""
        if max_grad_norm < math.inf:
            self._clip(max_grad_norm)
        self._counted += 1.0
        self._move(learning_rate)

    def _clip(self, max_grad_norm: float) -> None:
        if self._array is None:
            norm = float(torch.linalg.vector_norm(self.gradient))
            self.gradient.mul_(min(max_grad_norm / (norm + 1e-6), 1.0))
            return
        scale = max_grad_norm / (math.sqrt(float(np.dot(self._array, self._array))) + 1e-6)
        if scale < 1.0:
            self._array *= scale

    def _move(self, learning_rate: float, eps_scale: float = 1.0) -> None:
        torch._fused_adam_(
            [self.weights],
            [self.gradient],
            [self._first_moment],
            [self._second_moment],
            [],
            [self.steps],
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=BETA_2,
            weight_decay=0.0,
            eps=self.eps * eps_scale,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> State:
        """The moments by the names of the parameters; the weights are the module's."""
        moments = {"first": self._first_moment, "second": self._second_moment}
        return {name: self._named(flat) for name, flat in moments.items()} | {"steps": float(self.steps)}

    def load(self, state: State) -> None:
        for flat, name in ((self._first_moment, "first"), (self._second_moment, "second")):
            parts = [
                layout.flatten(torch.from_numpy(state[name][key])) for key, layout in self._layouts.items()
            ]
            flat.copy_(torch.cat(parts))
        self.steps.fill_(state["steps"])

    def _named(self, flat: Tensor) -> dict[str, NDArray[Any]]:
        parts = torch.split(flat.cpu(), [layout.size for layout in self._layouts.values()])
        return {
            name: layout.view(part).numpy().copy()
            for (name, layout), part in zip(self._layouts.items(), parts, strict=True)
        }


class RAdam(Adam):
    """Adam that steps along the mean gradient until it has seen enough of its spread to divide by it."""

    def _move(self, learning_rate: float, eps_scale: float = 1.0) -> None:
        step = float(self._counted)
        trust = rectification(step)
        if trust <= 0.0:
            self._first_moment.lerp_(self.gradient, 1.0 - self.beta_1)
            self._second_moment.mul_(BETA_2).addcmul_(self.gradient, self.gradient, value=1.0 - BETA_2)
            self.weights.add_(self._first_moment, alpha=-learning_rate / (1.0 - self.beta_1**step))
            return
        # Adam divides the spread by this and RAdam does not: so the step and eps are divided by it too.
        spread = math.sqrt(1.0 - BETA_2**step)
        super()._move(learning_rate * trust / spread, 1.0 / spread)


class AdamW(Adam):
    """Adam that draws the weights to zero by themselves, beside the gradient."""

    def _move(self, learning_rate: float, eps_scale: float = 1.0) -> None:
        self.weights.mul_(1.0 - learning_rate * WEIGHT_DECAY)
        super()._move(learning_rate, eps_scale)


class RMSProp(Adam):
    """Divides the gradient by the root of its mean square, without momentum."""

    def _move(self, learning_rate: float, eps_scale: float = 1.0) -> None:
        self._second_moment.mul_(RMS_DECAY).addcmul_(self.gradient, self.gradient, value=1.0 - RMS_DECAY)
        root = self._second_moment.sqrt().add_(self.eps * eps_scale)
        self.weights.addcdiv_(self.gradient, root, value=-learning_rate)


def rectification(step: float) -> float:
    """The factor of a step that is divided by the gradient's spread; 0 while too little is known of that."""
    decayed = BETA_2**step
    length = _LONGEST - 2.0 * step * decayed / (1.0 - decayed)
    if length <= 5.0:
        return 0.0
    now = (length - 4.0) * (length - 2.0) / length
    later = (_LONGEST - 4.0) * (_LONGEST - 2.0) / _LONGEST
    return math.sqrt(now / later * (1.0 - decayed))


class Target(ModuleState, Generic[ModuleT]):
    """A copy of a network that follows it slowly; its parameters are views of one flat tensor too."""

    def __init__(self, net: ModuleT, optimizer: Adam) -> None:
        self.net: ModuleT = copy.deepcopy(net).requires_grad_(False)
        self.weights = optimizer.weights.clone()
        self._followed = optimizer.weights
        share_memory(self.net, self.weights)
        super().__init__(self.net)

    def follow(self, tau: float) -> None:
        """Go the share `tau` of the way to the network."""
        self.weights.lerp_(self._followed, tau)


class Layout:
    """How a parameter lies in memory: a filter of convolutions may have its channels last."""

    def __init__(self, parameter: Tensor) -> None:
        self.size = parameter.numel()
        self._shape = parameter.shape
        self._channels_last = parameter.dim() == 4 and not parameter.is_contiguous()

    def flatten(self, tensor: Tensor) -> Tensor:
        """The numbers of a tensor of the parameter's shape, in the order in which they lie in memory."""
        return (tensor.permute(0, 2, 3, 1) if self._channels_last else tensor).reshape(-1)

    def view(self, flat: Tensor) -> Tensor:
        """Numbers in that order as a tensor of the parameter's shape."""
        if not self._channels_last:
            return flat.view(self._shape)
        rows, channels, height, width = self._shape
        return flat.view(rows, height, width, channels).permute(0, 3, 1, 2)


def share_memory(module: nn.Module, weights: Tensor, gradient: Tensor | None = None) -> None:
    """Let the module's parameters, and their gradients, be views of flat tensors, in the layout they have."""
    start = 0
    for parameter in module.parameters():
        layout = Layout(parameter)
        end = start + layout.size
        parameter.data = layout.view(weights[start:end])
        if gradient is not None:
            parameter.grad = layout.view(gradient[start:end])
        start = end


def as_tensors(content: Any) -> Any:
    """The content of a model or of a checkpoint's part with tensors in place of its arrays."""
    if isinstance(content, np.ndarray):
        return torch.from_numpy(content)
    if isinstance(content, tuple):
        return tuple(as_tensors(part) for part in content)
    if isinstance(content, dict):
        return {name: as_tensors(part) for name, part in content.items()}
    return content


def load_weights(module: ModuleT, weights: Any) -> ModuleT:
    """The module, frozen, with these weights; else Misfit says which of them it lacks or cannot take."""
    if not isinstance(weights, Mapping) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise Misfit("it does not hold the weights of one network by their names")
    wanted = module.state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in wanted.items()}
    compare_weights({name: tuple(tensor.shape) for name, tensor in weights.items()}, shapes)
    module.load_state_dict({name: weights[name].reshape(tensor.shape) for name, tensor in wanted.items()})
    return module.requires_grad_(False)
