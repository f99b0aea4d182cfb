"""The network for images: the same numbers in its own memory layout, and a memory that goes with steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from cleanrl_worker.agents.impala import ConvSequence, ImpalaCNN
from cleanrl_worker.agents.nature import NatureAgent, NatureCNN, NatureLSTMAgent
from cleanrl_worker.kit.torch_backend import Adam, ModuleState, Target


def plain_features(network: NatureCNN, pictures: torch.Tensor) -> torch.Tensor:
    """What the layers give in torch's default layout, one after the other; channels come first."""
    found = pictures.float() / 255.0
    for layer in network:
        found = nn.functional.relu(found) if isinstance(layer, nn.ReLU) else layer(found)
    return found


@pytest.mark.parametrize("shape", [(84, 84, 4), (84, 84, 1), (84, 84, 3), (4, 84, 84), (50, 61, 2)])
def test_features_are_those_of_the_plain_layers(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    network = NatureCNN(shape)
    pictures = torch.randint(0, 256, (3, *shape), dtype=torch.uint8)
    first = pictures if shape[0] == 4 else pictures.permute(0, 3, 1, 2)
    features = network(pictures)
    torch.testing.assert_close(features, plain_features(network, first), rtol=1e-4, atol=1e-5)
    features.square().sum().backward()
    ours = [parameter.grad for parameter in network.parameters()]
    network.zero_grad()
    plain_features(network, first).square().sum().backward()
    for mine, parameter in zip(ours, network.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-3, atol=1e-4)


def plain_residual(network: ImpalaCNN, pictures: torch.Tensor) -> torch.Tensor:
    """The layers of IMPALA's network in torch's default layout, by their definition; channels come first."""
    relu, found = nn.functional.relu, pictures.float() / 255.0
    for part in network:
        if isinstance(part, ConvSequence):
            found = nn.functional.max_pool2d(part.conv(found), 3, stride=2, padding=1)
            for block in (part.res_block0, part.res_block1):
                found = found + block.conv1(relu(block.conv0(relu(found))))
        else:
            found = relu(found) if isinstance(part, nn.ReLU) else part(found)
    return found


@pytest.mark.parametrize("shape", [(64, 64, 3), (4, 84, 84), (21, 30, 2)])
def test_features_of_the_residual_network_are_those_of_its_definition(shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    network = ImpalaCNN(shape)
    pictures = torch.randint(0, 256, (3, *shape), dtype=torch.uint8)
    first = pictures if shape[0] == 4 else pictures.permute(0, 3, 1, 2)
    slopes = []
    for features in (network(pictures), plain_residual(network, first)):
        network.zero_grad()
        (features.square().sum() + features.sum()).backward()
        slopes.append([features, *(parameter.grad for parameter in network.parameters())])
    for mine, plain in zip(*slopes, strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-3, atol=1e-4)


def test_a_small_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="20 × 84 is too small"):
        NatureCNN((20, 84, 4))


def test_parameters_have_the_known_names() -> None:
    layers = {"network.0", "network.2", "network.4", "network.7", "actor", "critic"}
    weights = NatureAgent((84, 84, 4), 6).state_dict()
    assert {name.rpartition(".")[0] for name in weights} == layers
    assert weights["network.0.weight"].shape == (32, 4, 8, 8)
    assert weights["network.7.weight"].shape == (512, 3136)
    assert weights["actor.weight"].shape == (6, 512)
    with_memory = NatureLSTMAgent((84, 84, 1), 6).state_dict()
    assert {name.rpartition(".")[0] for name in with_memory} == layers | {"lstm"}
    assert with_memory["lstm.weight_ih_l0"].shape == (512, 512)


def test_filters_keep_their_layout_in_the_optimizer_and_it_steps_as_torch_adam() -> None:
    torch.manual_seed(1)
    ours, theirs = NatureAgent((84, 84, 4), 3), NatureAgent((84, 84, 4), 3)
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, eps=1e-5)
    reference = torch.optim.Adam(theirs.parameters(), lr=1e-3, eps=1e-5)
    obs = torch.randint(0, 256, (4, 84, 84, 4), dtype=torch.uint8)
    for _ in range(3):
        logits, values = ours(obs)
        adam.update(logits.square().mean() + values.mean(), learning_rate=1e-3)
        logits, values = theirs(obs)
        reference.zero_grad()
        torch.autograd.backward(logits.square().mean() + values.mean())
        reference.step()
    for name, weight in theirs.named_parameters():
        mine = ours.get_parameter(name)
        torch.testing.assert_close(mine.data, weight.data, rtol=1e-4, atol=1e-5)
        assert mine.untyped_storage().data_ptr() == adam.weights.untyped_storage().data_ptr()
        if mine.dim() == 4:
            assert mine.is_contiguous(memory_format=torch.channels_last) and not mine.is_contiguous()


def test_moments_of_filters_come_back_by_name_and_shape() -> None:
    torch.manual_seed(1)
    agent = NatureAgent((84, 84, 4), 3)
    adam = Adam(agent)
    adam.gradient.copy_(torch.randn_like(adam.gradient))
    adam.step(1e-3)
    state = adam.state()
    assert state["first"]["network.2.weight"].shape == (64, 32, 4, 4)
    # The moment of each number is that of its own gradient.
    gradient = agent.get_parameter("network.2.weight").grad
    assert gradient is not None
    np.testing.assert_allclose(state["first"]["network.2.weight"], 0.1 * gradient.numpy(), rtol=1e-5)
    other = Adam(NatureAgent((84, 84, 4), 3))
    other.load(state)
    assert all(
        np.array_equal(other.state()[part][name], value)
        for part in ("first", "second")
        for name, value in state[part].items()
    )


def test_a_target_of_convolutions_follows_its_network() -> None:
    torch.manual_seed(1)
    net = NatureCNN((84, 84, 4))
    adam = Adam(net)
    target = Target(net, adam)
    adam.weights.add_(1.0)
    target.follow(0.25)
    for name, weight in target.state().items():
        np.testing.assert_allclose(weight, ModuleState(net).state()[name] - 0.75, atol=1e-5)


def test_sequences_with_starts_give_what_single_steps_give() -> None:
    torch.manual_seed(1)
    agent = NatureLSTMAgent((84, 84, 1), 3)
    steps, rows = 7, 3
    obs = torch.randint(0, 256, (steps, rows, 84, 84, 1), dtype=torch.uint8)
    starts = torch.zeros(steps, rows)
    starts[0, 1] = starts[2, 0] = starts[2, 2] = starts[5, 1] = 1.0
    first = torch.randn(rows, agent.memory_size)
    with torch.no_grad():
        logits, values, memory = agent(obs, first, starts)
        one = first.clone()
        for t in range(steps):
            one[starts[t] == 1.0] = 0.0
            own_logits, own_values, one = agent.step(obs[t], one)
            torch.testing.assert_close(logits[t], own_logits, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(values[t], own_values, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(memory, one, rtol=1e-4, atol=1e-5)
        # What was seen before an episode began is forgotten, and what was seen since is not.
        changed = obs.clone()
        changed[1, 0] = 255 - changed[1, 0]
        again = agent(changed, first, starts)[0]
        assert torch.equal(again[2:, 0], logits[2:, 0])
        changed[3, 0] = 255 - changed[3, 0]
        assert not torch.equal(agent(changed, first, starts)[0][6, 0], logits[6, 0])
