# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules: parsing, printing, verifying, passes, the library, errors."""

import dataclasses
import subprocess
import sys

import pytest

import kas
from kas._pipelines import CPUPipeline

HALVES = """
kas.operator @halves<N, C | s>(%n: N, %c: C) from [N, C] {
  %q, %r = kas.merge %c by s : C
  %t = kas.split %q, %r : C/s, s
  kas.yield data(%n, %t)
}
"""


def test_prints_what_it_parsed():
    module = kas.parse(HALVES)
    assert "kas.merge" in str(module)
    assert str(kas.parse(str(module))) == str(module)
    assert '"kas.merge"' in module.to_generic()
    module.verify()


def test_lists_symbols():
    module = kas.parse(HALVES + "func.func private @f(tensor<2xf32>)\n")
    assert module.symbols == {"halves": "kas.operator", "f": "func.func"}
    assert module.operators == ["halves"]
    assert [op.name for op in module] == ["halves"]


def test_runs_passes():
    module = kas.parse(HALVES)
    copy = module.clone()
    assert module.run("kas-canonicalize") is module
    assert "kas.merge" not in str(module)
    assert "kas.merge" in str(copy)
    unverified = copy.clone().run("kas-canonicalize", verify_each=False)
    copy.run("builtin.module(kas-canonicalize)")
    assert str(copy) == str(unverified) == str(module)


def test_options_of_the_cpu_pipeline():
    options = CPUPipeline(
        threads=1,
        workspace=True,
        cpu="x86-64-v3",
        triple="x86_64-unknown-linux-gnu",
        features="+avx2",
        register_tiles=False,
        prepack_weights=True,
        precision="bf16",
        algorithm="im2col",
        split_batch=False,
        share_short_loops=True,
    )
    # All that there are, so that none of them is a name that the pipeline does not have.
    assert None not in dataclasses.astuple(options) and "" not in dataclasses.astuple(options)
    function = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    assert "llvm.func @f(" in str(kas.parse(function).run(str(options)))
    assert str(CPUPipeline()) == "kas-cpu-pipeline{}" and str(CPUPipeline(0)) == "kas-cpu-pipeline{threads=0}"
    with pytest.raises(kas.Error, match="quickest"):
        kas.parse(function).run(str(CPUPipeline(algorithm="quickest")))


def test_failing_passes_leave_the_module_alone():
    module = kas.parse(
        HALVES
        + """
        func.func @f(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
          %y = kas.apply @halves<s = 3>(%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
          return %y : tensor<2x6xf32>
        }
        """
    )
    before = str(module)
    with pytest.raises(kas.Error, match="concrete operator"):
        module.run("kas-to-affine")
    assert str(module) == before


def test_library_is_complete():
    entries = kas.named_operators()
    assert len(entries) == 59
    for name, entry in entries.items():
        assert entry.name == name and entry.title and entry.formula and entry.source
        assert kas.operator(name).name == name
    assert len(kas.named_kernels()) > 0
    assert kas.operator("kas.conv2d").name == "conv2d"


def test_describes_an_operator(conv2d_binding):
    conv = kas.operator("conv2d")
    assert conv.symbols == (["N", "Cin", "Cout", "H", "W"], ["k"])
    assert conv.sizes == {
        "data": ["N", "Cin", "H", "W"],
        "weights": [["Cout", "Cin", "k", "k"]],
        "output": ["N", "Cout", "H", "W"],
    }
    assert conv.symbolic_cost.parameters == "Cin*Cout*k**2"
    macs = 2 * 6 * 7 * 5 * 4 * 9
    num_bytes = 4 * (2 * 4 * 35 + 2 * 6 * 35 + 216)
    # 13 of the 15 places of a window along 5 positions are inside, 19 of 21 along 7.
    assert conv.existing_flops(conv2d_binding) * 15 * 21 == conv.cost(conv2d_binding).flops * 13 * 19
    assert conv.cost(conv2d_binding) == kas.Cost(macs, 2 * macs, 2 * macs, 6 * macs, 6 * 4 * 9, num_bytes)
    assert conv.shapes("N=2,Cin=4,Cout=6,H=7,W=5,k=3") == ((2, 4, 7, 5), ((6, 4, 3, 3),), (2, 6, 7, 5))
    assert conv.fan_in(conv2d_binding) == 36


def test_predicts_times():
    conv = kas.operator("conv2d")
    layer = {"N": 1, "Cin": 64, "Cout": 64, "H": 56, "W": 56, "k": 3}
    whole = conv.predict_milliseconds(layer)
    # 231 million FLOPs, by whatever vectors and model.
    assert 0.2 < whole < 200
    assert 1.9 < conv.predict_milliseconds({**layer, "N": 2}) / whole < 2.1
    assert conv.predict_milliseconds("N=1,Cin=64,Cout=64,H=56,W=56,k=1") < whole / 3
    with pytest.raises(kas.Error, match=r"requires sums as reductions for a search, got kas\.reduce"):
        kas.operator("max_pool2d").predict_milliseconds("N=1,C=64,H=56,W=56,k=3,s=2")
    reductions = "".join(f"  %r{number} = kas.reduce sum : 2\n" for number in range(15))
    values = ", ".join(f"%r{number}" for number in range(15))
    many = kas.parse(
        f"kas.operator @many<N>(%o: N) from [N, {', '.join('2' * 15)}] {{\n{reductions}"
        f"  kas.yield data(%o, {values})\n}}\n"
    )["many"]
    with pytest.raises(kas.Error, match="at most 14 reductions and weights together for a search, got 15"):
        many.predict_milliseconds("N=4")
    with pytest.raises(kas.Error, match="the value of symbol 'k' must be at least 1, got 0"):
        conv.predict_milliseconds({**layer, "k": 0})


