# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kas_research.structured, and the complete list of linear layers with structured weights."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
from fractions import Fraction

import numpy
import pytest

import kas
from kas_research.structured import Index, Structure

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPACES = ROOT / "tools" / "kas-bench" / "spaces"
sys.path.insert(0, str(ROOT / "research" / "structured-linear"))

import structured_linear  # noqa: E402

# Cin = Cout = d; the values of the papers.
TEXTBOOK = {
    ("linear",): (0, 1, 1),
    ("linear_low_rank", ("r", "1/2")): (0, "1/2", "1/2"),
    ("linear_low_rank", ("r", "1/4")): (0, "1/4", "1/4"),
    ("linear_block_diagonal", ("g", "1/2")): (0, 1, "1/2"),
    ("linear_kronecker", ("g", "1/2"), ("p", "1/2")): ("1/2", 1, "1/2"),
    ("linear_monarch", ("g", "1/2"), ("p", "1/2")): (0, 1, "1/2"),
    # A third of the features in between is not enough for full rank.
    ("linear_monarch", ("g", "1/3"), ("p", "1/3")): (0, "2/3", "1/3"),
    ("linear_monarch_transposed", ("g", "1/2"), ("p", "1/2")): (0, 1, "1/2"),
    ("linear_block_tensor_train", ("g", "1/2"), ("p", "1/2"), ("r", "0")): (0, 1, "1/2"),
    ("linear_block_tensor_train", ("g", "1/2"), ("p", "1/2"), ("r", "1/4")): (0, 1, "3/4"),
    ("linear_shuffled_groups", ("g", "1/2")): (0, 1, "1/2"),
    ("linear_blast", ("b", "1/2"), ("r", "1/2")): (0, 1, "1/2"),
    ("linear_blast", ("b", "0"), ("r", "1/2")): (0, "1/2", "1/2"),
    ("linear_butterfly3", ("r", "1/3")): (0, 1, "1/3"),
}

BINDINGS = {
    "linear": "Cin=5,Cout=7",
    "linear_low_rank": "Cin=6,Cout=7,r=2",
    "linear_block_diagonal": "Cin=6,Cout=9,g=3",
    "linear_kronecker": "Cin=6,Cout=8,g=3,p=2",
    "linear_monarch": "Cin=12,Cout=9,g=4,p=3",
    "linear_monarch_transposed": "Cin=8,Cout=12,g=3,p=2",
    "linear_block_tensor_train": "Cin=12,Cout=18,g=2,p=3,r=2",
    "linear_shuffled_groups": "Cin=8,Cout=12,g=2",
    "linear_blast": "Cin=8,Cout=6,b=2,r=3",
    "linear_butterfly3": "C=12,r=2",
}


def get_binding(name):
    return {symbol: int(value) for symbol, value in (part.split("=") for part in BINDINGS[name].split(","))}


def get_space(file, weights, limits=""):
    text = (SPACES / file).read_text()
    return kas.SearchSpace.parse(re.sub(r"weights = \d,", f"weights = {weights}, {limits}", text))


@pytest.mark.parametrize(("operator", "expected"), TEXTBOOK.items(), ids=[" ".join(map(str, key)) for key in TEXTBOOK])
def test_exponents(operator, expected):
    name, *powers = operator
    found = Structure.of(kas.operator(name)).exponents({"Cin": 1, "Cout": 1, "C": 1, **dict(powers)})
    assert (found.sharing, found.rank, found.compute) == tuple(map(Fraction, expected))


@pytest.mark.parametrize("name", BINDINGS)
def test_costs(name):
    structure, binding = Structure.of(kas.operator(name)), get_binding(name)
    cost = kas.operator(name).cost({"N": 1000, **binding})
    assert (structure.flops(binding) * 1000, structure.parameters(binding)) == (cost.flops, cost.parameters)
    assert structure.batch == ("N",)


