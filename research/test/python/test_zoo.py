# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training networks for the zoo: the command and its errors."""

import pathlib

import pytest
import torch

import kas.zoo
from kas.zoo import _cards
from kas_research import zoo as command
from kas_research.protocol import make_unseen, read_protocol

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_accuracy_on_unseen_images():
    """The weights reach on the test images, and on moved ones, what the card says."""
    protocol = read_protocol(ROOT / "research/data/discovery.yaml")
    data = protocol.load_data()
    name = "pooled48_fashion_found_1"
    network, card = kas.zoo.create(name), kas.zoo.card(name)
    for part in ("test", "shifted"):
        images, classes = data.test if part == "test" else make_unseen(data.test)[part]
        with torch.no_grad():
            chosen = torch.cat([network(some).argmax(1) for some in images.split(500)])
        assert abs(100 * (chosen == classes).float().mean().item() - card.accuracy[part]) <= 0.05


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