def test_finds_lookahead():
    centred, causal = kas.operator("conv1d_depthwise"), kas.operator("conv1d_depthwise_causal")
    assert causal.find_lookahead("N=1,C=4,L=8,k=3") is None
    output, data = centred.find_lookahead("N=1,C=4,L=8,k=3")
    assert data == output + 1
    assert centred.find_lookahead("N=1,C=4,L=8,k=3", output=1, data=1) is None
    # Two positions on, twice the position of the output.
    strided = kas.operator("conv1d_strided")
    assert strided.find_lookahead("N=1,Cin=3,Cout=4,L=8,k=1,s=2", stride=2) is None
    assert strided.find_lookahead("N=1,Cin=3,Cout=4,L=8,k=1,s=2", stride=1) is not None
    with pytest.raises(kas.Error, match="requires a dimension of the data, of rank 3, got 3"):
        causal.find_lookahead("N=1,C=4,L=8,k=3", data=3)
    with pytest.raises(kas.Error, match="requires a stride of at least 1, got 0"):
        causal.find_lookahead("N=1,C=4,L=8,k=3", stride=0)


def test_axis_properties():
    binding = "N=1,C=4,L=8,k=3"
    [centred] = kas.operator("conv1d_depthwise").axis_properties(binding)
    assert centred == (2, 2, 8, 2, 3, "zero_padded", True)
    assert not centred.reads_all
    # Both axes of an image; shifts go around the torus.
    rows, columns = kas.operator("shift_conv2d").axis_properties("N=1,Cin=2,Cout=3,H=4,W=5")
    assert (rows.output, columns.output) == (2, 3)
    assert rows.translations == columns.translations == "cyclic"
    # A weight for each pair of positions.
    b = kas.OperatorBuilder("mix", ["N", "C", "H"])
    (n, c, h), r = b.outputs("N", "C", "H"), b.reduce("H")
    r_data, r_weight = b.share(r)
    [mixed] = b.build([n, c, r_data], [[h, r_weight]]).axis_properties("N=1,C=2,H=4")
    assert mixed.reads_all
    assert (mixed.translations, mixed.any_grid) == ("none", False)
    with pytest.raises(kas.Error, match="requires at most 4194304 points of loops that depend on each other in 'mix'"):
        b.build([n, c, r_data], [[h, r_weight]]).axis_properties("N=1,C=2,H=4096")


def test_canonical_form():
    canonical = kas.parse(HALVES)["halves"].canonical()
    assert "kas.merge" not in str(canonical)


def test_errors_carry_diagnostics():
    with pytest.raises(kas.Error) as raised:
        kas.parse("kas.operator @a<N>(%n: N) from [M] {\n  kas.yield data(%n)\n}", "a.mlir")
    diagnostic = raised.value.diagnostics[0]
    assert diagnostic.severity == "error"
    assert diagnostic.location == "a.mlir:1:1"
    assert "C10" in diagnostic.message
    assert str(raised.value).startswith("a.mlir:1:1: error: 'kas.operator' op requires")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: kas.parse(3), TypeError, "must be a str, got int"),
        (lambda: kas.parse("nonsense"), kas.Error, "1:1: error: custom op 'nonsense' is unknown"),
        (lambda: kas.load("/no/such/file.mlir"), FileNotFoundError, "no/such"),
        (lambda: kas.parse(HALVES)["thirds"], kas.Error, "no operator 'thirds'"),
        (lambda: kas.operator("conv2"), KeyError, "did you mean conv2d"),
        (lambda: kas.operator("zzz"), KeyError, "named_operators"),
        (lambda: kas.parse(HALVES).run("nonsense"), kas.Error, "'nonsense' does not refer to a registered pass"),
        (lambda: kas.parse(HALVES)["halves"].cost({"N": 1}), kas.Error, "requires a value for symbol 'C'"),
        (lambda: kas.parse(HALVES)["halves"].cost("N=1,C=6,s=4"), kas.Error, "C/s"),
        (lambda: kas.parse(HALVES)["halves"].cost("Q=1"), kas.Error, "got 'Q'"),
        (lambda: kas.parse(HALVES)["halves"].cost("N=x"), kas.Error, "N"),
        (lambda: kas.parse(HALVES)["halves"].cost({"N": 1.5}), TypeError, "'N' must be bound to an integer"),
        (lambda: kas.parse(HALVES)["halves"].cost(17), TypeError, "a binding must be a dictionary"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_import_is_quick_and_light():
    """Neither NumPy nor torch is imported by kas itself. CPU seconds: others may load the machine."""
    code = (
        "import sys, time; start = time.process_time(); import kas; seconds = time.process_time() - start;"
        "assert 'numpy' not in sys.modules and 'torch' not in sys.modules; print(seconds)"
    )
    seconds = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    assert min(seconds) < 0.3, seconds


def test_missing_extras_say_what_to_install():
    from kas._errors import need

    with pytest.raises(kas.MissingExtraError, match=r"pip install 'kas\[report\]'"):
        need("a_package_that_nobody_has", "report")
