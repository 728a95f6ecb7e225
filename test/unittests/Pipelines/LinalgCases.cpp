//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of linalg. Structured ones are made from their definitions: the
// indexing maps give the ranks and sizes of operands, the verifier gives the
// types. Those whose maps are attributes, and those that are no
// loops, are written out.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas::pipelines;
using namespace mlir;

static std::string makeType(ArrayRef<int64_t> sizes, StringRef element) {
  std::string text = sizes.empty() ? "*" : "";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element.str();
}

static std::string joinText(ArrayRef<std::string> parts) {
  return llvm::join(parts, ", ");
}

//===----------------------------------------------------------------------===//
// From definitions
//===----------------------------------------------------------------------===//

namespace {
/// The loops of an operation by its definition.
struct Definition {
  /// One for each operand, the result last; empty: elementwise on any rank.
  SmallVector<AffineMap> maps;
  std::string attributes = "";
};
} // namespace

/// The maps of `name` with some strides and dilations, or none where they
/// follow the operands' ranks.
static Definition getDefinition(MLIRContext &context, StringRef name,
                                std::mt19937_64 &random) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OperationName operation(name, &context);
  bool hasStrides = llvm::is_contained(
      llvm::map_range(operation.getAttributeNames(),
                      [](StringAttr a) { return a.getValue(); }),
      "strides");
  // Two operands: maps of fixed form do not look at them.
  OperationState state(loc, name);
  auto type = RankedTensorType::get({2}, builder.getF32Type());
  auto cast = UnrealizedConversionCastOp::create(
      builder, loc, TypeRange{type, type}, ValueRange{});
  state.addOperands(cast.getResults());
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr({1, 1}));
  SmallVector<int64_t> strides, dilations;
  for (unsigned i = 0; i < 3; ++i) {
    strides.push_back(draw(random, 1, 2));
    dilations.push_back(draw(random, 1, 2));
  }
  auto vector = RankedTensorType::get({3}, builder.getI64Type());
  if (hasStrides) {
    state.addAttribute("strides", DenseIntElementsAttr::get(vector, strides));
    state.addAttribute("dilations",
                       DenseIntElementsAttr::get(vector, dilations));
  }
  state.addRegion();
  Operation *made = builder.create(state);
  Definition result;
  if (auto op = dyn_cast<linalg::LinalgOp>(made))
    result.maps = op.getIndexingMapsArray();
  made->erase();
  cast->erase();
  // Of elementwise ones there is a map for each of the two.
  if (result.maps.size() == 2 && result.maps[0] == result.maps[1] &&
      !StringRef(name).contains("conv") && !StringRef(name).contains("pool"))
    result.maps.clear();
  if (hasStrides) {
    auto count = llvm::count_if(result.maps[0].getResults(), [](AffineExpr e) {
      return !isa<AffineDimExpr>(e);
    });
    // Strides of 1 alone make plain dimensions of what a window of one column
    // covers, but the window keeps its own.
    auto list = [&](ArrayRef<int64_t> values) {
      std::string text;
      for (int64_t value : values.take_front(count))
        text += (text.empty() ? "" : ", ") + std::to_string(value);
      return "dense<[" + text + "]> : tensor<" + std::to_string(count) +
             "xi64>";
    };
    result.attributes = " {strides = " + list(strides) +
                        ", dilations = " + list(dilations) + "}";
  }
  return result;
}

/// The size of `expr` over loops of `sizes`.
static int64_t getExtent(AffineExpr expr, ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> last;
  for (int64_t size : sizes)
    last.push_back(getAffineConstantExpr(size - 1, expr.getContext()));
  return cast<AffineConstantExpr>(expr.replaceDims(last)).getValue() + 1;
}

static SmallVector<int64_t> drawSizes(std::mt19937_64 &random, size_t count,
                                      int64_t limit) {
  SmallVector<int64_t> sizes;
  int64_t product = 1;
  for (size_t i = 0; i < count; ++i) {
    int64_t most = std::max<int64_t>(2, std::min<int64_t>(9, limit / product));
    // Now and then a size that fills vectors.
    sizes.push_back(draw(random, 0, 3) == 0 && most == 9
                        ? 16
                        : draw(random, 1, std::min<int64_t>(most, 9)));
    product *= sizes.back();
  }
  std::shuffle(sizes.begin(), sizes.end(), random);
  return sizes;
}

