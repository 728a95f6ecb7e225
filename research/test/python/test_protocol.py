# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.protocol: networks, layers, trainings, the store, the file that says what to compare, and reports."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import pathlib
import signal
import sys
import xml.etree.ElementTree

import numpy
import pytest

import kas

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")
pytest.importorskip("scipy")

from kas import evaluate  # noqa: E402
from kas.evaluate._data_sets import FASHION_MNIST  # noqa: E402
from kas.zoo._layers import SEQUENCES  # noqa: E402
from kas_research import (  # noqa: E402
    cli,
    protocol,
    study,
)
from kas_research.protocol import (  # noqa: E402
    Contender,
    Job,
    Point,
    Store,
    _command,
    _latency,
    _run,
    _train,
)
from kas_research.protocol import _protocol as implementation  # noqa: E402
from kas_research.protocol.bootstrap import pack_bits, unpack_bits  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
ALL = [*protocol.LAYERS, *protocol.OPERATORS]
needs_data = pytest.mark.skipif(
    not pathlib.Path(FASHION_MNIST).is_dir(), reason="requires Debian's package dataset-fashion-mnist"
)


def make(*names, **options):
    options.setdefault("widths", (16,))
    contenders = tuple(Contender(name) for name in dict.fromkeys(["dense", *names]))
    return protocol.Protocol(contenders, **options)


def make_small(*names, **options):
    """Of a few steps on real images."""
    recipe = dataclasses.replace(make().recipe, epochs=1, batch_size=16, warmup_steps=2)
    data = {"train": 48, "validation": 32, "seed": 0, "augmentation": "flip"}
    return make(*names, recipe=recipe, data_options=data, **options)


# Networks and layers


@pytest.mark.parametrize("name", ALL)
def test_layers_keep_the_shape_of_their_data(name):
    contender = Contender(name)
    layer = protocol.make_layer(contender, batch=2)(16, 8)
    x = torch.randn(2, 16, 8, 8)
    assert layer(x).shape == x.shape


@pytest.mark.parametrize("name", protocol.NETWORKS)
def test_networks_have_a_width(name):
    x = torch.randn(2, 1, 32, 32)
    sizes = []
    for width in (16, 32):
        network = protocol.make_network(name, width, Contender("dense"))
        assert network(x).shape == (2, 10)
        sizes.append(sum(parameter.numel() for parameter in network.parameters()))
    assert 3 < sizes[1] / sizes[0] < 4.1


@pytest.mark.parametrize("name", protocol.NETWORKS)
def test_only_the_stem_and_the_replaced_layers_see_neighbours(name):
    torch.manual_seed(0)
    control = protocol.make_network(name, 16, Contender("pointwise")).eval().double()
    dense = protocol.make_network(name, 16, Contender("dense")).eval().double()
    # A permutation of blocks of 16x16 pixels keeps what a network without windows gives: the stem's window is cut at
    # borders of blocks, so these are black.
    x = torch.zeros(1, 1, 32, 32, dtype=torch.float64)
    x[0, 0, 2:14, 2:14] = torch.rand(12, 12, dtype=torch.float64)
    x[0, 0, 18:30, 18:30] = torch.rand(12, 12, dtype=torch.float64)
    moved = torch.cat([x[..., 16:], x[..., :16]], 3)
    same = torch.allclose(control(x), control(moved), atol=1e-9)
    assert same == (name != "resnet8")
    assert not torch.allclose(dense(x), dense(moved), atol=1e-9)


def test_shift_moves_each_ninth_of_the_channels():
    layer = protocol.LAYERS["shift-pointwise"](9, 5)[0]
    x = torch.randn(1, 9, 5, 5)
    y = layer(x)
    for channel in range(9):
        rows, columns = channel // 3 - 1, channel % 3 - 1
        assert y[0, channel, 2, 2] == x[0, channel, 2 + rows, 2 + columns]


def test_sequences_have_the_weights_of_the_paper():
    def count(name):
        return sum(parameter.numel() for parameter in protocol.LAYERS[name](16, 8).parameters())

    dense = count("dense")
    assert count("nas-pte-1") == 2 * dense
    assert count("nas-pte-2") == dense * (1 / 2 + 1 / 2 * 1 / 2 / 4)
    assert count("nas-pte-3") == dense * (1 / 2 + 1 / 4) / 2


# Data


