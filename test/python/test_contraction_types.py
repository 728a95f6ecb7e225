# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products of each type of element in each, in forms that have tiles of their own in f32, against float64."""

import pytest

import kas

torch = pytest.importorskip("torch")

# Factors and sums. Sums are exact in the wider ones: factors are eighths.
TYPES = [
    *(("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f64", "f64")),
    *(("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16")),
]
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}

# Loops, the indices of both factors and of the sums, which loops sum, and their extents.
FORMS = {
    "inner": ("m, k", "m, k", "k", "m", "k", {"m": 17, "k": 50}),
    "transposed": ("n, b, m, k", "m, b, k", "b, k, n", "m, b, n", "k", {"n": 3, "b": 4, "m": 31, "k": 5}),
    "rows": ("m, n, k", "m, k", "n, k", "m, n", "k", {"m": 9, "n": 33, "k": 24}),
    "padded": ("f, x, c, p", "c, x + p", "f, c, p", "f, x", "cp", {"f": 16, "x": 20, "c": 5, "p": 3}),
}

TEXT = """
#a = affine_map<({loops}) -> ({a})>
#b = affine_map<({loops}) -> ({b})>
#y = affine_map<({loops}) -> ({y})>
func.func @f(%a: {given} {{kas.name = "a"}}, %b: {weight} {{kas.name = "b"}}) -> {result} {{
  %zero = arith.constant 0.0 : {sum}
  %nothing = arith.constant 0.0 : {factor}
  {pad}
  %empty = tensor.empty() : {result}
  %fill = linalg.fill ins(%zero : {sum}) outs(%empty : {result}) -> {result}
  %y = linalg.generic {{indexing_maps = [#a, #b, #y], iterator_types = [{kinds}]}}
      ins({data}, %b : {read}, {weight}) outs(%fill : {result}) {{
  ^bb0(%p: {factor}, %q: {factor}, %s: {sum}):
    {widened}
    %r = arith.mulf {products} : {sum}
    %t = arith.addf %s, %r : {sum}
    linalg.yield %t : {sum}
  }} -> {result}
  return %y : {result}
}}
"""


def write(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@pytest.mark.parametrize("prepack", [False, True], ids=["", "prepacked"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("factor", "total"), TYPES, ids=lambda name: name)
def test_sums_are_of_their_type(factor, total, form, prepack):
    loops, a, b, y, summed, extents = FORMS[form]

    def get_shape(indices):
        parts = [index.split(" + ") for index in indices.split(", ")]
        return [sum(extents[part] - 1 for part in index) + 1 for index in parts]

    is_padded = form == "padded"
    read = given = get_shape(a)
    pad = ""
    if is_padded:
        given = [read[0], read[1] - 2]
        pad = (
            "%padded = tensor.pad %a low[0, 1] high[0, 1] {\n  ^bb0(%i: index, %j: index):\n    tensor.yield %nothing "
            f": {factor}\n  }} : {write(given, factor)} to {write(read, factor)}"
        )
    is_wider = factor != total
    text = TEXT.format(
        loops=loops,
        a=a,
        b=b,
        y=y,
        given=write(given, factor),
        read=write(read, factor),
        weight=write(get_shape(b), factor),
        result=write(get_shape(y), total),
        factor=factor,
        sum=total,
        pad=pad,
        data="%padded" if is_padded else "%a",
        kinds=", ".join('"reduction"' if loop in summed else '"parallel"' for loop in loops.split(", ")),
        widened=f"%u = arith.extf %p : {factor} to {total}\n    %v = arith.extf %q : {factor} to {total}" * is_wider,
        products="%u, %v" if is_wider else "%p, %q",
    )
    generator = torch.Generator().manual_seed(0)
    values = [torch.randint(-16, 17, shape, generator=generator) / 8 for shape in (given, get_shape(b))]
    if (factor, total) == ("f32", "f64"):
        # Which f32 does not have the sums of.
        values = [value * (1 + 2**-20) for value in values]
    data, weight = (value.to(DTYPES[factor]) for value in values)
    whole = torch.nn.functional.pad(data.double(), (1, 1)) if is_padded else data.double()
    if is_padded:
        exact = torch.einsum("cxp,fcp->fx", whole.unfold(1, extents["p"], 1), weight.double())
    else:
        equation = f"{a},{b}->{y}".replace(", ", "")
        exact = torch.einsum(equation, whole, weight.double())
    function = kas.parse(text).compile("f", threads=1, prepack_weights=prepack)
    found = torch.empty(exact.shape, dtype=DTYPES[total])
    call = function.bind(data, weight, out=found)
    if prepack:
        call.prepack()
    call()
    tolerance = {"f64": 1e-13, "f32": 1e-6, "f16": 0.02, "bf16": 0.2}[total]
    torch.testing.assert_close(found.double(), exact, rtol=tolerance, atol=tolerance * 10)