/// `name` on operands of `types`; the last one is the output.
static OperationCase makeStructured(StringRef name, StringRef variant,
                                    std::vector<std::string> types,
                                    StringRef before, StringRef attributes) {
  OperationCase made;
  made.name = name.str();
  made.variant = variant.str();
  unsigned output = types.size() - 1;
  std::vector<std::string> values, names;
  for (unsigned i = 0; i < output; ++i) {
    values.push_back("%a" + std::to_string(i));
    names.push_back("$" + std::to_string(i));
  }
  std::string out = std::to_string(output);
  std::string text = name.str() + before.str() + attributes.str();
  if (output)
    text += " ins(" + joinText(values) + " : " + joinText(names) + ")";
  text += " outs(%a" + out + " : $" + out + ")";
  made.buffers = text;
  made.body = "  %r = " + text + " -> $" + out;
  made.numArguments = types.size();
  made.types = std::move(types);
  made.results = {output};
  return made;
}

/// The types that operands may have: of tensors, of scalars, of the result.
static std::vector<std::array<std::string, 3>> getTypeChoices() {
  return {{"f32", "f32", "f32"},   {"i32", "i32", "i32"}, {"f64", "f64", "f64"},
          {"i8", "i32", "i32"},    {"f16", "f16", "f32"}, {"i64", "i64", "i64"},
          {"bf16", "bf16", "f32"}, {"i8", "i8", "i8"},    {"f16", "f16", "f16"},
          {"f32", "i32", "f32"}};
}

static bool usesMath(StringRef name) {
  return llvm::is_contained(
      {"linalg.exp", "linalg.log", "linalg.sqrt", "linalg.rsqrt", "linalg.tanh",
       "linalg.erf", "linalg.powf", "linalg.reciprocal", "linalg.fill_rng_2d"},
      name);
}

static void setValues(OperationCase &made) {
  StringRef name = made.name;
  if (name.contains("div") || name.contains("reciprocal"))
    made.fills.assign(made.numArguments, Fill::NonZero);
  if (!usesMath(name))
    return;
  made.match = Match::Rounding;
  if (!name.contains("rng"))
    made.fills.assign(made.numArguments, Fill::Fractions);
}

/// The first few types that the verifier takes.
static std::vector<OperationCase> makeFromDefinition(OperationRunner &runner,
                                                     StringRef name,
                                                     std::mt19937_64 &random) {
  std::vector<OperationCase> cases;
  Definition definition = getDefinition(runner.getContext(), name, random);
  bool isElementwise = definition.maps.empty();
  unsigned numLoops =
      isElementwise ? draw(random, 1, 4) : definition.maps[0].getNumDims();
  SmallVector<int64_t> sizes = drawSizes(random, numLoops, 20000);
  for (const auto &[tensor, scalar, result] : getTypeChoices())
    // No input: one that is a scalar.
    for (unsigned inputs : {0, 1, 2, 3}) {
      if (!isElementwise && inputs != 1)
        continue;
      std::vector<std::string> types;
      unsigned count =
          isElementwise ? std::max(inputs, 1u) + 1 : definition.maps.size();
      for (unsigned i = 0; i < count; ++i) {
        bool isOutput = i + 1 == count;
        SmallVector<int64_t> shape(sizes);
        if (!isElementwise) {
          shape.clear();
          for (AffineExpr expr : definition.maps[i].getResults())
            shape.push_back(getExtent(expr, sizes));
        }
        if (isElementwise && inputs == 0 && !isOutput)
          shape.clear();
        bool isCondition = name == "linalg.select" && i == 0;
        // The bounds of random numbers are f64, their seed is i32.
        bool isRandom = name == "linalg.fill_rng_2d" && !isOutput;
        types.push_back(isRandom      ? (i < 2 ? "f64" : "i32")
                        : isCondition ? makeType(shape, "i1")
                        : shape.empty() && !isOutput
                            ? scalar
                            : makeType(shape, isOutput ? result : tensor));
      }
      OperationCase made = makeStructured(name, "(" + joinText(types) + ")",
                                          types, "", definition.attributes);
      setValues(made);
      if (runner.isValid(made, Form::Static))
        cases.push_back(std::move(made));
    }
  return cases;
}