@needs_data
def test_fashion_mnist_has_fixed_splits():
    data = evaluate.load_data("fashion-mnist", train=200, validation=100)
    assert data.input_shape == (1, 32, 32)
    assert len(data.test[0]) == 10000
    assert abs(float(data.train[0].mean())) < 1e-4
    assert data.checksum() == evaluate.fashion_mnist(train=200, validation=100).checksum()
    assert data.checksum() == "20f896948ca0494483a47204829fb86e"
    other = evaluate.fashion_mnist(train=200, validation=100, seed=1)
    assert other.checksum() != data.checksum()
    assert torch.equal(other.test[1], data.test[1])


@needs_data
def test_training_and_validation_images_are_disjoint():
    data = evaluate.fashion_mnist(train=59000, validation=1000)
    seen = {image.numpy().tobytes() for image in data.train[0]}
    # Fashion-MNIST has a few images twice.
    assert sum(image.numpy().tobytes() in seen for image in data.validation[0]) < 10


def test_errors_of_data_say_what_was_required(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"requires the file '.*train-images-idx3-ubyte', or .*, got none; Debian's"
    ):
        evaluate.fashion_mnist(tmp_path)
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        (tmp_path / name).write_bytes(b"\x1f\x8b damaged")
    with pytest.raises(ValueError, match=r"'.*train-images-idx3-ubyte.gz': the compressed data is broken"):
        evaluate.fashion_mnist(tmp_path)
    with pytest.raises(ValueError, match=r"train \+ validation <= 60000, got 59000 and 2000"):
        evaluate.fashion_mnist(tmp_path, train=59000, validation=2000)


@needs_data
def test_data_with_another_checksum_are_refused():
    with pytest.raises(ValueError, match=r"requires data with the checksum 00, got .*: results on other data"):
        make_small(checksum="00").load_data()


def test_unseen_tasks_move_and_turn_the_images():
    images = torch.zeros(20, 1, 32, 32)
    images[:, 0, 16, 16] = 1
    classes = torch.arange(20)
    unseen = protocol.make_unseen((images, classes))
    shifted, same = unseen["shifted"]
    assert torch.equal(same, classes)
    places = {tuple(image[0].nonzero()[0].tolist()) for image in shifted}
    assert len(places) > 5
    assert all(13 <= row <= 19 and 13 <= column <= 19 for row, column in places)
    rotated = unseen["rotated"][0]
    assert torch.allclose(rotated.sum((1, 2, 3)), torch.ones(20), atol=0.2)
    assert torch.equal(protocol.make_unseen((images, classes))["rotated"][0], rotated)
    assert not torch.equal(protocol.make_unseen((images, classes), seed=1)["rotated"][0], rotated)


# Trainings


@pytest.fixture(scope="module")
def workers():
    """By backend; loading the data takes longer than their trainings."""
    if not pathlib.Path(FASHION_MNIST).is_dir():
        pytest.skip("requires Debian's package dataset-fashion-mnist")
    pytest.importorskip("torch_mlir")
    first = protocol.Worker(make_small(*ALL))
    second = copy.copy(first)
    second.protocol = make_small(*ALL, backend="pytorch")
    return {"native": first, "pytorch": second}


@pytest.mark.parametrize("network", protocol.NETWORKS)
def test_compiled_steps_are_those_of_pytorch(workers, network):
    losses = {}
    for backend, worker in workers.items():
        training, used = worker.start(Job(Point(network, "depthwise-separable-relu", 16), 3, True))
        assert used == backend
        training.advance(1)
        losses[backend] = training.curve[0][2], training.evaluate()["loss"]
    assert losses["native"] == pytest.approx(losses["pytorch"], rel=1e-3)


FAST = ("grouped-4-shuffle", "shift-pointwise", "nas-pte-2", "syno-operator-2", "kernel-07923")


