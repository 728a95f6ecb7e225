# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.bench1: latencies of operators, and on what machine they are taken."""

from __future__ import annotations

import dataclasses
import itertools
import time
import types

import numpy
import pytest

import kas
from kas_research.bench1 import Latency

pytest.importorskip("torch")

from kas_research.bench1 import _reproduce, _time
from kas_research.protocol import Store


def test_latencies_go_on_and_are_packed(untrained, tmp_path):
    rows = [untrained[0], untrained[4711]]
    store = Store(tmp_path / "latencies.jsonl")
    _time.measure_all(rows, store, layers=["512x7"], threads=[1], limit=1)
    assert [record["operator"] for record in store] == [rows[0].key]
    for _ in range(2):
        _time.measure_all(rows, store, layers=["512x7"], threads=[1])
    assert [record["operator"] for record in store] == [row.key for row in rows]
    # Another time: the least counts.
    _time.measure_all(rows, store, layers=["512x7"], threads=[1], again=1, limit=1)
    assert [record["operator"] for record in store] == [rows[0].key, rows[1].key, rows[0].key]
    times = [record["microseconds"] for record in store if record["operator"] == rows[0].key]
    assert _time.collect_latencies([store])[rows[0].key][0].microseconds == min(times)
    for latencies in _time.collect_latencies([store, store]).values():
        (latency,) = latencies
        assert (latency.layer, latency.threads) == ("512x7", 1)
        assert latency.microseconds > 0 and latency.ratio == latency.microseconds / latency.dense_microseconds


def test_what_no_machine_has_timed_comes_first(untrained, monkeypatch, tmp_path):
    def measure(batch, probe):
        for place, of in batch._operators.items():
            yield place, [1.0] * len(of), 2.0

    monkeypatch.setattr(_time.Batch, "measure", measure)
    monkeypatch.setattr(_time, "Probe", lambda known: types.SimpleNamespace(least=known))
    timed = dataclasses.replace(untrained[0], latencies=(Latency("512x7", 1, "that", 1.0, 1.0),))
    rows = [timed, untrained[4711], untrained[3]]
    store = Store(tmp_path / "latencies.jsonl")
    _time.measure_all(rows, store, layers=["512x7"], threads=[1])
    assert [record["operator"] for record in store] == [rows[1].key, rows[2].key, rows[0].key]


def test_what_was_not_calm_is_timed_again(untrained, monkeypatch, tmp_path):
    """A process that begins while the machine is not calm knows what earlier ones have seen."""
    probes, times = [], iter([4.0, 3.0])

    def make_probe(known):
        probes.append(types.SimpleNamespace(least=min(known, [80.0, 130.0][len(probes)])))
        return probes[-1]

    def measure(batch, probe):
        probe.is_calm = len(probes) > 1
        for place in batch._operators:
            yield place, [next(times)], 2.0

    monkeypatch.setattr(_time.Batch, "measure", measure)
    monkeypatch.setattr(_time, "Probe", make_probe)
    store = Store(tmp_path / "latencies.jsonl")
    packed = Latency("512x7", 2, _time.describe_processor(), 4.0, 2.0)
    rows = [untrained[0], dataclasses.replace(untrained[0], latencies=(packed,)), untrained[0]]
    for row in rows:
        _time.measure_all([row], store, layers=["512x7"], threads=[2])
    assert [(record["calm"], record["probe_microseconds"]) for record in store] == [(False, 80.0), (True, 80.0)]
    ((latency,),) = _time.collect_latencies([store]).values()
    assert latency.microseconds == 3.0


def test_stores_with_incomplete_latencies(tmp_path):
    store = Store(tmp_path / "latencies.jsonl")
    store.add({"kind": "training", "key": "1"})
    assert _time.collect_latencies([store]) == {}
    store.add({"kind": "operator_latency", "key": "2", "operator": "3", "failure": None})
    with pytest.raises(ValueError, match=r"latencies\.jsonl: requires latencies with 'layer', got one without"):
        _time.collect_latencies([store])


def test_least_latencies_count():
    latencies = [
        Latency("512x7", 1, "this", 3.0, 8.0),
        Latency("64x56", 1, "this", 1.0, 2.0),
        Latency("512x7", 1, "this", 2.0, 9.0),
        Latency("512x7", 1, "other", 1.0, 1.0),
    ]
    assert _time.merge_latencies(latencies) == [
        Latency("512x7", 1, "other", 1.0, 1.0),
        Latency("64x56", 1, "this", 1.0, 2.0),
        Latency("512x7", 1, "this", 2.0, 8.0),
    ]