//===----------------------------------------------------------------------===//
// Written out
//===----------------------------------------------------------------------===//

/// A product with maps of its own: `text` are the maps' results, over `loops`.
static OperationCase makeProduct(OperationRunner &runner, StringRef name,
                                 StringRef loops, ArrayRef<StringRef> results,
                                 ArrayRef<StringRef> elements,
                                 std::mt19937_64 &random, StringRef more = "") {
  SmallVector<StringRef> dims;
  loops.split(dims, ' ');
  SmallVector<int64_t> sizes = drawSizes(random, dims.size(), 8000);
  std::vector<std::string> types, maps;
  for (auto [result, element] : llvm::zip_equal(results, elements)) {
    SmallVector<int64_t> shape;
    SmallVector<StringRef> names;
    result.split(names, ' ', -1, false);
    for (StringRef dim : names)
      shape.push_back(sizes[llvm::find(dims, dim) - dims.begin()]);
    types.push_back(makeType(shape, element));
    maps.push_back("affine_map<(" + llvm::join(dims, ", ") + ") -> (" +
                   llvm::join(names, ", ") + ")>");
  }
  return makeStructured(
      name, llvm::join(results, " | ") + " " + more.str(), types,
      " indexing_maps = [" + joinText(maps) + "]" + more.str(), "");
}

static void addProducts(OperationRunner &runner,
                        std::vector<OperationCase> &cases,
                        std::mt19937_64 &random) {
  const std::array<StringRef, 3> elements[] = {{"f32", "f32", "f32"},
                                               {"i32", "i32", "i32"},
                                               {"i8", "i8", "i32"},
                                               {"bf16", "bf16", "f32"},
                                               {"f64", "f64", "f64"}};
  const auto add = [&](StringRef name, StringRef loops,
                       std::array<StringRef, 3> results, StringRef more = "") {
    for (const auto &types : elements)
      if (types[0] == "f32" || draw(random, 0, 1))
        cases.push_back(
            makeProduct(runner, name, loops, results, types, random, more));
  };
  add("linalg.matmul", "m n k", {"m k", "k n", "m n"});
  add("linalg.matmul", "m n k", {"k m", "k n", "m n"});
  add("linalg.matmul", "m n k", {"m k", "n k", "m n"});
  add("linalg.matmul", "m n k", {"k", "k n", "m n"});
  add("linalg.matmul", "m n k", {"k m", "k", "m n"});
  add("linalg.batch_matmul", "b m n k", {"b m k", "b k n", "b m n"});
  add("linalg.batch_matmul", "b m n k", {"b k m", "b k n", "b m n"});
  add("linalg.batch_matmul", "b m n k", {"b m k", "b n k", "b m n"});
  add("linalg.batch_matmul", "b m n k", {"m k", "b k n", "b m n"});
  add("linalg.batch_matmul", "b m n k", {"b m k", "k", "b m n"});
  add("linalg.batch_reduce_matmul", "b m n k", {"b m k", "b k n", "m n"});
  add("linalg.batch_reduce_matmul", "b m n k", {"b k m", "b n k", "m n"});
  add("linalg.batch_reduce_matmul", "b m n k", {"k", "b k n", "m n"});
  add("linalg.contract", "a b c d", {"a c", "d c b", "b a d"});
  add("linalg.contract", "m n k", {"m k", "k n", "m n"});
  add("linalg.contract", "m k", {"m k", "k", "m"});
  add("linalg.contract", "k", {"k", "k", ""});
  add("linalg.contract", "b m n k l", {"b l m k", "b k n l", "n b m"});
  auto unsignedCast =
      makeProduct(runner, "linalg.matmul", "m n k", {"m k", "k n", "m n"},
                  {"i8", "i8", "i32"}, random);
  unsignedCast.variant += " unsigned";
  for (std::string *text : {&unsignedCast.body, &unsignedCast.buffers})
    text->insert(text->find(" ins("),
                 " {cast = #linalg.type_fn<cast_unsigned>}");
  cases.push_back(unsignedCast);
}