@pytest.mark.parametrize("name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in ALL])
def test_the_first_steps_of_each_contender_are_those_of_pytorch(workers, name):
    job = Job(Point("pooled", name, 16), 0, False)
    x, y = workers["native"].data.train[0][:16], workers["native"].data.train[1][:16]
    losses = []
    for backend, worker in workers.items():
        training, used = worker.start(job)
        assert used == backend
        losses.append([training._step(x, y, 1e-3) for _ in range(2)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@needs_data
def test_trainings_that_differ_in_their_seed_are_compiled_once(workers, monkeypatch):
    compiled = []

    class Counted(_train.Program):
        def __init__(self, *arguments):
            compiled.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(_train, "Program", Counted)
    worker = protocol.Worker(workers["native"].protocol)
    jobs = [Job(Point("pooled", "depthwise", width), seed, True) for seed in (1, 2) for width in (16, 32)]
    records = [worker.train(job) for job in jobs]
    assert len(compiled) == 2
    alone = protocol.Worker(workers["native"].protocol).train(jobs[-1])
    assert alone["curve"] == records[-1]["curve"] != records[1]["curve"]
    assert alone["test"] == records[-1]["test"]
    # A few are kept.
    monkeypatch.setattr(_train, "MOST_COMPILED", 1)
    worker.train(jobs[0])
    worker.train(jobs[1])
    assert len(compiled) == 3 + 1


@needs_data
def test_the_text_of_an_operator_is_a_contender():
    text = str(kas.operator("conv2d_depthwise_separable"))
    contender = Contender("mine", text, {"k": 3}, is_candidate=True)
    small = make_small()
    own = dataclasses.replace(small, contenders=(*small.contenders, contender))
    record = protocol.Worker(own).train(Job(Point("pooled", "mine", 16), 0, False))
    assert record["failure"] is None
    assert record["backend"] == "native"
    hand = protocol.make_network("pooled", 16, Contender("depthwise-separable"))
    assert record["parameters"] == sum(parameter.numel() for parameter in hand.parameters())
    missing = dataclasses.replace(own, contenders=(own.contenders[0], Contender("mine", text)))
    record = protocol.Worker(missing).train(Job(Point("pooled", "mine", 16), 0, False))
    assert record["failure"] == "requires values for k in the binding of 'mine', got none"


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_text_of_a_sequence_is_a_contender(workers, name):
    mine = Contender("mine", SEQUENCES[name], {"k": 3}, is_candidate=True)
    records = []
    for contender, backend in ((mine, "native"), (mine, "pytorch"), (Contender(name), "native")):
        worker = copy.copy(workers[backend])
        worker.protocol = make_small(name, backend=backend)
        worker.protocol = dataclasses.replace(worker.protocol, contenders=(*worker.protocol.contenders[:1], contender))
        training, used = worker.start(Job(Point("pooled", contender.name, 16), 0, False))
        assert used == backend
        x, y = worker.data.train[0][:16], worker.data.train[1][:16]
        losses = [training._step(x, y, 1e-3) for _ in range(3)]
        records.append((losses, sum(parameter.numel() for parameter in training.network.parameters())))
    assert records[0][0] == pytest.approx(records[1][0], rel=1e-3)
    assert records[0][1] == records[2][1]


def test_stages_have_layers_and_operators_of_their_own(workers):
    sequence = Contender("mine", SEQUENCES["depthwise-separable-relu"], {"k": 3})
    operator = Contender("other", str(kas.operator("conv2d_depthwise_separable")), {"k": 3})
    wide, hand = Contender("depthwise-2-separable-relu"), Contender("depthwise-separable-relu")
    mixes = [(wide, sequence, hand), (wide, hand, sequence), (sequence, operator, wide), (wide, hand, hand)]
    for number, stages in enumerate(mixes):
        losses = []
        for backend, original in workers.items():
            worker = copy.copy(original)
            mixed = Contender("mixed", stages=stages)
            small = make_small(backend=backend)
            worker.protocol = dataclasses.replace(small, contenders=(*small.contenders, mixed))
            training, used = worker.start(Job(Point("pooled", "mixed", 16), 0, False))
            assert used == backend
            x, y = worker.data.train[0][:16], worker.data.train[1][:16]
            losses.append([training._step(x, y, 1e-3) for _ in range(3)])
        assert losses[0] == pytest.approx(losses[1], rel=1e-3), number


def test_stages_have_latencies(workers):
    stages = tuple(map(Contender, ("depthwise-4-separable-relu", "depthwise", "depthwise-separable-relu")))
    mixed = dataclasses.replace(make(), contenders=(Contender("dense"), Contender("mixed", stages=stages)))
    forms = _latency.export(mixed, Point("pooled", "mixed", 16), torch.zeros(1, 1, 32, 32))
    # As it is, with operators for its layers, and with a sequence at the last stage.
    assert len(forms) == 5 and str(forms[-1][0]).count("kas.sequence") == 1
    (record,) = protocol.measure(mixed, [Point("pooled", "mixed", 16)], names=("kas",), rounds=1, calls=2)
    assert record["failures"] == {} and record["microseconds"]["kas"] > 0


def test_batch_norms_beside_sequences_have_variances():
    # The norm after a shuffle is not folded, and its variance was a number of any sign.
    stages = tuple(map(Contender, ("grouped-4-shuffle", "depthwise-separable-relu", "pointwise")))
    mixed = dataclasses.replace(make(), contenders=(Contender("dense"), Contender("mixed", stages=stages)))
    (record,) = protocol.measure(mixed, [Point("pooled", "mixed", 16)], names=("kas",), rounds=1, calls=2)
    assert record["failures"] == {} and record["microseconds"]["kas"] > 0


def test_stages_are_one_for_each_size():
    dense = Contender("dense")
    with pytest.raises(ValueError, match="requires 3 stages of 'mixed', got 2"):
        Contender("mixed", stages=(dense, dense))
    with pytest.raises(ValueError, match="requires a text and a binding in the stages of 'mixed', got one beside"):
        Contender("mixed", "text", stages=(dense, dense, dense))
    text = "contenders: [dense, {name: mixed, stages: STAGES}]"
    read = protocol.parse_protocol(text.replace("STAGES", "[depthwise, dense, {name: depthwise}]"), "x.yaml")
    assert read["mixed"].settings == {"stages": [{"layer": "depthwise"}, {"layer": "dense"}, {"layer": "depthwise"}]}
    for stages, message in {
        "[dense, dense]": "x.yaml:1: requires 3 stages, got 2",
        "[dense, dense, {name: dense, seeds: 3}]": "x.yaml:1: requires a key of name, file, binding in a stage, got",
        "[dense, dense, dens]": "x.yaml:1: requires a contender",
        "[dense, dense, dense], binding: {k: 3}": "requires 'binding' in a stage, got it beside 'stages'",
    }.items():
        with pytest.raises(study.SpecError) as error:
            protocol.parse_protocol(text.replace("STAGES", stages), "x.yaml")
        assert message in str(error.value)


@needs_data
def test_test_images_are_for_reporting_alone():
    worker = protocol.Worker(make_small())
    chosen = worker.train(Job(Point("pooled", "dense", 16), 0, False))
    assert not {"test", "shifted", "rotated", "test_correct"} & set(chosen)
    reported = worker.train(Job(Point("pooled", "dense", 16), 100, True))
    assert all(0 <= reported[name] <= 100 for name in ("validation", "test", "shifted", "rotated"))
    assert reported["key"] != chosen["key"]
    correct = unpack_bits(reported["test_correct"])
    assert len(correct) == len(worker.data.test[0]) and 100 * correct.mean() == pytest.approx(
        reported["test"], abs=0.02
    )


@needs_data
def test_no_training_is_repeated(tmp_path):
    store = Store(tmp_path / "store.jsonl")
    small = make_small(reporting=(7, 8))
    records = []

    def run(own, progress):
        protocol.run(own, store, processes=1, niceness=0, progress=progress)

    run(small, lambda record, left: records.append((record["seed"], left)))
    assert records == [(7, 1), (8, 0)]
    before = (tmp_path / "store.jsonl").read_text()
    run(small, lambda *_: pytest.fail("trained again"))
    assert (tmp_path / "store.jsonl").read_text() == before
    more = dataclasses.replace(small, reporting=(7, 8, 9))
    assert [job.seed for job in protocol.plan(more, store)] == [9]
    # All hours are used up.
    run(dataclasses.replace(more, hours=0.0), lambda *_: pytest.fail("trained"))


@needs_data
def test_a_process_that_dies_is_a_failure(tmp_path, monkeypatch):
    submit = _run.ProcessPool.submit

    def submit_and_kill(pool, task, job):
        submit(pool, task, job)
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(_run.ProcessPool, "submit", submit_and_kill)
    store = Store(tmp_path / "store.jsonl")
    small = make_small(reporting=(7,))
    protocol.run(small, store, processes=1, niceness=0)
    (record,) = store
    assert record["failure"] == "the process that trained it ended with code -9"
    assert protocol.plan(small, store) == []
    assert [job.seed for job in protocol.plan(small, store, retry=True)] == [7]


def test_a_text_that_is_no_operator_is_a_failure(workers):
    contender = Contender("mine", "not an operator")
    worker = copy.copy(workers["native"])
    worker.protocol = dataclasses.replace(worker.protocol, contenders=(*worker.protocol.contenders, contender))
    record = worker.train(Job(Point("pooled", "mine", 16), 0, False))
    assert "mine" in record["failure"]
    two = Contender("mine", f"{kas.operator('conv2d')}\n{kas.operator('conv1x1')}", {"k": 3})
    worker.protocol = dataclasses.replace(worker.protocol, contenders=(*worker.protocol.contenders[:-1], two))
    record = worker.train(Job(Point("pooled", "mine", 16), 0, False))
    assert record["failure"] == "requires one operator, sequence or kernel in the text of 'mine', got 2"


# The protocol


def test_no_seed_is_for_choosing_and_reporting():
    with pytest.raises(ValueError, match="requires seeds for choosing and others for reporting, got 3, 4 in both"):
        make(choosing=(1, 3, 4), reporting=(3, 4, 5))


def test_candidates_are_reported_once_they_are_chosen():
    candidate = Contender("mine", "text", is_candidate=True)
    own = protocol.Protocol((Contender("dense"), candidate), widths=(16, 32), choosing=(0,), reporting=(1, 2))
    jobs = [(job.point.contender, job.point.width, job.seed, job.is_reported) for job in own.jobs()]
    assert jobs == [
        ("dense", 16, 1, True),
        ("dense", 32, 1, True),
        ("dense", 16, 2, True),
        ("dense", 32, 2, True),
        ("mine", 16, 0, False),
        ("mine", 32, 0, False),
    ]
    assert [job.seed for job in own.jobs(["mine"]) if job.point.contender == "mine"] == [1, 1, 2, 2]


def test_keys_of_stored_trainings_stay_what_they_are():
    job = Job(Point("pooled", "dense", 16), 100, True)
    assert make().key(job, "fashion-mnist 00 flip") == "28d5258739a170df"
    # A field that recipes had not, at its default.
    assert "mixed_precision" not in implementation.settings_of(make().recipe)
    changed = dataclasses.replace(make().recipe, milestones={1: 0.5}, mixed_precision=False)
    assert implementation.settings_of(changed)["mixed_precision"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"networks": ("vgg",)}, "requires networks of pooled, .*, got 'vgg'"),
        ({"dense": "pointwise"}, "requires the contender 'pointwise' of the width curve, got none"),
        ({"backend": "cuda"}, "the backend must be 'native' or 'pytorch', got 'cuda'"),
        ({"reporting": ()}, "requires a seed for reporting, got none"),
    ],
)
def test_errors_of_protocols_say_what_was_required(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
    with pytest.raises(ValueError, match=r"requires a contender of dense, .*, got 'nothing'"):
        Contender("nothing")


# The store


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "store.jsonl"
    store = Store(path)
    assert list(store) == []
    store.add({"kind": "training", "key": "a"})
    with open(path, "a") as file:
        file.write('{"kind": "trai')
    assert [record["key"] for record in store] == ["a"]
    store.add({"kind": "training", "key": "b"})
    assert [record["key"] for record in store] == ["a", "b"]
    path.write_text('{"kind": "training"}\nnonsense\n')
    with pytest.raises(protocol.StoreError, match=r"store.jsonl:2: requires JSON, got Expecting value"):
        list(store)
    path.write_text("[1]\n")
    with pytest.raises(protocol.StoreError, match="requires an object with a 'kind', got another value"):
        list(store)


# The file


def test_a_protocol_is_read(tmp_path):
    (tmp_path / "mine.mlir").write_text(str(kas.operator("conv2d")))
    read = protocol.parse_protocol(
        """
networks: [pooled, resnet8]
widths: [16, 32]
hours: 2.5
seeds: {choosing: 0-2, reporting: [5, 7]}
recipe: {epochs: 2, learning-rate: 1e-3, optimizer: sgd}
data: {train: 100, validation: 50}
contenders: [dense, {name: pointwise, widths: [32], seeds: 1, afterthought: true}]
candidates: [{name: mine, file: mine.mlir, binding: {k: 3}}]
""",
        str(tmp_path / "small.yaml"),
    )
    assert read.name == "small"
    assert (read.choosing, read.reporting, read.hours) == ((0, 1, 2), (5, 7), 2.5)
    assert (read.recipe.epochs, read.recipe.optimizer, read.recipe.batch_size) == (2, "sgd", 64)
    assert read["mine"].is_candidate
    assert read["mine"].binding == {"k": 3}
    assert read["pointwise"].num_seeds == 1
    assert [contender.name for contender in read.contenders if contender.is_afterthought] == ["pointwise"]
    assert [point.width for point in read.points() if point.contender == "pointwise"] == [32, 32]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.yaml:1: requires a protocol, got an empty file"),
        ("widths: [16]", "x.yaml:1: requires the key 'contenders' in a protocol, got none"),
        ("contenders: [dense]\nwidth: 3", "x.yaml:2: requires a key of name, .* in a protocol, got 'width'"),
        ("contenders: [dense, vgg]", "x.yaml:1: requires a contender of dense, .*, got 'vgg'"),
        ("contenders: [dense]\nwidths: [0]", "x.yaml:2: requires a width from 1 to 4096, got '0'"),
        ("contenders: [dense]\nwidths: [16, 16]", "x.yaml:2: requires each width once, got '16' again"),
        (
            "contenders: [dense]\nseeds: {choosing: 4-1}",
            "x.yaml:2: requires 'choosing' to be a list of seeds, or FIRST",
        ),
        ("contenders: [dense]\nseeds: {choosing: [1], reporting: [1]}", "and others for reporting, got 1 in both"),
        (
            "contenders: [{name: m, file: none.mlir}]",
            "requires a file with an operator, got '.*none.mlir', which is none",
        ),
        ("contenders: [{widths: [16]}]", "x.yaml:1: requires the key 'name' in a contender, got none"),
        ("contenders: [dense]\nrecipe: {epochs: many}", "x.yaml:2: requires 'epochs' from 1 to 10000, got 'many'"),
        (
            "contenders: [{name: dense, afterthought: maybe}]",
            "x.yaml:1: requires 'afterthought' of true, false, got 'maybe'",
        ),
        (
            "contenders: [dense]\ncandidates: [{name: depthwise, afterthought: true}]",
            "x.yaml:2: requires a key of name, .* in a contender, got 'afterthought'",
        ),
        ("contenders: [pointwise]", "x.yaml:1: requires the contender 'dense' of the width curve, got none"),
    ],
)
def test_errors_of_the_file_have_the_line(text, message):
    with pytest.raises(study.SpecError, match=message):
        protocol.parse_protocol(text, "x.yaml")