@pytest.mark.parametrize("name", BINDINGS)
def test_rank_and_what_reaches_what(name):
    """The matrix that the reference evaluates has the same rank, and the same elements that are always zero."""
    operator, structure, binding = kas.operator(name), Structure.of(kas.operator(name)), get_binding(name)
    inputs = binding.get("C") or binding["Cin"]
    full = {"N": inputs, **binding}
    draw = numpy.random.default_rng(0)
    # Integers so small that f32 is exact.
    weights = [draw.integers(1, 10, shape).astype("float32") for shape in operator.shapes(full).weights]
    matrix = operator.evaluate(full, numpy.eye(inputs, dtype="float32"), *weights)
    assert structure.rank(binding) == numpy.linalg.matrix_rank(matrix.astype("float64"))
    assert structure.reaches == bool((matrix != 0).all())


def test_errors():
    with pytest.raises(ValueError, match=r"requires sums, shares, merges and splits only, got kas\.unfold"):
        Structure.of(kas.operator("linear_toeplitz"))
    with pytest.raises(ValueError, match=r"got kas\.reduce max"):
        Structure.of(kas.operator("max_pool2d"))
    low = Structure.of(kas.operator("linear_low_rank"))
    with pytest.raises(ValueError, match="requires a binding at which Cout/g is an integer, got 7/2"):
        Structure.of(kas.operator("linear_block_diagonal")).parameters({"Cin": 4, "Cout": 7, "g": 2})
    with pytest.raises(KeyError, match="r"):
        low.exponents({"Cin": 1, "Cout": 1})
    shuffle = Structure.of(kas.operator("channel_shuffle"))
    assert shuffle.num_weights == 0 and not shuffle.reaches
    with pytest.raises(ValueError, match="requires an operator with weights, got none"):
        shuffle.exponents({"C": 1, "g": 0})


def test_forms():
    monarch = Structure.of(kas.operator("linear_monarch"))
    assert str(monarch) == "Y[k,l] = X[i,j] W1[i,j,k] W2[j,k,l], i=Cin/g, j=g, k=p, l=Cout/p"
    assert monarch.pattern == "12Y 1Y X12 X2"
    swapped = kas.parse(
        re.sub(r"weight\((.*?)\) weight\((.*?)\)", r"weight(\2) weight(\1)", str(kas.operator("linear_monarch")))
    )
    (operator,) = swapped
    assert Structure.of(operator) != monarch and Structure.of(operator).key == monarch.key


#
# The list
#


def test_slice():
    """The operators of up to two weights are those of the file, with all that does not depend on the machine."""
    rows = [row for row in structured_linear.read_rows() if row["weights"] != "3"]
    made = structured_linear.make_rows(weights=2)
    for row in (*rows, *made):
        assert float(row.pop("predicted_ms_1")) > 0
        assert float(row.pop("predicted_ms_512")) > 0
    assert made == rows


def test_counts():
    rows = structured_linear.read_rows()
    assert [sum(row["weights"] == weights for row in rows) for weights in "123"] == [6, 272, 5845]
    assert len({row["key"] for row in rows}) == len(rows)
    assert all(get_space("structured-linear.mlir", weights).count() == count for weights, count in ((1, 6), (2, 278)))
    # The rank is what the exponent says, for all of them.
    assert all(int(row["rank_at_27"]) == round(27 ** float(Fraction(row["rank"]))) for row in rows)


@pytest.mark.slow
def test_the_whole_list():
    rows = structured_linear.read_rows()
    keys = sorted(candidate.key for candidate in get_space("structured-linear.mlir", 3).list())
    assert keys == sorted(row["key"] for row in rows)
    assert len(keys) == 6123
    # More of anything but weights, levels and ranks leaves it as it is.
    text = (SPACES / "structured-linear.mlir").read_text()
    for limit in ("depth", "reduce", "split", "merge", "occurrences.Cin", "occurrences.Cout", "occurrences.b"):
        more = re.sub(rf"\b{re.escape(limit)} = \d+", f"{limit} = 20", text)
        assert more != text and kas.SearchSpace.parse(more).count() == 6123