static void addElementwise(OperationRunner &runner,
                           std::vector<OperationCase> &cases,
                           std::mt19937_64 &random) {
  for (uint32_t i = 0; i <= linalg::getMaxEnumValForElementwiseKind(); ++i) {
    auto kind = linalg::symbolizeElementwiseKind(i);
    if (!kind)
      continue;
    StringRef word = linalg::stringifyElementwiseKind(*kind);
    std::string before = " kind=#linalg.elementwise_kind<" + word.str() + ">";
    SmallVector<int64_t> shape = drawSizes(random, draw(random, 1, 3), 500);
    // Upstream's parser ends on types that a kind does not take.
    bool takesIntegers = llvm::is_contained(
        {"add", "sub", "mul", "div", "max_signed", "min_signed", "select"},
        word);
    bool isUnsigned = word.contains("unsigned");
    unsigned arity = *kind >= linalg::ElementwiseKind::select ? 3
                     : *kind >= linalg::ElementwiseKind::add  ? 2
                                                              : 1;
    for (StringRef element : {"f32", "i32"}) {
      if (element == "f32" ? isUnsigned : !takesIntegers && !isUnsigned)
        continue;
      std::vector<std::string> types(arity + 1, makeType(shape, element));
      if (word == "select")
        types[0] = makeType(shape, "i1");
      OperationCase made =
          makeStructured("linalg.elementwise", word.str() + " " + types.back(),
                         types, before, "");
      made.fills.assign(types.size(),
                        word.contains("div") ? Fill::NonZero : Fill::Fractions);
      made.match = Match::Rounding;
      cases.push_back(made);
    }
  }
  OperationCase maps =
      makeStructured("linalg.elementwise", "broadcast and transposed",
                     {"4x9xf32", "4xf32", "9x4xf32"},
                     " kind=#linalg.elementwise_kind<sub> indexing_maps = ["
                     "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (j)>, "
                     "affine_map<(i, j) -> (i, j)>]",
                     "");
  cases.push_back(maps);
}

static OperationCase makeWritten(StringRef name, StringRef variant,
                                 std::vector<std::string> types,
                                 StringRef body) {
  OperationCase made;
  made.name = name.str();
  made.variant = variant.str();
  made.numArguments = types.size();
  made.results = {unsigned(types.size()) - 1};
  made.types = std::move(types);
  made.body = body.str();
  return made;
}

/// `text` up to its `outs(...)`, with the same on buffers.
static OperationCase makeInPlace(StringRef name, StringRef variant,
                                 std::vector<std::string> types, StringRef text,
                                 bool namesResult = false) {
  OperationCase made = makeWritten(name, variant, std::move(types), "");
  made.body = "  %r = " + text.str() +
              (namesResult ? " -> $" + std::to_string(made.results[0]) : "");
  made.buffers = text.str();
  return made;
}