def test_the_published_comparison_is_read():
    read = protocol.read_protocol(str(ROOT / "research/data/discovery.yaml"))
    assert {point.contender for point in read.points()} >= set(ALL)
    # What a stage may have is a baseline when all stages have it, unless a search found it.
    assert read.search is not None
    assert {stage.name for stage in read.search.pool if stage.text is None} <= set(ALL)
    assert all(stage.text is not None for stage in read.search.pool if stage.name not in ALL)


# Reports


def write_store(path, own, means, conditions=((1, 1),)):
    """A store with accuracies by contender and width, and latencies; seeds are a tenth of a point apart.

    With a batch and threads a call takes as many times as long as it has images, and half the time with threads.
    """
    store = Store(path)
    for (name, width), (latency, mean) in means.items():
        for place, seed in enumerate(own.reporting):
            job = Job(Point("pooled", name, width), seed, True)
            value = mean + 0.1 * (place - (len(own.reporting) - 1) / 2)
            record = {"kind": "training", "key": own.key(job, "fashion-mnist 00 flip"), **job.point._asdict()}
            record |= {"settings": own.settings(job, "fashion-mnist 00 flip"), "seed": seed, "failure": None}
            record |= {"validation": value, "test": value, "shifted": 50.0, "rotated": 60.0, "parameters": 1000}
            store.add({**record, "cpu_seconds": 10.0, "backend": "native"})
        point = Point("pooled", name, width)
        for batch, threads in conditions:
            record = {"kind": "latency", "key": own.latency_key(point, batch, threads), **point._asdict()}
            record |= {"machine": "M", "time": 1, "batch": batch, "threads": threads, "failures": {}}
            here = batch * latency if threads == 1 else batch * latency / 2 + 5
            store.add({**record, "microseconds": {"kas": here, "onnxruntime": 2 * here}})
    return store