def test_page():
    script = ROOT / "research" / "structured-linear" / "structured_linear.py"
    done = subprocess.run([sys.executable, script, "check"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_reaches_as_the_search_does():
    everything = {c.key: Structure.of(c.operator).reaches for c in get_space("structured-linear.mlir", 2).list()}
    reaching = {c.key for c in get_space("structured-linear.mlir", 2, "reaches = 1,").list()}
    assert reaching == {key for key, reaches in everything.items() if reaches}
    assert len(reaching) == 163


def test_tokens():
    """Of the operators on tokens, as many treat each token by itself as there are without tokens."""
    tokens = [Structure.of(c.operator) for c in get_space("structured-linear-tokens.mlir", 2).list()]
    alone = [structure.key for structure in tokens if structure.batch == ("N", "L")]
    assert len(tokens) == 1400
    assert sorted(alone) == sorted(Structure.of(c.operator).key for c in get_space("structured-linear.mlir", 2).list())


def test_families():
    """Each family is one of the list, but for shuffled groups, whose rank is not R."""
    space = get_space("structured-linear.mlir", 3)
    rows = {row["key"]: row for row in structured_linear.read_rows()}
    missing = []
    for title, (_, _, operator, structure, _) in structured_linear.get_families().items():
        found = space.find(operator)
        if found.key not in rows:
            missing.append(title)
        else:
            assert title in rows[found.key]["family"].split("/")
            assert rows[found.key]["pattern"] == structure.pattern
    assert missing == ["shuffled groups"]
    # With that rank it is there.
    groups = kas.SearchSpace.parse(
        re.sub(r"(rank_m\w+) = 24", r"\1 = 12", space.text).replace("weights = 3", "weights = 2")
    )
    shuffled = structured_linear.get_families()["shuffled groups"][2]
    assert groups.find(shuffled).key in {candidate.key for candidate in groups.list()}


def test_banded_toeplitz_matrices_are_in_the_ordered_space():
    text = (ROOT / "test" / "Sameness" / "linear-banded.mlir").read_text()
    space = kas.SearchSpace.parse(text)
    assert space.find(kas.operator("linear_toeplitz")).key in {candidate.key for candidate in space.list()}


#
# The same list from all ways to write sums of products
#

SIZES = {"Cin": 768, "Cout": 3072, "R": 24, "b": 16}


def get_value(size):
    return eval(size.replace("/", "//"), {"__builtins__": {}}, SIZES)


def enumerate_products(num_weights):
    """Keys of all sums of products within the limits of the space.

    Every set of tensors has one index or none. The sizes of a side are those of two levels of b, once taken apart; an
    index of data and output is b or b**2; R is the only rank, and there is one at most.
    """
    weights = range(num_weights)
    subsets = [frozenset(s) for size in range(num_weights + 1) for s in itertools.combinations(weights, size)]
    some = [subset for subset in subsets if subset]
    factors = {
        side: [(side,), (f"{side}/b", "b"), (f"{side}/b**2", "b**2"), (f"{side}/b**2", "b", "b")]
        for side in ("Cin", "Cout")
    }

    def assign(side, kept):
        """All ways to give the factors of a side to indices, beside those that data and output share."""
        ways = set()
        for sizes in factors[side]:
            left = list(sizes)
            for size in kept:
                if size not in left:
                    break
                left.remove(size)
            else:
                for owners in itertools.permutations(some, len(left)):
                    ways.add(frozenset(((side == "Cin", side == "Cout", o), s) for o, s in zip(owners, left)))
        return ways

    keys = set()
    ranks = [None, *(subset for subset in some if len(subset) > 1)]
    for count in range(3):
        for owners in itertools.combinations(subsets, count):
            for kept in itertools.product(("b", "b**2"), repeat=count):
                shared = {(True, True, owner): size for owner, size in zip(owners, kept)}
                for inputs, outputs, rank in itertools.product(assign("Cin", kept), assign("Cout", kept), ranks):
                    indices = {**shared, **dict(inputs), **dict(outputs)}
                    if rank:
                        indices[False, False, rank] = "R"
                    if is_allowed(indices, num_weights):
                        keys.add(
                            Structure(
                                tuple(Index(size, *kind) for kind, size in indices.items()),
                                num_weights,
                            ).key
                        )
    return keys


def is_allowed(indices, num_weights):
    """W4, W18, W14, W15 and W2 of docs/internals/canonical-form.md, for sums of products."""
    weights = range(num_weights)
    if any(all(weight not in kind[2] for kind in indices) for weight in weights):
        return False
    for rank in (None, *(kind for kind in indices if not kind[0] and not kind[1])):
        joined = [frozenset([weight]) for weight in weights] if rank is None else [rank[2]]
        for group, other in itertools.product(joined, weights):
            if other not in group and all(other in kind[2] for kind in indices if kind != rank and kind[2] & group):
                return False
    for rank in (kind for kind in indices if not kind[0] and not kind[1]):
        own = [{kind for kind in indices if weight in kind[2] and kind != rank} for weight in rank[2]]
        points = get_value(indices[rank])

        def multiply(kinds):
            return numpy.prod([get_value(indices[kind]) for kind in kinds], dtype=float)

        everything = set().union(*own)
        for free in own:
            beside = set().union(*(kinds for kinds in own if kinds is not free)) - free
            if points >= multiply(beside):
                return False
        if sum(points * multiply(kinds) for kinds in own) >= multiply(everything):
            return False
    return any(takes_and_shares(indices, order) for order in itertools.permutations(weights))


def takes_and_shares(indices, order):
    """W2: added in this order, each weight takes an index that neither the data nor a later one has, and shares one."""
    for place, weight in enumerate(order):
        later = set(order[place + 1 :])
        own = [kind for kind in indices if weight in kind[2]]
        kept = [kind[0] or bool(kind[2] & later) for kind in own]
        if all(kept) or not any(kept):
            return False
    return True


@pytest.mark.parametrize("weights", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_all_contractions(weights):
    listed = [Structure.of(c.operator).key for c in get_space("structured-linear.mlir", weights).list()]
    assert len(set(listed)) == len(listed)
    products = set().union(*(enumerate_products(count) for count in range(1, weights + 1)))
    assert set(listed) == products


def make_layer(operator: kas.Operator, binding: dict[str, int]) -> kas.Module:
    shapes = operator.shapes(binding)
    types = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (shapes.data, *shapes.weights, shapes.output)]
    names = [f"%a{number}" for number in range(len(types) - 1)]
    given = ", ".join(f"{name} = {value}" for name, value in binding.items())
    return kas.Module(
        f"{operator.alone()}\n"
        f"func.func @forward({', '.join(map(': '.join, zip(names, types)))}) -> {types[-1]} {{\n"
        f"  %r = kas.apply @{operator.name}<{given}>({', '.join(names)}) : ({', '.join(types[:-1])}) -> {types[-1]}\n"
        f"  return %r : {types[-1]}\n}}\n"
    )


@pytest.mark.parametrize("tokens", [16, 37, 96])
@pytest.mark.parametrize("prepare", [False, True])
def test_compiled_values(tokens: int, prepare: bool) -> None:
    """Layers of the list compute what the evaluator does, wherever the samples of their intermediates are."""
    seed = 100 * tokens + prepare
    generator = numpy.random.default_rng(seed)
    space = kas.SearchSpace.parse((SPACES / "structured-linear.mlir").read_text())
    candidates = space.list()
    moved = 0
    for number in generator.choice(len(candidates), 12, replace=False):
        operator = candidates[number].operator
        binding = {"N": tokens, "Cin": 24, "Cout": 48, "R": 5, "b": 2}
        own = {name: binding[name] for name in (*operator.symbols[0], *operator.symbols[1])}
        shapes = operator.shapes(own)
        arrays = [generator.integers(-2, 3, shape).astype(numpy.float32) for shape in (shapes.data, *shapes.weights)]
        expected = operator.evaluate(own, *arrays)
        module = make_layer(operator, own)
        compiled = module.compile("forward", threads=1 + int(number) % 2, prepack_weights=prepare)
        found = numpy.zeros(shapes.output, numpy.float32)
        call = compiled.bind(*arrays, out=found)
        call.prepack()
        call()
        numpy.testing.assert_array_equal(found, expected, f"seed {seed}: {operator}")
        stages = make_layer(operator, own).run(
            "kas-attach-cpu-target{cpu=x86-64-v4},kas-specialize,kas-rfactor,kas-batch-innermost{threads=1}"
        )
        moved += "batch_innermost" in str(stages)
    assert moved > 0


def test_einsums_that_are_timed() -> None:
    """PyTorch's code beside which layers are timed: one einsum and one for each step compute the same."""
    torch = pytest.importorskip("torch")
    times = pytest.importorskip("times")
    space = kas.SearchSpace.parse((SPACES / "structured-linear.mlir").read_text())
    candidates = space.list()
    binding = {"Cin": 24, "Cout": 48, "R": 5, "b": 2}
    torch.manual_seed(1)
    for number in numpy.random.default_rng(1).choice(len(candidates), 20, replace=False):
        structure = Structure.of(candidates[number].operator)
        at_once, step_by_step, example = times.make_einsums(structure, binding, 3)
        inputs = [index for index in structure.indices if index.in_data]
        assert example.shape == (3, *(times.evaluate_size(index.size, binding) for index in inputs))
        torch.testing.assert_close(step_by_step(example), at_once(example), rtol=1e-4, atol=1e-3, msg=str(structure))


def test_bindings_that_are_timed() -> None:
    """A quarter of the bytes, and not much less, each element of the weights once for a token."""
    pytest.importorskip("torch")
    times = pytest.importorskip("times")
    candidates = list(itertools.islice(times.list_candidates(seed=1), 60))
    for (inputs, outputs), part in itertools.product(times.LAYERS, times.PARTS):
        layer = (inputs, outputs)
        drawn = list(times.draw(layer, part, candidates))
        fastest = list(times.choose_fastest(layer, part, candidates, 512))
        assert len(drawn) > 3 and len(fastest) > 3
        for _, structure, binding in drawn + fastest:
            assert 0.8 <= structure.parameters(binding) / (part * inputs * outputs) <= 1
            assert 1.9 <= structure.flops(binding) / structure.parameters(binding) <= 2.1
        assert len({structure.pattern for _, structure, _ in fastest}) == len(fastest)
        assert all(times.saves(structure, binding) for _, structure, binding in fastest)
    assert times.evaluate_size("Cin/b**2", {"Cin": 96, "b": 4}) == 6
    low_rank = Structure.of(kas.operator("linear_low_rank"))
    # 200 elements of the whole matrix, 30 for each r of both weights.
    assert times.saves(low_rank, {"Cin": 10, "Cout": 20, "r": 6})
    assert not times.saves(low_rank, {"Cin": 10, "Cout": 20, "r": 7})
    assert times.count_left_to_right(low_rank, {"Cin": 10, "Cout": 20, "r": 3}) == 60


def test_language_models_that_are_timed() -> None:
    """GPT-2's projections at a small size: all replaced, at most a quarter of their weights, outputs as PyTorch's."""
    pytest.importorskip("torch_mlir")
    torch = pytest.importorskip("torch")
    gpt2 = pytest.importorskip("gpt2")
    torch.manual_seed(0)
    network = gpt2.LanguageModel(True, layers=1, width=192, words=20, length=5).eval()
    words = torch.randint(0, 20, (1, 5))
    dense = sum(layer.weight.numel() for layer in network.modules() if isinstance(layer, torch.nn.Linear))
    key, operator = gpt2.find_operator("12f20b39")
    assert key == "12f20b39b2013a9c"
    replaced, parameters = gpt2.replace(network, operator, Fraction(1, 4), words)
    assert not any(isinstance(layer, torch.nn.Linear) for layer in replaced.modules())
    assert 0.2 * dense <= parameters <= 0.25 * dense
    compiled = gpt2.Compiled(replaced, words, threads=1)
    assert compiled.error < 1e-4
    assert compiled.time(1) > 0
    with pytest.raises(SystemExit, match="requires the beginning of one key of the list, got 'zz' of 0"):
        gpt2.find_operator("zz")


def test_operators_that_fit_no_network_of_a_width() -> None:
    """Sizes of blocks leave few products of 128 channels: the rates are those of the widths at which there are some."""
    pytest.importorskip("torch")
    language = pytest.importorskip("language")
    assert [language.fits("2e06d08d", width) for width in (128, 192, 256)] == [False, True, True]
    tuned = language.list_tuned("characters")
    assert [width for width, operator in tuned if operator == "2e06d08d"] == [192, 256]
    assert [width for width, operator in tuned if operator == "2b14cf1b"] == [128]
    assert "2e06d08d" not in [operator for _, operator in language.list_points("copy")]
    assert len(list(language.list_points("characters"))) == 19


def test_language_models_that_are_trained(tmp_path, monkeypatch, capsys) -> None:
    """Trainings, times and the verdict of the smallest networks; what the store has is not done again."""
    pytest.importorskip("torch_mlir")
    pytest.importorskip("torch")
    language = pytest.importorskip("language")
    sequences = pytest.importorskip("sequences")
    for name, value in (("WIDTHS", (64,)), ("REPLACED", (64,)), ("NAMED", {"low rank": "12f20b39"})):
        monkeypatch.setattr(language, name, value)
    for name, value in (("FOUND", ("2b14cf1b",)), ("NARROW_WIDTHS", (64,)), ("NARROW_REPLACED", (64,))):
        monkeypatch.setattr(language, name, value)
    for name, value in (("VALIDATION", 2), ("TEST", 3), ("LENGTH", 16)):
        monkeypatch.setattr(sequences, name, value)
    monkeypatch.setattr(language, "LENGTH", 16)
    monkeypatch.setattr(language, "TUNED", 64)
    text, store = tmp_path / "text.gz", tmp_path / "store.jsonl"
    text.write_bytes(gzip.compress(b"the cat sat on the mat, \xe9 " * 40))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["language.py", *arguments])
        language.main()
        return capsys.readouterr().out

    with pytest.raises(SystemExit, match="requires the rate of 'dense' for width 64 by the command tune, got none"):
        run("train", str(store), f"--text={text}", "--steps=2")
    tuned = [json.loads(line) for line in run("tune", str(store), f"--text={text}", "--steps=2").splitlines()]
    for operator in ("dense", "12f20b39", "2b14cf1b"):
        bits = {record["rate"]: record["tuned_bits"] for record in tuned if record["operator"] == operator}
        best = min(bits, key=lambda rate: bits[rate])
        assert len(bits) >= 3 and {best / 2, best * 2} < bits.keys()
    assert run("tune", str(store), f"--text={text}", "--steps=2") == ""
    failed = [{"width": 64, "operator": "dense", "rate": rate, "tuned_bits": None} for rate in (0.4, 0.8, 1.6)]
    with pytest.raises(SystemExit, match="requires the rate of 'dense' for width 64 by the command tune, got none"):
        language.choose_rate(failed, 64, "dense")
    found = [*failed[:2], {**failed[2], "tuned_bits": 3.0}]
    assert language.propose_rate(language.get_rates(found, 64, "dense")) == 3.2
    assert language.choose_rate([*found, {**failed[2], "rate": 3.2}], 64, "dense") == 1.6
    assert len(run("train", str(store), f"--text={text}", "--seeds=2", "--steps=2").splitlines()) == 6
    assert run("train", str(store), f"--text={text}", "--seeds=2", "--steps=2") == ""
    assert (
        len(
            run("time", str(store), f"--text={text}", "--steps=2", "--rounds=1", "--calls=1", "--tokens=1").splitlines()
        )
        == 3
    )
    records = [json.loads(line) for line in store.read_text().splitlines()]
    assert {record["operator"] for record in records} == {"dense", "12f20b39", "2b14cf1b"}
    # Nothing is learned in two steps: about as many bits as there are kinds of characters.
    assert all(2 < record["bits"] < 8 for record in records if "bits" in record)
    # Another task of the same store: six times two kinds of bits.
    run("tune", str(store), "--task=facts", "--steps=2")
    assert len(run("train", str(store), "--task=facts", "--seeds=2", "--steps=2").splitlines()) == 6
    table = run("predict", str(store)).splitlines()
    assert table[0] == "| task | characters | facts |"
    assert re.match(r"\| facts \| -?1\.00 \| 1\.00 \|", table[3])
    page = run("report", str(store), "--tokens=1", f"--plot={tmp_path / 'picture.svg'}")
    assert "| dense | 64 | " in page and "| low rank | 64 | " in page
    assert "test: `2b14cf1b` 12 13Y 3Y X1 X23 X2 not above" in page and "test: low rank not above" in page
    # Time and parameters, three points each.
    assert (tmp_path / "picture.svg").read_text().count("<title>") == 6
    with pytest.raises(SystemExit, match=r"requires a file that can be written, got .*no/p\.svg: No such file"):
        run("report", str(store), "--tokens=1", f"--plot={tmp_path / 'no' / 'p.svg'}")
    with pytest.raises(SystemExit, match=r"requires a text of at least \d+ characters for 900 steps, got 1040"):
        run("train", str(store), f"--text={text}", "--steps=900")
    (tmp_path / "plain.txt").write_text("no gzip")
    with pytest.raises(SystemExit, match=r"requires a text that gzip has compressed, got .*plain\.txt: Not a gzipped"):
        run("train", str(store), f"--text={tmp_path / 'plain.txt'}")
    with pytest.raises(
        SystemExit, match="requires trainings and times of 7 tokens, got none of both of 'characters' in"
    ):
        run("report", str(store), "--tokens=7")
    with pytest.raises(SystemExit, match="requires trainings of two tasks, got none in"):
        run("predict", str(tmp_path / "none.jsonl"))
    (tmp_path / "cut.jsonl").write_text('{"task": "facts"}\n{"task": "characters", "wi')
    with pytest.raises(SystemExit, match=r"requires lines of JSON, got line 2 of .*cut\.jsonl: "):
        run("report", str(tmp_path / "cut.jsonl"))
    with pytest.raises(SystemExit, match=r"requires missing\.gz, of Debian's package dict-gcide"):
        run("train", str(store), "--text=missing.gz")


def test_tasks_made_by_a_procedure() -> None:
    """What is scored follows from what comes before it, and nothing else is scored."""
    torch = pytest.importorskip("torch")
    sequences = pytest.importorskip("sequences")
    tasks = {name: sequences.FACTORIES[name](None, 2) for name in ("copy", "recall", "facts")}
    facts = {}
    for name, task in tasks.items():
        for part, count in ((task.data.train, 32), (task.data.validation, 256), (task.data.test, 1024)):
            inputs, targets = part
            assert inputs.shape == targets.shape == (count, 128)
            assert int(inputs.min()) >= 0 and int(inputs.max()) < task.kinds
            scored = targets != sequences.UNSCORED
            assert torch.equal(targets[:, :-1][scored[:, :-1]], inputs[:, 1:][scored[:, :-1]])
            for row, answers in zip(inputs[:16].tolist(), targets[:16].tolist()):
                if name == "copy":
                    letters = [letter for letter in row[:112] if letter < 16]
                    assert answers == [sequences.UNSCORED] * 112 + letters
                    assert row[112] == 17
                elif name == "recall":
                    known = {}
                    for key, value in zip(row[0::2], answers[0::2]):
                        assert value == known.get(key, sequences.UNSCORED)
                        known[key] = row[row.index(key) + 1]
                    assert set(answers[1::2]) == {sequences.UNSCORED}
                    assert len(known) <= 8
                else:
                    for place, answer in enumerate(answers):
                        assert (answer != sequences.UNSCORED) == (place % 3 == 1)
                        if answer != sequences.UNSCORED:
                            assert facts.setdefault((row[place - 1], row[place]), answer) == answer
    assert len(facts) > 1000


def test_byte_pairs(tmp_path, monkeypatch) -> None:
    """Pieces of the training part alone, and as many tokens for each character as they say."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sentencepiece")
    sequences = pytest.importorskip("sequences")
    monkeypatch.setattr(sequences, "VALIDATION", 32)
    monkeypatch.setattr(sequences, "TEST", 64)
    letters = torch.randint(0, 26, (400_000,), generator=torch.Generator().manual_seed(1))
    words = ["".join(chr(97 + one) for one in letters[4 * i : 4 * i + 3 + i % 2]) for i in range(90_000)]
    text = tmp_path / "text.gz"
    text.write_bytes(
        gzip.compress("\n".join(" ".join(words[i : i + 10]) + " \xe9" for i in range(0, 90_000, 10)).encode())
    )
    made = sequences.make_pairs(text, 10)
    assert 200 < made.kinds <= sequences.PIECES
    assert all(0.2 < made.tokens[part] < 0.9 for part in ("validation", "test"))
    again = sequences.make_pairs(text, 10)
    assert torch.equal(made.data.test[0], again.data.test[0])
    for part, count in ((made.data.train, 160), (made.data.validation, 32), (made.data.test, 64)):
        assert part[0].shape == (count, 128)
        assert torch.equal(part[0].flatten()[1:], part[1].flatten()[:-1])
    with pytest.raises(SystemExit, match="requires a text of at least 81930 characters for 10 steps, got 4000"):
        text.write_bytes(gzip.compress(b"abc " * 1000))
        sequences.make_pairs(text, 10)