static void addWithRegions(std::vector<OperationCase> &cases) {
  for (auto [element, add, mul] :
       {std::tuple{"f32", "addf", "mulf"}, std::tuple{"i16", "addi", "muli"}}) {
    std::string e = element, a = add, m = mul;
    cases.push_back(
        makeInPlace("linalg.map", e, {"5x16x" + e, "5x16x" + e, "5x16x" + e},
                    "linalg.map { arith." + m +
                        " } ins(%a0, %a1 : $0, $1) outs(%a2 : $2)"));
    cases.push_back(makeInPlace(
        "linalg.map", "no inputs " + e, {"7x" + e},
        "linalg.map outs(%a0 : $0) (%o: " + e +
            ") { %i = linalg.index 0 : "
            "index %j = arith.index_cast %i : index to i16 %c = arith." +
            (e == "f32" ? "sitofp %j : i16 to f32" : "addi %j, %j : i16") +
            " linalg.yield %c : " + e + " }"));
    for (auto [dims, out] :
         {std::pair{"[1]", "4x3x"}, std::pair{"[0]", "7x3x"},
          std::pair{"[0, 2]", "7x"}, std::pair{"[0, 1, 2]", ""}}) {
      std::string type = std::string(out).empty() ? "*" : out;
      cases.push_back(makeInPlace(
          "linalg.reduce", std::string(dims) + " " + e,
          {"4x7x3x" + e, type + e},
          "linalg.reduce { arith." + a +
              " } ins(%a0 : $0) outs(%a1 : $1) dimensions = " + dims));
    }
    cases.push_back(makeInPlace("linalg.transpose", e,
                                {"4x7x3x" + e, "3x4x7x" + e},
                                "linalg.transpose ins(%a0 : $0) outs(%a1 : "
                                "$1) permutation = [2, 0, 1]"));
    cases.push_back(makeInPlace("linalg.broadcast", e, {"5x" + e, "4x5x3x" + e},
                                "linalg.broadcast ins(%a0 : $0) outs(%a1 : "
                                "$1) dimensions = [0, 2]"));
    cases.push_back(makeInPlace(
        "linalg.generic", "strided and shifted " + e,
        {"13x8x" + e, "8x" + e, "5x8x" + e},
        "linalg.generic {indexing_maps = ["
        "affine_map<(i, j) -> (2 * i + 4, j)>, affine_map<(i, j) -> (j)>, "
        "affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", "
        "\"parallel\"]} ins(%a0, %a1 : $0, $1) outs(%a2 : $2) {\n"
        "^bb0(%x: " +
            e + ", %y: " + e + ", %z: " + e +
            "):\n"
            "  %p = arith." +
            m + " %x, %y : " + e +
            "\n"
            "  %s = arith." +
            a + " %p, %z : " + e +
            "\n"
            "  linalg.yield %s : " +
            e + "\n}",
        true));
  }
  cases.push_back(makeInPlace(
      "linalg.index", "", {"6x5xi32"},
      "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], "
      "iterator_types = [\"parallel\", \"parallel\"]} outs(%a0 : $0) {\n"
      "^bb0(%z: i32):\n"
      "  %i = linalg.index 0 : index\n  %j = linalg.index 1 : index\n"
      "  %p = arith.muli %i, %j : index\n"
      "  %s = arith.index_cast %p : index to i32\n"
      "  %t = arith.subi %s, %z : i32\n  linalg.yield %t : i32\n}",
      true));
  OperationCase two = makeWritten(
      "linalg.reduce", "two results", {"6x8xf32", "6x8xi32", "6xf32", "6xi32"},
      "  %r:2 = linalg.reduce ins(%a0, %a1 : $0, $1) outs(%a2, %a3 : $2, $3) "
      "dimensions = [1] (%x: f32, %i: i32, %y: f32, %j: i32) {\n"
      "  %c = arith.cmpf ogt, %x, %y : f32\n"
      "  %v = arith.select %c, %x, %y : f32\n"
      "  %k = arith.select %c, %i, %j : i32\n"
      "  linalg.yield %v, %k : f32, i32\n}\n"
      "  %r0 = tensor.cast %r#0 : $2 to $2\n"
      "  %r1 = tensor.cast %r#1 : $3 to $3");
  two.results = {2, 3};
  cases.push_back(two);
}

/// The softmax of rows as loops.
static const char *softmaxLoops = R"mlir(
  %low = arith.constant dense<0xFF800000> : tensor<6xf32>
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %m = linalg.reduce { arith.maximumf } ins(%a0 : $0) outs(%low : tensor<6xf32>)
      dimensions = [1]
  %bm = linalg.broadcast ins(%m : tensor<6xf32>) outs(%a1 : $1) dimensions = [1]
  %d = linalg.sub ins(%a0, %bm : $0, $1) outs(%a1 : $1) -> $1
  %e = linalg.exp ins(%d : $1) outs(%a1 : $1) -> $1
  %s = linalg.reduce { arith.addf } ins(%e : $1) outs(%zero : tensor<6xf32>)
      dimensions = [1]
  %bs = linalg.broadcast ins(%s : tensor<6xf32>) outs(%a1 : $1) dimensions = [1]
  %r = linalg.div ins(%e, %bs : $1, $1) outs(%a1 : $1) -> $1
)mlir";

