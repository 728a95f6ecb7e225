# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of ONNX on sequences: attention, its caches and positions, and what state-space layers are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy
import onnx
import torch
from torch.nn import functional

from .._graph import Value
from .._kinds import KINDS, find_kind
from .._node import Node, constant, define
from ._products import multiply
from ._shapes import take_rows, wrap_indices

Tensor = torch.Tensor
MOST_STEPS = 512
"""The steps of a recurrence, each of which is computed by code of its own."""


def _split_heads(node: Node, x: Tensor, count: int | None) -> Tensor:
    if not count:
        raise node.refuse("requires the numbers of heads for inputs of rank 3, got none")
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def _repeat_heads(x: Tensor, heads: int) -> Tensor:
    """The heads of keys or values, each for several of the queries."""
    have = x.shape[1]
    if have == heads or heads % have:
        return x
    wide = x.unsqueeze(2).expand(x.shape[0], have, heads // have, *x.shape[2:])
    return wide.reshape(x.shape[0], heads, *x.shape[2:])


def _causal(rows: int, columns: int, past: int) -> numpy.ndarray:
    """Whether a query sees a key: none of a later position."""
    return numpy.arange(columns)[None, :] <= numpy.arange(rows)[:, None] + past


@define("Attention")
def _attention(
    node: Node,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
) -> list[Tensor]:
    is_flat = query.dim() == 3
    if is_flat:
        query = _split_heads(node, query, node.get("q_num_heads"))
        key, value = (_split_heads(node, x, node.get("kv_num_heads")) for x in (key, value))
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        key, value = torch.cat([past_key, key], 2), torch.cat([past_value, value], 2)
    present = key, value
    heads, rows, columns = query.shape[1], query.shape[2], key.shape[2]
    scale = node.get("scale", 1 / math.sqrt(query.shape[3]))
    mode = node.get("qk_matmul_output_mode", 0)
    scores = multiply(query * scale, _repeat_heads(key, heads).transpose(2, 3))
    shown = scores
    if cap := node.get("softcap", 0.0):
        scores = torch.tanh(scores / cap) * cap
        shown = scores if mode == 1 else shown
    if mask is not None and mask.shape[-1] < columns:
        missing = columns - mask.shape[-1]
        mask = functional.pad(mask, [0, missing], value=False if mask.dtype == torch.bool else -math.inf)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    if node.get("is_causal", 0):
        scores = torch.where(constant(_causal(rows, columns, past), torch.bool), scores, -math.inf)
    if lengths is not None:
        exists = torch.arange(columns).reshape(1, -1) < lengths.to(torch.int64).reshape(-1, 1)
        scores = torch.where(exists.reshape(-1, 1, 1, columns), scores, -math.inf)
    shown = scores if mode == 2 else shown
    chances = torch.softmax(scores, -1)
    shown = chances if mode == 3 else shown
    y = multiply(chances, _repeat_heads(value, heads))
    if is_flat:
        y = y.transpose(1, 2).reshape(y.shape[0], rows, -1)
    return [y, *present, shown]


def _call_graph(node: Node, name: str, x: Tensor) -> Tensor:
    """What a graph among the attributes makes of one tensor."""
    if not node.has(name):
        return x
    body: onnx.GraphProto = node.get(name)
    scope = {**node.scope, body.input[0].name: Value(x, find_kind(x.dtype))}
    (result,) = node.reader.run(body, scope)
    made: Tensor = result.tensor.to(x.dtype)
    return made


@define("FlexAttention", domain="ai.onnx.preview")
def _flex_attention(node: Node, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    heads = query.shape[1]
    scale = node.get("scale", 1 / math.sqrt(query.shape[3]))
    key, value = _repeat_heads(key, heads), _repeat_heads(value, heads)
    scores = multiply(query * scale, key.transpose(2, 3))
    precision = node.get("softmax_precision")
    if precision is not None and precision in KINDS:
        scores = scores.to(KINDS[precision].wide)
    scores = _call_graph(node, "score_mod", scores)
    chances = _call_graph(node, "prob_mod", torch.softmax(scores, -1))
    return multiply(chances, value.to(chances.dtype)).to(query.dtype)


@define("RotaryEmbedding")
def _rotary(node: Node, x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor | None = None) -> Tensor:
    shape = x.shape
    if x.dim() == 4:
        rows = x.transpose(1, 2)
    elif heads := node.get("num_heads", 0):
        rows = x.reshape(x.shape[0], x.shape[1], heads, -1)
    else:
        raise node.refuse("requires num_heads for inputs of rank 3, got none")
    size = node.get("rotary_embedding_dim", 0) or rows.shape[3]
    if positions is not None:
        places = wrap_indices(positions, cosines.shape[0]).reshape(-1)
        cosines, sines = (take_rows(t, places).reshape(*positions.shape, -1) for t in (cosines, sines))
    cosines, sines = cosines.unsqueeze(2), sines.unsqueeze(2)
    turned, rest = rows.narrow(3, 0, size), rows.narrow(3, size, rows.shape[3] - size)
    if node.get("interleaved", 0):
        pairs = turned.reshape(*turned.shape[:3], size // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        turned = torch.stack([cosines * a - sines * b, sines * a + cosines * b], -1).reshape(turned.shape)
    else:
        a, b = turned.narrow(3, 0, size // 2), turned.narrow(3, size // 2, size // 2)
        turned = torch.cat([cosines * a - sines * b, sines * a + cosines * b], 3)
    y = torch.cat([turned, rest], 3) if rest.shape[3] else turned
    return y.transpose(1, 2) if x.dim() == 4 else y.reshape(shape)


@define("CausalConvWithState")
def _causal_conv(
    node: Node, x: Tensor, weight: Tensor, bias: Tensor | None = None, past: Tensor | None = None
) -> list[Tensor]:
    size = weight.shape[2] - 1
    if past is None:
        past = torch.zeros(x.shape[0], x.shape[1], size, dtype=x.dtype)
    padded = torch.cat([past, x], 2) if size else x
    y = functional.conv1d(padded, weight, bias, groups=x.shape[1])
    activation = node.get("activation", "none")
    if activation not in ("none", "silu", "swish"):
        raise node.refuse(f"requires activation none, silu or swish, got {activation}")
    if activation != "none":
        y = y * torch.sigmoid(y)
    return [y, padded.narrow(2, padded.shape[2] - size, size)]


@define("LinearAttention")
def _linear_attention(
    node: Node,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
) -> list[Tensor]:
    rule = node.get("update_rule", "gated_delta")
    heads, own = node.get("q_num_heads"), node.get("kv_num_heads")
    steps = query.shape[1]
    if steps > MOST_STEPS:
        raise node.refuse(f"requires sequences of at most {MOST_STEPS} steps, got {steps}")
    query = _split_heads(node, query, heads)
    key, value = _split_heads(node, key, own), _split_heads(node, value, own)
    size = key.shape[3]
    scale = node.get("scale", 0.0) or 1 / math.sqrt(size)
    state: Tensor = torch.zeros(key.shape[0], own, size, value.shape[3]) if past is None else past
    if "gated" in rule and decay is not None:
        decay = torch.exp(_split_heads(node, decay, own))
    if "delta" in rule and beta is not None:
        beta = beta.transpose(1, 2)
    outputs = []
    for step in range(steps):
        k, v = key[:, :, step], value[:, :, step]
        if "gated" in rule and decay is not None:
            state = state * decay[:, :, step].unsqueeze(-1)
        if "delta" in rule and beta is not None:
            known = torch.sum(state * k.unsqueeze(-1), 2)
            v = beta[:, :, step].unsqueeze(-1) * (v - known)
        state = state + k.unsqueeze(-1) * v.unsqueeze(-2)
        read = _repeat_heads(state, heads)
        outputs.append(torch.sum(read * query[:, :, step].unsqueeze(-1), 2) * scale)
    y = torch.stack(outputs, 1)
    node.result_kinds[1] = node.kind(3) if node.is_given(3) else node.kind(0)
    return [y.reshape(y.shape[0], steps, -1), state]


@define("TfIdfVectorizer")
def _tf_idf(node: Node, x: Tensor) -> Tensor:
    if not node.has("pool_int64s"):
        raise node.refuse("requires pool_int64s, got text")
    pool, starts = list(node.get("pool_int64s")), list(node.get("ngram_counts"))
    places, weights = list(node.get("ngram_indexes")), node.get("weights")
    low, high, skips = node.get("min_gram_length"), node.get("max_gram_length"), node.get("max_skip_count")
    rows = x.reshape(1, -1) if x.dim() == 1 else x
    width = rows.shape[1]
    counts: list[Any] = [None] * (max(places) + 1)
    number = 0
    for length, (begin, end) in enumerate(zip(starts, [*starts[1:], len(pool)]), 1):
        for first in range(begin, end, length):
            gram = pool[first : first + length]
            place, number = places[number], number + 1
            if not low <= length <= high:
                continue
            total: Any = 0
            for skip in range(1, skips + 2) if length > 1 else (1,):
                reach = (length - 1) * skip
                if reach >= width:
                    continue
                found: Any = None
                for offset, item in enumerate(gram):
                    same = rows.narrow(1, offset * skip, width - reach) == item
                    found = same if found is None else found & same
                total = total + torch.sum(found.to(torch.int64), 1)
            counts[place] = total if counts[place] is None else counts[place] + total
    zeros = torch.zeros(rows.shape[0], dtype=torch.int64)
    table = torch.stack([zeros if not isinstance(c, Tensor) else c for c in counts], 1)
    factors = constant(numpy.ones(len(counts)), torch.float32)
    if weights is not None:
        spread = numpy.ones(len(counts))
        for entry, place in enumerate(places):
            spread[place] = weights[entry]
        factors = constant(spread, torch.float32)
    mode = node.get("mode")
    if mode == "TF":
        y = table.to(torch.float32)
    else:
        y = (table > 0).to(torch.float32) * factors
        y = y * table.to(torch.float32) if mode == "TFIDF" else y
    return y.reshape(-1) if x.dim() == 1 else y