def test_what_differs_is_timed_again(table, monkeypatch):
    """Three tries, the least time of which counts; what holds is not timed again."""
    calls = []
    times = iter([130.0, 100.0, 120.0, 105.0])

    def measure(batch, probe):
        calls.append(list(batch._operators))
        for place, (operator,) in batch._operators.items():
            assert operator is row.operator
            yield place, [next(times)], 100.0

    monkeypatch.setattr(_reproduce.Batch, "measure", measure)
    monkeypatch.setattr(_reproduce, "Probe", lambda: None)
    row = dataclasses.replace(
        table[0], latencies=(Latency("64x56", 1, "that", 100.0, 100.0), Latency("512x7", 1, "that", 100.0, 100.0))
    )
    checks = list(_reproduce.check_latencies([row]))
    assert calls == [[("64x56", 1), ("512x7", 1)], [("64x56", 1)], [("64x56", 1)]]
    assert [(check.found, check.holds) for check in checks] == [(1.0, True), (1.05, True)]
    assert all(check.what.endswith(" (table: another machine)") for check in checks)


def make_probe(times):
    probe = _time.Probe.__new__(_time.Probe)
    probe.least, probe._start, probe._waited = 100.0, time.monotonic(), 0.0
    probe.is_calm = True
    probe.meanwhile = lambda: False
    probe._layer = types.SimpleNamespace(time=lambda calls: next(times))
    return probe


def test_waiting_for_a_calm_machine_ends(monkeypatch):
    times = iter([150.0, 120.0, 111.0, 110.0])
    probe = make_probe(times)
    probe.wait()
    assert list(times) == [110.0]
    # What is the fastest so far is what the next ones are compared with.
    times = iter([90.0, 102.0, 100.0, 95.0])
    probe = make_probe(times)
    probe.wait()
    probe.wait()
    assert list(times) == [95.0]
    # A machine that never is calm is waited for as long as there is patience.
    monkeypatch.setattr(_time, "PATIENCE", 0.0)
    assert probe.is_calm
    times = itertools.repeat(200.0)
    probe = make_probe(times)
    probe.wait()
    assert not probe.is_calm


def test_other_work_is_done_while_the_machine_is_not_calm():
    work = iter("abc")
    probe = make_probe(iter([150.0, 120.0, 111.0]))
    probe.meanwhile = lambda: next(work, None) is not None
    probe.wait()
    assert list(work) == ["c"]


def test_batches_are_compiled_in_parts(table):
    places = [("512x7", 1), ("256x14", 1)]
    batch = _time.Batch({place: [table[0].operator, table[4711].operator] for place in places})
    assert batch.compile(4) and batch.compile(4) and not batch.compile(4)
    found = list(batch.measure(None, rounds=1, calls=1))
    assert [place for place, _, _ in found] == places
    assert all(len(times) == 2 and min(*times, dense) > 0 for _, times, dense in found)


def test_only_several_threads_wait_for_a_calm_machine():
    calls = []
    probe = types.SimpleNamespace(wait=lambda: calls.append("wait"))

    def make_layer(name, threads):
        def measure(count, together=4):
            calls.append(name)
            return 10.0

        return types.SimpleNamespace(time=measure, threads=threads)

    layers = [make_layer("one", 1), "no such layer", make_layer("two", 2), make_layer("two", 2)]
    assert _time._time_in_turn(layers, probe, 2, 20) == [10.0, "no such layer", 10.0, 10.0]
    assert calls == [*["one", "two", "two"], *["one", "wait", "two", "two"], *["one", "two", "two"]]


def test_slow_layers_are_called_less_often():
    calls = []

    def make_layer(microseconds):
        def measure(count, together=4):
            calls.append((microseconds, count, together))
            return microseconds

        return types.SimpleNamespace(time=measure, threads=1)

    probe = types.SimpleNamespace(wait=None)
    layers = [make_layer(value) for value in (10.0, 200.0, 1000.0, 50000.0)]
    assert _time._time_in_turn(layers, probe, 1, 20) == [10.0, 200.0, 1000.0, 50000.0]
    # Once to know how long it takes; then 2 ms in all, but once at least, besides a first call.
    assert calls[:4] == [(value, 0, 1) for value in (10.0, 200.0, 1000.0, 50000.0)]
    assert calls[4:] == [(10.0, 20, 4), (200.0, 10, 4), (1000.0, 2, 2), (50000.0, 1, 1)]


def test_weights_do_not_share_memory():
    layer = _time.compile_layer(kas.operator("linear_low_rank"), {"N": 4, "Cin": 8, "Cout": 8, "r": 8}, 1)
    first, second = layer.tensors[1:3]
    assert first.shape == second.shape and not numpy.shares_memory(first, second)


def test_layers_have_the_stages_of_prepared_weights(table):
    """Weights that share a window are multiplied first, not each with the data: that takes twelve times as long."""
    binding = _time.LAYERS["64x56"]
    slow, dense = (
        _time.compile_layer(operator, given, 1).start().program.get_num_prepacked_elements("forward")
        for operator, given in (
            (table[10757].operator, binding),
            (kas.operator("conv2d"), {**binding, "W": binding["H"], "k": binding["k1"]}),
        )
    )
    assert slow == dense