static std::string makeGeneric(StringRef maps, StringRef loops,
                               StringRef rest) {
  return ("  %r = linalg.generic {indexing_maps = [" + maps +
          "], iterator_types = [" + loops + "]} " + rest)
      .str();
}

static void addRelayouts(std::vector<OperationCase> &cases) {
  // Element (i, j) of a 9x10 matrix is in tile (i / 4, j / 5).
  for (StringRef e : {"f32", "i8"}) {
    std::string element = e.str(), zero = e == "f32" ? "0.0 : f32" : "0 : i8";
    OperationCase pack = makeWritten(
        "linalg.pack", element, {"8x10x" + element, "2x2x4x5x" + element},
        "  %r = linalg.pack %a0 inner_dims_pos = [0, 1] inner_tiles = [4, 5] "
        "into %a1 : $0 -> $1");
    pack.reference =
        makeGeneric("affine_map<(a, b, c, d) -> (a * 4 + c, b * 5 + d)>, "
                    "affine_map<(a, b, c, d) -> (a, b, c, d)>",
                    "\"parallel\", \"parallel\", \"parallel\", \"parallel\"",
                    "ins(%a0 : $0) outs(%a1 : $1) {\n^bb0(%x: " + element +
                        ", %y: " + element +
                        "):\n linalg.yield %x : " + element + "\n} -> $1");
    cases.push_back(pack);
    OperationCase padded = makeWritten(
        "linalg.pack", "padded, outer permuted " + element,
        {"7x10x" + element, "2x2x4x5x" + element},
        "  %c = arith.constant " + zero +
            "\n  %r = linalg.pack %a0 padding_value(%c : " + element +
            ") outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = "
            "[4, 5] into %a1 : $0 -> $1");
    padded.reference =
        "  %c = arith.constant " + zero +
        "\n  %p = tensor.pad %a0 low[0, 0] high[1, 0] {\n^bb0(%i: index, %j: "
        "index):\n tensor.yield %c : " +
        element + "\n} : $0 to tensor<8x10x" + element + ">\n" +
        makeGeneric("affine_map<(b, a, c, d) -> (a * 4 + c, b * 5 + d)>, "
                    "affine_map<(b, a, c, d) -> (b, a, c, d)>",
                    "\"parallel\", \"parallel\", \"parallel\", \"parallel\"",
                    "ins(%p : tensor<8x10x" + element +
                        ">) outs(%a1 : $1) {\n^bb0(%x: " + element +
                        ", %y: " + element +
                        "):\n linalg.yield %x : " + element + "\n} -> $1");
    cases.push_back(padded);
    OperationCase unpack = makeWritten(
        "linalg.unpack", element, {"2x2x4x5x" + element, "7x10x" + element},
        "  %r = linalg.unpack %a0 outer_dims_perm = [1, 0] inner_dims_pos = "
        "[0, 1] inner_tiles = [4, 5] into %a1 : $0 -> $1");
    unpack.reference =
        "  %t = tensor.empty() : tensor<7x10x" + element + ">\n" +
        makeGeneric(
            "affine_map<(i, j) -> (i, j)>", "\"parallel\", \"parallel\"",
            "outs(%t : tensor<7x10x" + element + ">) {\n^bb0(%y: " + element +
                "):\n %i = linalg.index 0 : index\n %j = linalg.index 1 "
                ": index\n %c4 = arith.constant 4 : index\n %c5 = "
                "arith.constant 5 : index\n %a = arith.divui %i, %c4 : "
                "index\n %b = arith.divui %j, %c5 : index\n %c = "
                "arith.remui %i, %c4 : index\n %d = arith.remui %j, %c5 "
                ": index\n %x = tensor.extract %a0[%b, %a, %c, %d] : "
                "$0\n linalg.yield %x : " +
                element + "\n} -> $1");
    cases.push_back(unpack);
  }
}

