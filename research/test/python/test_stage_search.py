# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas-research compare --search: operators for each stage of a network."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")
pytest.importorskip("scipy")

import numpy  # noqa: E402

from kas.evaluate._data_sets import FASHION_MNIST  # noqa: E402
from kas_research import (  # noqa: E402
    cli,
    protocol,
    study,
)
from kas_research.protocol import Contender, StageSearch, Store, search_stages  # noqa: E402
from kas_research.protocol._mixture import Mixture  # noqa: E402
from kas_research.protocol._run import Team  # noqa: E402
from kas_research.protocol._stage_search import Space  # noqa: E402

needs_data = pytest.mark.skipif(
    not pathlib.Path(FASHION_MNIST).is_dir(), reason="requires Debian's package dataset-fashion-mnist"
)
POOL = ("depthwise-separable-relu", "depthwise", "pointwise")
ALL = numpy.array(list(itertools.product(range(2), range(5), range(5), range(5))))


def make(trainings=6, **options):
    """Of a few steps on real images."""
    recipe = dataclasses.replace(protocol.Protocol((Contender("dense"),)).recipe, epochs=1, batch_size=16)
    contenders = tuple(Contender(name) for name in ("dense", "depthwise-separable-relu"))
    pool = tuple(Contender(name) for name in POOL)
    options.setdefault("search", StageSearch(pool, trainings=trainings, finalists=3))
    data = {"train": 32, "validation": 32, "seed": 0, "augmentation": "none"}
    return protocol.Protocol(contenders, widths=(16, 32), reporting=(100,), recipe=recipe, data_options=data, **options)


def truth(rows, seed=0):
    """What widths and operators add."""
    generator = numpy.random.default_rng(seed)
    parts = [generator.normal(0, 0.6, 5) for _ in range(rows.shape[1])]
    return 90 + sum(part[rows[:, column]] for column, part in enumerate(parts))


# The model


@pytest.mark.parametrize("seed", range(3))
def test_the_model_finds_what_operators_add(seed):
    generator = numpy.random.default_rng(seed)
    rows = generator.choice(len(ALL), 60)
    values = truth(ALL, seed)
    model = Mixture()
    model.fit(ALL[rows], list(values[rows] + generator.normal(0, 0.25, 60)))
    means, deviations = model.predict(ALL)
    assert numpy.corrcoef(means, values)[0, 1] > 0.9
    errors = (means - values) / deviations
    assert numpy.sqrt((errors**2).mean()) < 2


def test_a_network_that_was_trained_often_is_known():
    model = Mixture()
    model.fit(numpy.repeat(ALL[:1], 50, 0), [90.0, 91.0] * 25)
    means, deviations = model.predict(ALL[[0, -1]])
    assert abs(means[0] - 90.5) < 1e-6
    assert deviations[0] < 0.1 < deviations[1]


def test_what_is_asked_for_at_once_is_believed():
    model = Mixture()
    model.fit(ALL[::10], list(truth(ALL)[::10]))
    means, deviations = model.predict(ALL)
    model.believe(ALL[3:4])
    believed, less = model.predict(ALL)
    assert numpy.allclose(means, believed)
    assert less[3] < deviations[3]
    assert (less <= deviations + 1e-9).all()


def test_the_model_needs_an_accuracy_for_each_network():
    with pytest.raises(ValueError, match=r"requires an accuracy for each network, got 1 for 2"):
        Mixture().fit(ALL[:2], [90.0])


# The space


def test_probes_have_each_operator_at_each_stage():
    space = Space(make(), make().search)
    probes = space.probes("pooled")
    assert len(probes) == len(set(probes)) == 2 * (1 + 3 * 2)
    assert all(space.choices[space.index(point)][1:].astype(bool).sum() <= 1 for point in probes)
    for index in range(len(space.choices)):
        assert space.index(space.point("pooled", index)) == index


def test_times_of_networks_are_sums():
    space = Space(make(), make().search)
    added = numpy.random.default_rng(0).uniform(1, 9, (2, 3, 3))
    times = numpy.array([sum(added[row[0], s, row[1 + s]] for s in range(3)) for row in space.choices])
    measured = {point: times[space.index(point)] for point in space.probes("pooled")}
    assert numpy.allclose(space.predict_latencies("pooled", measured), times)


# The search


def fill(store, options):
    """Times and accuracies of baselines and probes, without measuring them."""
    identity = implementation_identity(options)
    space = Space(options, options.search)
    times = {"dense": (40.0, 90.0), "depthwise-separable-relu": (20.0, 45.0)}
    for point in options.points():
        time = times[point.contender][(16, 32).index(point.width)]
        add_time(store, options, point, time)
        job = protocol.Job(point, 100, True)
        store.add(
            {
                "kind": "training",
                "key": options.key(job, identity),
                "settings": options.settings(job, identity),
                **point._asdict(),
                "seed": 100,
                "reported": True,
                "failure": None,
                "validation": 10.0,
                "parameters": 1,
                "cpu_seconds": 1.0,
            }
        )
    for number, point in enumerate(space.probes("pooled")):
        add_time(store, space.protocol, point, (20.0, 45.0)[(16, 32).index(point.width)] + number / 10)


def implementation_identity(options):
    from kas_research.protocol._protocol import identify

    return identify(options.load_data())


def add_time(store, options, point, microseconds):
    record = {"kind": "latency", "key": options.latency_key(point), **point._asdict(), "machine": "test", "time": 0}
    record |= {"batch": 1, "threads": 1}
    store.add({**record, "versions": {}, "microseconds": {"kas": microseconds}, "failures": {}})


