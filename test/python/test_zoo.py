# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The zoo: cards, weights and their errors."""

import pytest
import torch

import kas.evaluate
import kas.torch
import kas.zoo
from kas.zoo import _cards

NAMES = kas.zoo.list_models()


def test_names():
    assert "pooled64_fashion_found_1" in NAMES and sorted(NAMES) == NAMES
    assert kas.zoo.list_models("*found*") == [name for name in NAMES if "found" in name]
    assert kas.zoo.list_models("none*") == []
    with pytest.raises(ValueError, match=r"requires a name of .*pooled64_fashion_found_1.*, got 'resnet'"):
        kas.zoo.create("resnet")


@pytest.mark.parametrize("name", NAMES)
def test_networks(name):
    card = kas.zoo.card(name)
    network = kas.zoo.create(name)
    assert not network.training
    assert sum(parameter.numel() for parameter in network.parameters()) == card.parameters
    assert card.name == name and f"sha256: {card.sha256}" in str(card)
    x = torch.randn(2, 1, 32, 32)
    with torch.no_grad():
        expected = network(x)
        assert expected.shape == (2, 10) and not torch.allclose(expected, kas.zoo.create(name, pretrained=False)(x))
        # Compiled, with the operators in it.
        compiled = torch.compile(network, backend=kas.torch.backend)
        assert torch.allclose(compiled(x), expected, atol=1e-4)


def test_accuracy():
    """The weights reach on the test images what the card says."""
    data = kas.evaluate.fashion_mnist(train=12000, validation=5000)
    name = "pooled48_fashion_found_1"
    network, card = kas.zoo.create(name), kas.zoo.card(name)
    # The extremes of images are black and white pixels.
    black, white = data.test[0].aminmax()
    assert torch.allclose(torch.stack([black, white]), card.normalize(torch.tensor([0.0, 255.0])), atol=1e-3)
    images, classes = data.test
    with torch.no_grad():
        chosen = torch.cat([network(some).argmax(1) for some in images.split(500)])
    assert abs(100 * (chosen == classes).float().mean().item() - card.accuracy["test"]) <= 0.05


def test_wrong_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(_cards, "DATA", tmp_path)
    with pytest.raises(kas.zoo.WeightsError, match=r"requires the weights of .* in .*, got no file"):
        kas.zoo.create("pooled64_fashion_found_1")
    (tmp_path / "pooled64_fashion_found_1.safetensors").write_bytes(b"other")
    with pytest.raises(kas.zoo.WeightsError, match=r"requires the checksum [0-9a-f]+ of .*, got [0-9a-f]+"):
        kas.zoo.create("pooled64_fashion_found_1")