def make_compared():
    candidate = Contender("found", "text", is_candidate=True)
    contenders = (Contender("dense"), Contender("pointwise"), candidate)
    return protocol.Protocol(contenders, widths=(16, 32), reporting=(11, 12, 13, 14))


def test_the_tables_say_what_is_above(tmp_path):
    own = make_compared()
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("pointwise", 32): (10, 75)}
    means |= {("found", 16): (20, 86), ("found", 32): (40, 91)}
    (network,) = protocol.read_results(own, write_store(tmp_path / "s.jsonl", own, means))
    assert network.decide("test")["found"].is_above
    assert network.measures_operators("test")[0]
    tables = protocol.write_tables([network])
    assert "20 trainings in 0.1 CPU hours." in tables
    assert "Latencies were measured in 1 run on M." in tables
    assert "The network measures operators: 'pointwise' less the curve of 'dense'" in tables
    # 85 is the dense curve at 20, half of the way from 10 to 40.
    assert "| found | 16 | 20.0 | kas | 1000 | 86.00 ± 0.06 | 86.00 ± 0.06 | 4 | +1.00 |" in tables
    assert "| found | test | 16: +" in tables
    assert tables.count("**yes**") == 2


def test_differences_contain_the_test_images(tmp_path):
    own = make_compared()
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("found", 16): (20, 86), ("found", 32): (40, 91)}
    store, kept = write_store(tmp_path / "s.jsonl", own, means), Store(tmp_path / "kept.jsonl")
    assert not protocol.read_results(own, store)[0].compare_images()
    right = {"dense": 160, "found": 172}
    for record in store:
        if record["kind"] == "training" and record["width"] == 16:
            # Of 203 images; seeds differ by a few.
            count = right[record["contender"]] + record["seed"] % 3
            record["test_correct"] = pack_bits(numpy.arange(203) < count)
        kept.add(record)
    (network,) = protocol.read_results(own, kept)
    (found,) = network.compare_images()
    assert (found.point, found.baseline) == (Point("pooled", "found", 16), Point("pooled", "dense", 16))
    # Of 203 images 12 are right with one of them only: sqrt(12) of 203, paired.
    assert found.difference.value == pytest.approx(100 * 12 / 203)
    assert found.difference.error == pytest.approx(100 * math.sqrt(12 * (1 - 12 / 203)) / 203, rel=0.1)
    assert found.difference.low < found.difference.value < found.difference.high
    assert "| found | 16 | dense | 16 | +5.91 ± 1." in protocol.write_tables([network])


