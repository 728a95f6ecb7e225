# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that have a name, however they are written, and layers that have none."""

from __future__ import annotations

import numpy
import pytest
import torch

from kas_research.fields import _known
from kas_research.fields._candidates import Candidate
from kas_research.fields._families import EXPRESSIBLE, Grid, make_network


def find(text, **binding):
    return _known.find_name(Candidate("it", "dense", text=text, binding=binding))


DENSE = """
kas.operator @it<N, C, H, W | a, b>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : a
  %o = kas.reduce sum : C/b
  %q = kas.reduce sum : b
  %j = kas.reduce sum : a
  %i_d, %i_w = kas.share %i : a
  %j_d, %j_w = kas.share %j : a
  %o_d, %o_w = kas.share %o : C/b
  %q_d, %q_w = kas.share %q : b
  %x = kas.split %o_d, %q_d : C/b, b
  %y = kas.unfold %h, %i_d : H, a
  %z = kas.unfold %w, %j_d : W, a
  kas.yield data(%n, %x, %y, %z) weight(%q_w, %j_w, %c, %i_w, %o_w)
}
"""
"""A dense layer whose weight has its dimensions in another order, and its inputs in two of them."""


def test_a_dense_layer_in_other_words():
    assert find(DENSE, a=3, b=2) == "the family 'dense' with k=3"
    assert find(DENSE, a=1, b=4) == "the family 'dense' with k=1"
    # A window that is not in the middle is not that of the library.
    assert find(DENSE.replace("%i_d : H, a", "%i_d causal : H, a"), a=3, b=2) is None


WINDOW = """
kas.operator @window<N, C, H, W | k>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %c_d, %c_w = kas.share %c : C
  %y = kas.unfold %h, %i_d : H, k
  kas.yield data(%n, %c_d, %y, %w) weight(%c_w, %i_w)
}
"""
DEPTHWISE = """
kas.operator @depthwise<N, C, H, W | k>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : k
  %j = kas.reduce sum : k
  %i_d, %i_w = kas.share %i : k
  %j_d, %j_w = kas.share %j : k
  %c_d, %c_w = kas.share %c : C
  %y = kas.unfold %h, %i_d : H, k
  %z = kas.unfold %w, %j_d : W, k
  kas.yield data(%n, %c_d, %y, %z) weight(%i_w, %c_w, %j_w)
}
"""
MIX = """
kas.operator @mix<N, C, H, W>(%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
  %i = kas.reduce sum : C
  %i_d, %i_w = kas.share %i : C
  kas.yield data(%n, %i_d, %h, %w) weight(%i_w, %c)
}
"""


def find_sequence(operators, sequence, **binding):
    return find(f"{operators}kas.sequence @it {sequence}", **binding)


def test_sequences_and_what_has_no_name():
    separable = DEPTHWISE + MIX
    assert find_sequence(separable, "[@depthwise, @mix] between [none]", k=5) == "the family 'depthwise' with k=5"
    # With a nonlinearity, one axis alone, beside each other: nobody has given these a name.
    assert find_sequence(separable, "[@depthwise, @mix] between [relu]", k=5) is None
    assert find_sequence(WINDOW + MIX, "[@window, @mix] between [none]", k=5) is None
    assert find_sequence(WINDOW + MIX, "[@mix add @window] between []", k=3) is None


def test_the_axial_family():
    rows, columns = (f"kas.operator @along_{part}" for part in _known._MIXING.split("kas.operator @along_")[1:])
    both = "[@along_rows, @along_columns, @mix] between [none, none]"
    assert find_sequence(rows + columns + MIX, both, g=4) == "the family 'axial' with g=4"
    # The other axis first is the same, as both act on each channel by itself.
    turned = both.replace("@along_rows, @along_columns", "@along_columns, @along_rows")
    assert find_sequence(rows + columns + MIX, turned, g=2) == "the family 'axial' with g=2"
    assert find_sequence(rows + MIX, "[@along_rows, @mix] between [none]", g=4) is None


def test_two_weights_in_any_order():
    library = "the named operator 'linear_low_rank' with r=3"
    text = """
kas.operator @it<N, Cin, Cout | r>(%n: N, %c: Cout) from [N, Cin] {
  %i = kas.reduce sum : Cin
  %i_d, %i_w = kas.share %i : Cin
  %j = kas.reduce sum : r
  %j_1, %j_2 = kas.share %j : r
  kas.yield data(%n, %i_d) weight(%j_1, %c) weight(%i_w, %j_2)
}
"""
    assert find(text, r=3) == library
    assert (
        find(text.replace("weight(%j_1, %c) weight(%i_w, %j_2)", "weight(%i_w, %j_2) weight(%c, %j_1)"), r=3) == library
    )


def test_forms_without_a_canonical_one():
    with pytest.raises(ValueError, match=r"requires an operator or a sequence, got the module 'torch.nn:Identity'"):
        _known.find_name(Candidate("it", "dense", module="torch.nn:Identity"))
    with pytest.raises(ValueError, match="requires sizes at which 'it' exists, got none of"):
        find(DENSE, a=3, b=23)


@pytest.mark.parametrize("family", sorted(EXPRESSIBLE))
def test_families_are_their_forms(family):
    """The same outputs depend on the same inputs, and there are as many weights."""
    width, size, depth = 8, 6, 1
    layer = make_network(family, width, Grid(1, 1, size, False)).blocks[depth].layer
    name = family.rsplit("-", 1)[0] if family[-1].isdigit() else family
    # Depth 1 has a dilation of 2, and a padding that keeps the grid.
    values = {"k": int(family[-1]) if family[-1].isdigit() else 3, "d": 2, "p": 2, "g": 4}
    values |= {"N": 1, "C": width, "Cin": width, "Cout": width, "H": size, "W": size}
    operators = _known._make_known()[f"the family '{name}'"]
    form = _known._make(operators, ["none"] * (len(operators) - 1), values)
    ours = [numpy.ones(shape, numpy.float32) for shape in form.weights]
    with torch.no_grad():
        weights = 0
        for parameter in layer.parameters():
            is_bias = parameter.ndim == 1
            parameter.fill_(0 if is_bias else 1)
            weights += 0 if is_bias else parameter.numel()
        assert weights == sum(weight.size for weight in ours)
        data = torch.randint(1, 9, (1, width, size, size)).float()
        assert numpy.array_equal(layer(data).numpy(), form.evaluate(data.numpy(), ours))
