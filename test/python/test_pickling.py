# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies, pickles, and what lies in other processes."""

import copy
import pickle

import numpy
import pytest
import torch
from operators import make_arrays
from torch import nn

import kas
import kas.distributed
import kas.evaluate
import kas.torch
from kas.evaluate._workers import Job, Pool

SPACE = """
kas.space @layer<N, Cin, Cout, H, W | k, g>
    [N, Cout unordered, H, W] from [N, Cin unordered, H, W]
    bindings [<N = 1, Cin = 8, Cout = 8, H = 6, W = 6, g = 4, k = 3>]
    limits {depth = 6, reduce = 3, split = 2, merge = 2, unfold = 2}
"""

BINDING = {"N": 2, "Cin": 3, "Cout": 4, "H": 6, "W": 5, "k": 3}
COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda thing: pickle.loads(pickle.dumps(thing))}


def make_trainer():
    """A trainer that needs milliseconds."""
    generator = torch.Generator().manual_seed(0)
    splits = [(torch.randn(count, 1, 4, 4, generator=generator), torch.arange(count) % 2) for count in (20, 20, 20)]
    network = nn.Sequential(
        nn.Conv2d(1, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.Flatten(), nn.Linear(64, 2)
    )
    recipe = kas.evaluate.Recipe(epochs=1, batch_size=10, warmup_steps=1)
    return kas.evaluate.Trainer(network, kas.evaluate.Data("noise", *splits, num_classes=2), recipe)


@pytest.fixture(params=COPIES)
def duplicate(request):
    return COPIES[request.param]


def test_modules_and_operators(duplicate):
    operator = kas.operator("conv2d")
    other = duplicate(operator)
    assert str(other) == str(operator) and other.shapes(BINDING) == operator.shapes(BINDING)
    module = kas.parse(kas.named_operators()["conv2d"].text).run("kas-canonicalize")
    assert str(duplicate(module)) == str(module)
    # What the passes said is there, too.
    assert duplicate(module).remarks == module.remarks


def test_deep_copies_share_nothing():
    module = kas.parse("func.func private @unused()\n" + kas.named_operators()["conv2d"].text)
    operator = module["conv2d"]
    copied = copy.deepcopy(operator)
    copied.module.run("symbol-dce")
    assert "unused" in str(module) and "unused" not in str(copied.module)


def test_kernels_and_spaces(duplicate):
    kernel = kas.kernel("squeeze_excite")
    assert str(duplicate(kernel)) == str(kernel) and duplicate(kernel).shapes("C=4,H=3,W=3,x=2") == kernel.shapes(
        "C=4,H=3,W=3,x=2"
    )
    sites = make_trainer().sites
    other = duplicate(sites)
    assert other.sites == sites.sites and other.misses == sites.misses and str(other.module) == str(sites.module)
    assert {n: s.bindings for n, s in other.spaces.items()} == {n: s.bindings for n, s in sites.spaces.items()}


def test_functions(duplicate):
    operator = kas.operator("conv2d")
    arrays = make_arrays(operator, BINDING)
    gradient = numpy.ones(operator.shapes(BINDING).output, numpy.float32)
    compiled = operator.compile(BINDING, threads=1, check="exact")
    other = duplicate(compiled)
    assert numpy.array_equal(other(*arrays), compiled(*arrays))
    assert other.check == compiled.check and other.arguments == compiled.arguments
    for lowering in ("loops", "structured"):
        backward = operator.compile_gradient(1, BINDING, lowering=lowering, threads=1)
        assert numpy.array_equal(duplicate(backward)(*arrays, gradient), backward(*arrays, gradient))
    kernel = kas.kernel("squeeze_excite")
    compiled = kernel.compile("C=4,H=3,W=3,x=2", batch=2, threads=1)
    arrays = [numpy.ones(shape, numpy.float32) for _, shape in compiled.arguments]
    assert numpy.array_equal(duplicate(compiled)(*arrays), compiled(*arrays))
    function = kas.parse(
        """
        func.func @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
          %e = tensor.empty() : tensor<3xf32>
          %y = linalg.add ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
          return %y : tensor<3xf32>
        }
        """
    )
    compiled = function.compile("twice")
    assert duplicate(compiled)(numpy.ones(3, numpy.float32)).tolist() == [2, 2, 2]


def test_trainers(duplicate):
    trainer = make_trainer()
    other = duplicate(trainer)
    assert other.describe() == trainer.describe() and other.replaced == trainer.replaced
    operator = str(kas.operator("conv2d_depthwise_separable"))
    (one, curve), (two, other_curve) = (t.train_once(operator, seed=1) for t in (trainer, other))
    one.pop("train_seconds"), two.pop("train_seconds")
    assert one == two and curve == other_curve


def check_pool(pool, expected):
    """Trains a candidate and the network itself on the pool, and compares with what this process gets."""
    operator = str(kas.operator("conv2d_depthwise_separable"))
    jobs, done = [Job(0, operator, seed=1), Job(-1, None, seed=2)], []
    waiting = list(jobs)
    while waiting or pool.busy:
        while waiting and pool.idle:
            pool.submit(waiting.pop(0))
        done += pool.wait(1)
    assert [one.failure for one in done] == [None, None]
    accuracies = {one.job.candidate: one.metrics["accuracy"] for one in done}
    assert accuracies == {job.candidate: expected.train_once(job.text, job.seed)[0]["accuracy"] for job in jobs}


def test_spawned_workers_train():
    """As with `device="cuda"`, where processes do not fork."""
    trainer = make_trainer()
    with Pool(trainer, 1, start_method="spawn") as pool:
        check_pool(pool, trainer)


def test_trainers_in_a_pool_of_processes():
    trainer = make_trainer()
    workers = kas.distributed.LocalPool(kas.distributed.TrainJob(trainer), 1, prefetch=0)
    with kas.distributed.TrainingPool(workers) as pool:
        check_pool(pool, trainer)


def test_errors(duplicate):
    with pytest.raises(kas.Error) as caught:
        kas.parse("kas.operator")
    other = duplicate(caught.value)
    assert other.diagnostics == caught.value.diagnostics and str(other) == str(caught.value)


def test_what_cannot_be_pickled_says_so():
    with (
        kas.Searcher(SPACE, "random", seed=1, objective="loss") as searcher,
        pytest.raises(TypeError, match="Searcher cannot be pickled"),
    ):
        pickle.dumps(searcher)