def test_verdicts_without_baselines_that_a_search_had_found(tmp_path):
    own = make_compared()
    late = Contender("depthwise", is_afterthought=True)
    own = dataclasses.replace(own, contenders=(*own.contenders, late))
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("depthwise", 16): (12, 87), ("depthwise", 32): (40, 92)}
    means |= {("found", 16): (20, 86), ("found", 32): (40, 91)}
    (network,) = protocol.read_results(own, write_store(tmp_path / "s.jsonl", own, means))
    assert not network.decide("test")["found"].is_above
    assert network.decide("test", afterthoughts=False)["found"].is_above
    tables = protocol.write_tables([network])
    all_baselines, others = tables.split("The same without the baselines that a search had found before: depthwise.")
    assert all_baselines.count("**yes**") == 0
    assert others.count("**yes**") == 2
    with pytest.raises(ValueError, match="requires a baseline that is an afterthought, got the candidate 'found'"):
        Contender("found", "text", is_candidate=True, is_afterthought=True)


def test_speeds_at_equal_accuracy(tmp_path):
    own = make_compared()
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("found", 16): (10, 85), ("found", 32): (20, 91)}
    store = write_store(tmp_path / "s.jsonl", own, means, ((1, 1), (16, 2)))
    (network,) = protocol.read_results(own, store)
    assert network.conditions == [(1, 1), (16, 2)]
    # Half of the way from 10 to 40 in the logarithm; where no dense network is as accurate, nothing is known.
    ((point, ratio),) = network.equal_accuracy("found", protocol.Condition())
    assert (point.width, ratio) == (16, pytest.approx(2))
    ((_, ratio),) = network.equal_accuracy("found", protocol.Condition(16, 2))
    assert ratio == pytest.approx((85 * 325) ** 0.5 / 85)
    tables = protocol.write_tables([network])
    assert "| candidate | width | test % | 1 image, 1 thread | 16 images, 2 threads |" in tables
    assert "| found | 16 | 85.00 | 2.00 | 1.96 |" in tables