/// Winograd's transforms one after the other are a convolution.
static void addWinograd(std::vector<OperationCase> &cases) {
  for (auto [fmr, tile, out] :
       {std::tuple{"F_2_3", 4, 2}, std::tuple{"F_4_3", 6, 4}}) {
    std::string f = fmr, t = std::to_string(tile);
    // An output of 8x8 from an input of 10x10.
    int64_t tiles = 8 / out;
    std::string n = std::to_string(tiles), points = t + "x" + t;
    std::string weights = "tensor<" + points + "x3x4xf32>",
                inputs = "tensor<" + points + "x" + n + "x" + n + "x2x3xf32>",
                outputs = "tensor<" + points + "x" + n + "x" + n + "x2x4xf32>";
    std::string p = std::to_string(tile * tile),
                q = std::to_string(tiles * tiles * 2);
    std::string flatWeights = "tensor<" + p + "x3x4xf32>",
                flatInputs = "tensor<" + p + "x" + q + "x3xf32>",
                flatOutputs = "tensor<" + p + "x" + q + "x4xf32>";
    OperationCase made;
    made.name = "linalg.winograd_filter_transform";
    made.variant = f;
    made.types = {"2x10x10x3xf32", "4x3x3x3xf32", "2x8x8x4xf32"};
    made.numArguments = 3;
    made.results = {2};
    made.isStatic = true;
    made.match = Match::Rounding;
    made.body =
        "  %z = arith.constant 0.0 : f32\n"
        "  %ew = tensor.empty() : " +
        weights + "\n  %w = linalg.winograd_filter_transform fmr(" + f +
        ") ins(%a1 : $1) outs(%ew : " + weights + ") -> " + weights +
        "\n  %ei = tensor.empty() : " + inputs +
        "\n  %i = linalg.winograd_input_transform fmr(" + f +
        ") ins(%a0 : $0) outs(%ei : " + inputs + ") -> " + inputs +
        "\n  %cw = tensor.collapse_shape %w [[0, 1], [2], [3]] : " + weights +
        " into " + flatWeights +
        "\n  %ci = tensor.collapse_shape %i [[0, 1], [2, 3, 4], [5]] : " +
        inputs + " into " + flatInputs +
        "\n  %eo = tensor.empty() : " + flatOutputs +
        "\n  %fo = linalg.fill ins(%z : f32) outs(%eo : " + flatOutputs +
        ") -> " + flatOutputs +
        "\n  %m = linalg.batch_matmul ins(%ci, %cw : " + flatInputs + ", " +
        flatWeights + ") outs(%fo : " + flatOutputs + ") -> " + flatOutputs +
        "\n  %xm = tensor.expand_shape %m [[0, 1], [2, 3, 4], [5]] "
        "output_shape [" +
        t + ", " + t + ", " + n + ", " + n + ", 2, 4] : " + flatOutputs +
        " into " + outputs + "\n  %r = linalg.winograd_output_transform fmr(" +
        f + ") ins(%xm : " + outputs + ") outs(%a2 : $2) -> $2";
    made.reference =
        "  %r = linalg.conv_2d_nhwc_fhwc ins(%a0, %a1 : $0, $1) outs(%a2 : $2) "
        "-> $2";
    cases.push_back(made);
    made.name = "linalg.winograd_input_transform";
    cases.push_back(made);
    made.name = "linalg.winograd_output_transform";
    cases.push_back(made);
  }
}

std::vector<OperationCase>
kas::pipelines::makeLinalgCases(OperationRunner &runner,
                                std::mt19937_64 &random) {
  std::vector<OperationCase> cases;
  addProducts(runner, cases, random);
  addElementwise(runner, cases, random);
  addWithRegions(cases);
  addRelayouts(cases);
  addWinograd(cases);
  OperationCase softmax = makeWritten(
      "linalg.softmax", "", {"6x9xf32", "6x9xf32"},
      "  %r = linalg.softmax dimension(1) ins(%a0 : $0) outs(%a1 : $1) -> $1");
  softmax.reference = softmaxLoops;
  softmax.match = Match::Rounding;
  cases.push_back(softmax);
  std::set<std::string> written;
  for (const OperationCase &made : cases)
    written.insert(made.name);
  for (const std::string &name :
       getOperationNames(runner.getContext(), "linalg")) {
    RegisteredOperationName operation =
        *RegisteredOperationName::lookup(name, &runner.getContext());
    if (written.count(name) || !operation.hasInterface<linalg::LinalgOp>())
      continue;
    llvm::append_range(cases, makeFromDefinition(runner, name, random));
  }
  return cases;
}
