# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The zoo: cards, weights and their errors."""

import pytest
import torch

import kas.torch
import kas.zoo
import kas.zoo.__main__ as command
from kas.evaluate.protocol import make_unseen, read_protocol
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


def test_accuracy(request):
    """The weights reach on the test images what the card says."""
    protocol = read_protocol(request.config.rootpath / "docs/data/discovery.yaml")
    data = protocol.load_data()
    name = "pooled48_fashion_found_1"
    network, card = kas.zoo.create(name), kas.zoo.card(name)
    # The extremes of images are black and white pixels.
    black, white = data.test[0].aminmax()
    assert torch.allclose(torch.stack([black, white]), card.normalize(torch.tensor([0.0, 255.0])), atol=1e-3)
    for part in ("test", "shifted"):
        images, classes = data.test if part == "test" else make_unseen(data.test)[part]
        with torch.no_grad():
            chosen = torch.cat([network(some).argmax(1) for some in images.split(500)])
        assert abs(100 * (chosen == classes).float().mean().item() - card.accuracy[part]) <= 0.05


def test_wrong_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(_cards, "DATA", tmp_path)
    with pytest.raises(kas.zoo.WeightsError, match=r"requires the weights of .* in .*, got no file"):
        kas.zoo.create("pooled64_fashion_found_1")
    (tmp_path / "pooled64_fashion_found_1.safetensors").write_bytes(b"other")
    with pytest.raises(kas.zoo.WeightsError, match=r"requires the checksum [0-9a-f]+ of .*, got [0-9a-f]+"):
        kas.zoo.create("pooled64_fashion_found_1")


SPEC = """
networks: [pooled]
widths: [16]
data: {name: fashion-mnist, train: 64, validation: 32}
recipe: {epochs: 1, batch-size: 32}
contenders: [dense, pointwise, depthwise]
"""


def test_training(tmp_path, monkeypatch, capsys):
    """The command trains a network and adds it; what is there is not trained again."""
    for module in (_cards, command):
        monkeypatch.setattr(module, "DATA", tmp_path)
        monkeypatch.setattr(module, "CARDS", tmp_path / "cards.json")
    monkeypatch.setattr(command, "load_cards", _cards.load_cards.__wrapped__)
    monkeypatch.setattr(kas.zoo, "load_cards", _cards.load_cards.__wrapped__)
    (tmp_path / "spec.yaml").write_text(SPEC)
    arguments = [str(tmp_path / "spec.yaml"), "pooled:depthwise:16"]
    assert command.main(arguments) == 0
    assert capsys.readouterr().out.startswith("pooled16_fashion_depthwise: test ")
    assert kas.zoo.list_models() == ["pooled16_fashion_depthwise"]
    card = kas.zoo.card("pooled16_fashion_depthwise")
    assert card.recipe["epochs"] == 1 and card.settings == {"layer": "depthwise"} and set(card.accuracy) >= {"test"}
    assert kas.zoo.create(card.name)(torch.zeros(1, 1, 32, 32)).shape == (1, 10)
    assert command.main(arguments) == 0 and not capsys.readouterr().out


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("pooled:dense", "requires NETWORK:CONTENDER:WIDTH, got 'pooled:dense'"),
        ("pooled:dense:wide", "requires NETWORK:CONTENDER:WIDTH, got 'pooled:dense:wide'"),
        ("vgg:dense:16", "requires NETWORK:CONTENDER:WIDTH, got 'vgg:dense:16'"),
        ("pooled:none:16", "requires a contender of dense, pointwise, depthwise, got 'none'"),
    ],
)
def test_wrong_points(point, message, tmp_path, capsys):
    (tmp_path / "spec.yaml").write_text(SPEC)
    with pytest.raises(SystemExit) as exit:
        command.main([str(tmp_path / "spec.yaml"), point])
    assert exit.value.code == 2 and message in capsys.readouterr().err


def test_data_without_licence(tmp_path, monkeypatch, capsys):
    """Said before anything is trained."""
    monkeypatch.setattr(command, "LICENCES", {})
    (tmp_path / "spec.yaml").write_text(SPEC)
    with pytest.raises(SystemExit) as exit:
        command.main([str(tmp_path / "spec.yaml"), "pooled:dense:16"])
    assert exit.value.code == 2 and "requires data with a known licence, of " in capsys.readouterr().err