def test_a_network_in_which_the_control_is_good_measures_nothing(tmp_path):
    own = make_compared()
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("pointwise", 32): (10, 80)}
    (network,) = protocol.read_results(own, write_store(tmp_path / "s.jsonl", own, means))
    assert "The network **does not measure operators**: 'pointwise' must be 5 standard errors" in (
        protocol.write_tables([network])
    )


def test_an_empty_store_gives_empty_tables(tmp_path):
    (network,) = protocol.read_results(make_compared(), Store(tmp_path / "none.jsonl"))
    tables = protocol.write_tables([network])
    assert "0 trainings" in tables
    assert "is not known" in tables
    with pytest.raises(
        ValueError, match="requires a point with an accuracy on the test images and a latency, got none"
    ):
        protocol.write_plot([network])


def test_results_of_other_recipes_do_not_count(tmp_path):
    own = make_compared()
    store = write_store(tmp_path / "s.jsonl", own, {("dense", 16): (10, 80)})
    (network,) = protocol.read_results(own, store)
    assert len(network.results[Point("pooled", "dense", 16)].values("test")) == 4
    other = dataclasses.replace(own, recipe=dataclasses.replace(own.recipe, epochs=7))
    (network,) = protocol.read_results(other, store)
    assert network.results[Point("pooled", "dense", 16)].values("test") == []