@needs_data
def test_a_search_goes_on_where_it_was(tmp_path):
    options = make()
    store = Store(tmp_path / "store.jsonl")
    fill(store, options)
    seen = []
    found = search_stages(options, store, processes=1, progress=lambda record, left: seen.append((record, left)))
    assert len(seen) == 6
    assert [left for _, left in seen] == [5, 4, 3, 2, 1, 0]
    assert all(record["seed"] in options.choosing and "test" not in record for record, _ in seen)
    again = search_stages(options, store, processes=1, progress=lambda record, left: pytest.fail("trained again"))
    assert again == found
    for entry in found:
        assert len(entry.contender.stages) == 3
        assert entry.contender.is_candidate
        assert set(entry.gains) <= {16, 32}


@needs_data
def test_a_search_recalls_what_the_store_has(tmp_path):
    options = make()
    store = Store(tmp_path / "store.jsonl")
    fill(store, options)
    search_stages(options, store, processes=1)
    # Another seed would begin with other networks; what is known counts, and goes into what is found.
    other = make(search=dataclasses.replace(options.search, seed=5, trainings=6, recalls=True))
    known = search_stages(other, store, processes=1, progress=lambda record, left: pytest.fail("trained again"))
    assert sum(entry.trainings for entry in known) <= 6
    seen = []
    more = dataclasses.replace(other, search=dataclasses.replace(other.search, trainings=8))
    search_stages(more, store, processes=1, progress=lambda record, left: seen.append(left))
    assert seen == [1, 0]


@needs_data
def test_a_search_does_not_depend_on_what_ends_first(tmp_path, monkeypatch):
    outcomes = []
    train = Team.train
    for order in (list, lambda records: list(records)[::-1]):
        monkeypatch.setattr(Team, "train", lambda self, jobs, order=order: iter(order(train(self, jobs))))
        store = Store(tmp_path / f"store-{len(outcomes)}.jsonl")
        fill(store, make(9))
        outcomes.append(search_stages(make(9), store, processes=1))
    assert outcomes[0] == outcomes[1]


@needs_data
def test_a_search_needs_baselines_and_a_pool(tmp_path):
    with pytest.raises(ValueError, match=r"requires a search in the protocol, got none"):
        search_stages(make(search=None), Store(tmp_path / "store.jsonl"))
    store = Store(tmp_path / "times.jsonl")
    space = Space(make(), make().search)
    for point in space.probes("pooled"):
        add_time(store, space.protocol, point, 20.0)
    with pytest.raises(ValueError, match=r"requires accuracies and times of baselines, got none"):
        search_stages(make(), store)


@needs_data
def test_the_command_writes_candidates(tmp_path, capsys):
    text = """
widths: [16, 32]
seeds: {choosing: 0-2, reporting: [100]}
recipe: {epochs: 1, batch-size: 16, warmup-steps: 100}
data: {name: fashion-mnist, train: 32, validation: 32, augmentation: none}
contenders: [dense, depthwise-separable-relu]
search: {pool: [depthwise-separable-relu, depthwise, pointwise], trainings: 9, finalists: 2}
"""
    spec = tmp_path / "spec.yaml"
    spec.write_text(text)
    options = protocol.read_protocol(str(spec))
    store = Store(tmp_path / "spec.jsonl")
    fill(store, options)
    assert cli.main(["compare", str(spec), "--search", "--processes=1", "--quiet"]) == 0
    output = capsys.readouterr().out
    assert "candidates:" in output
    assert cli.main(["compare", str(spec), "--search", "--processes=1", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [entry["stages"][0]["name"] in output for entry in found] == [True] * output.count("- {name: found-")
    assert set(found[0]) == {"stages", "gains", "deviations", "microseconds", "trainings"}
    # What it prints goes into the file as it is.
    spec.write_text(text + output)
    again = protocol.read_protocol(str(spec))
    candidates = [contender for contender in again.contenders if contender.is_candidate]
    assert 1 <= len(candidates) <= 2
    results = protocol.read_results(again, store)[0].results
    assert any(result.accuracies for point, result in results.items() if point.contender == candidates[0].name)


# The file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("search: {trainings: 3}", r":2: requires the key 'pool' in a search, got none"),
        ("search: {pool: [depthwise]}", r":2: requires two or more different operators .* got depthwise"),
        ("search: {pool: [depthwise, depthwise]}", r":2: requires two or more different operators"),
        ("search: {pool: [depthwise, unknown]}", r":2: requires a contender of dense, .* got 'unknown'"),
        ("search: {pool: [depthwise, dense], trainings: 0}", r":2: .*'trainings'"),
        ("search: {pool: [depthwise, dense], seeds: 0}", r":2: .*'seeds'"),
        ("search: {pool: [depthwise, dense], recalls: 1}", r":2: requires 'recalls' of true, false, got '1'"),
    ],
)
def test_errors_of_searches_have_the_line(text, message):
    with pytest.raises(study.SpecError, match=message):
        protocol.parse_protocol(f"contenders: [dense]\n{text}\n", "spec.yaml")


def test_a_search_is_read(tmp_path):
    (tmp_path / "mine.mlir").write_text("text")
    pool = "[depthwise, {name: mine, file: mine.mlir, binding: {k: 3}}]"
    text = f"contenders: [dense]\nsearch: {{pool: {pool}, widths: [32], seed: 7}}\n"
    found = protocol.parse_protocol(text, str(tmp_path / "spec.yaml")).search
    mine = Contender("mine", "text", {"k": 3})
    assert found == StageSearch((Contender("depthwise"), mine), 200, (32,), 7)