def test_the_figure_is_an_svg_with_all_points(tmp_path):
    own = make_compared()
    means = {("dense", 16): (10, 80), ("dense", 32): (40, 90), ("found", 16): (20, 86)}
    networks = protocol.read_results(own, write_store(tmp_path / "s.jsonl", own, means))
    root = xml.etree.ElementTree.fromstring(protocol.write_plot(networks))
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "dense, width 16: 80.00 %, 10.0 µs, 4 seeds",
        "dense, width 32: 90.00 %, 40.0 µs, 4 seeds",
        "found, width 16: 86.00 %, 20.0 µs, 4 seeds",
    ]


def test_times_may_be_measured_before_the_trainings(tmp_path, monkeypatch):
    spec = tmp_path / "own.yaml"
    spec.write_text("contenders: [dense]\nwidths: [16]\nseeds: {reporting: [11]}\n")
    points = []
    monkeypatch.setattr(_command, "measure", lambda own, given, **options: points.extend(given) or [])
    monkeypatch.setattr(_command, "run", lambda *arguments, **options: pytest.fail("trains"))
    assert cli.main(["compare", str(spec), "--no-training", f"--tables={tmp_path / 'tables.md'}"]) == 0
    assert [(point.contender, point.width) for point in points] == [("dense", 16)]


def test_the_command_writes_the_report(tmp_path, capsys):
    spec = tmp_path / "own.yaml"
    spec.write_text("contenders: [dense]\nwidths: [16]\nseeds: {reporting: [11]}\n")
    own = protocol.read_protocol(str(spec))
    write_store(tmp_path / "own.jsonl", own, {("dense", 16): (10, 80)})
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- protocol: written by kas-research compare -->\nold\n<!-- end of protocol -->\nafter\n"
    )
    arguments = ["compare", str(spec), "--report-only", f"--page={page}", f"--plot={tmp_path / 'own.svg'}"]
    assert cli.main(arguments) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| dense | 16 | 10.0 | kas |" in text
    assert "old" not in text
    assert cli.main(["compare", str(spec), "--report-only"]) == 0
    assert "| dense | 16 |" in capsys.readouterr().out
    assert cli.main(["compare", str(spec), "--report-only", "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)
    (point,) = network["points"]
    assert (network["network"], point["contender"], point["width"]) == ("pooled", "dense", 16)
    assert point["microseconds"]["kas"] == 10 and point["accuracies"]["test"] == {"11": 80}
    assert network["verdicts"] == {}
    assert cli.main(["compare", str(spec), "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {(job["network"], job["contender"], job["width"], job["seed"]) for job in listed} <= {
        ("pooled", "dense", 16, 11)
    }
    assert cli.main([*arguments, "--chosen=dense"]) == 1
    assert "--chosen requires a candidate of the protocol, got 'dense'" in capsys.readouterr().err
    assert cli.main(["compare", str(spec), "--batch=0"]) == 1
    assert "--batch requires a number of at least 1, got 0" in capsys.readouterr().err
    page.write_text("no marks")
    assert cli.main(arguments) == 1
    assert "requires '<!-- protocol: written by kas-research compare -->'" in capsys.readouterr().err


# Latency


def test_networks_are_timed_in_turn():
    pytest.importorskip("torch_mlir")
    own = make("depthwise-separable", "syno-operator-2")
    points = list(own.points())
    records = protocol.measure(own, points, names=("kas",), rounds=2, calls=4)
    assert [record["contender"] for record in records] == ["dense", "depthwise-separable", "syno-operator-2"]
    for record in records:
        assert record["failures"] == {}
        assert 1 < record["microseconds"]["kas"] < 1e5
        json.dumps(record)


def test_slabs_are_compiled():
    pytest.importorskip("torch_mlir")
    own = make("nas-pte-1")
    points = [point for point in own.points() if point.contender == "nas-pte-1"]
    (record,) = protocol.measure(own, points, names=("kas",), rounds=1, calls=2)
    assert record["failures"] == {} and "kas" in record["microseconds"]


def test_what_peers_print_is_no_answer(tmp_path):
    (tmp_path / "onnxruntime.py").write_text(
        "import os\n__version__ = '1.0'\nprint('from Python', flush=True)\nos.write(1, b'from native code\\n' * 9999)\n"
    )
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    peers = _latency.Peers(str(interpreter), 1)
    assert peers.versions["onnxruntime"] == "1.0"
    with pytest.raises(RuntimeError, match="Error"):
        peers.ask(load="nothing", name="onnxruntime")
    peers.close()
