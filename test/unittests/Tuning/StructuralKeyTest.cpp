//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/StructuralKey.h"
#include "TuningModules.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace kas;
using namespace kas::tuning;

namespace {

struct Key {
  std::string structure, numbers;
  bool operator==(const Key &other) const = default;
};

void PrintTo(const Key &key, std::ostream *os) {
  *os << key.structure << "\n" << key.numbers;
}

class StructuralKeyTest : public testing::Test {
protected:
  Key getKey(mlir::Operation *op) {
    StructuralKey key;
    key.add(op);
    return {key.getStructure(), key.getNumbers()};
  }
  Key getKey(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    EXPECT_TRUE(module) << text.str();
    return module ? getKey(*module) : Key();
  }
  /// That of a function of numbers `%a` and `%b`, a condition and an integer.
  Key getBody(const std::string &text) {
    return getKey("func.func @f(%a: f32, %b: f32, %c: i1, %i: index) {\n" +
                  text + "\nreturn }");
  }
  /// That of an elementwise operation on a tensor `%x` of 6 by 6 numbers.
  Key getElementwise(llvm::StringRef map,
                     llvm::StringRef type = "tensor<6x6xf32>") {
    return getKey(llvm::formatv(R"(
func.func @f(%x: {1}) -> {1} {{
  %y = linalg.generic {{
    indexing_maps = [affine_map<{0}>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : {1}) outs(%x : {1}) {{
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> {1}
  return %y : {1}
})",
                                map, type)
                      .str());
  }
  void expectSameStructure(const Key &a, const Key &b) {
    EXPECT_EQ(a.structure, b.structure);
    EXPECT_NE(a.numbers, b.numbers);
  }

  std::unique_ptr<mlir::MLIRContext> context = makeTuningContext();
};

} // namespace

TEST_F(StructuralKeyTest, SetsNumbersApart) {
  Key key = getKey("func.func private @f(tensor<2x?xf32>, vector<4xi8>)");
  EXPECT_EQ(key.numbers, "2,4");
  EXPECT_NE(key.structure.find("tensor<#x?xf32>"), std::string::npos);
  EXPECT_NE(key.structure.find("vector<#xi8>"), std::string::npos);
  EXPECT_EQ(getBody("%0 = arith.constant -7 : i64").numbers, "-7");
}

TEST_F(StructuralKeyTest, IgnoresNamesAndLocations) {
  std::string text = R"(
func.func private @g(f32) -> f32
func.func @f(%a: f32) -> f32 {
  %0 = func.call @g(%a) : (f32) -> f32
  %1 = arith.addf %0, %a : f32
  return %1 : f32
})";
  Key key = getKey(text);
  EXPECT_EQ(key, getKey(R"(
#where = loc("file":1:2)
func.func nested @callee(f32) -> f32
func.func public @caller(%value: f32 loc("value")) -> f32 {
  %called = func.call @callee(%value) : (f32) -> f32 loc(#where)
  %sum = arith.addf %called, %value : f32 loc(fused["a", #where])
  return %sum : f32
} loc("function"))"));
  // Another function is called.
  std::string other = text;
  other.replace(other.find("call @g"), 7, "call @f");
  EXPECT_NE(key, getKey(other));
  // What the printer is queried for does not matter either.
  EXPECT_EQ(getKey("#m = affine_map<(i)[s] -> (i + s)>\n"
                   "func.func @f() attributes {map = #m} { return }"),
            getKey("func.func @f() attributes {map = affine_map<(j)[t] -> "
                   "(j + t)>} { return }"));
}

TEST_F(StructuralKeyTest, IgnoresNotes) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      makeConvolution(8, 16, 16, 1), context.get());
  ASSERT_TRUE(module);
  Key before = getKey(*module);
  module->walk([](mlir::linalg::LinalgOp op) {
    // linalg writes the maps of a convolution down.
    op.getIndexingMapsArray();
    op->setAttr("kas.layer", mlir::StringAttr::get(op.getContext(), "layer"));
  });
  EXPECT_EQ(getKey(*module), before);
}

TEST_F(StructuralKeyTest, SeesWhatIsComputed) {
  std::vector<Key> keys;
  for (const char *text :
       {"%0 = arith.subf %a, %b : f32",
        "%0 = arith.subf %b, %a : f32",
        "%0 = arith.subf %a, %a : f32",
        "%0 = arith.addf %a, %b : f32",
        "%0 = arith.addf %a, %b fastmath<fast> : f32",
        "%0 = arith.cmpf olt, %a, %b : f32",
        "%0 = arith.cmpf ogt, %a, %b : f32",
        "%0 = arith.cmpi slt, %i, %i : index",
        "%0 = arith.cmpi sgt, %i, %i : index",
        "%0 = arith.constant 1.0 : f32",
        "%0 = arith.constant 2.0 : f32",
        "%0 = arith.constant 2.0 : f64",
        "%0 = arith.constant -0.0 : f32",
        "%0 = arith.constant 0.0 : f32",
        "%0 = arith.constant true",
        "%0 = arith.constant false",
        "%0 = arith.constant dense<1.0> : tensor<2xf32>",
        "%0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>",
        "%0 = arith.constant dense<1> : tensor<2xi32>",
        "%0 = arith.constant dense<1> : vector<2xi32>",
        "%0 = arith.constant dense<1> : tensor<2x2xi32>",
        "cf.assert %c, \"one\"",
        "cf.assert %c, \"two\"",
        "cf.cond_br %c, ^one, ^two\n^one: return\n^two:",
        "cf.cond_br %c, ^two, ^one\n^one: return\n^two:",
        "cf.cond_br %c, ^two, ^two\n^one: return\n^two:"})
    keys.push_back(getBody(text));
  for (const char *map :
       {"(i, j) -> (i, j)", "(i, j) -> (j, i)", "(i, j) -> (i floordiv 2, j)",
        "(i, j) -> (i mod 2, j)", "(i, j) -> (i, i)"})
    keys.push_back(getElementwise(map));
  keys.push_back(
      getElementwise("(i, j) -> (i, j)", "tensor<6x6xf32, \"encoding\">"));
  for (auto [one, key] : llvm::enumerate(keys))
    for (size_t other = 0; other < one; ++other)
      EXPECT_NE(key.structure, keys[other].structure) << one << " " << other;
}

/// How operands are divided among segments is structure, too.
TEST_F(StructuralKeyTest, SeesSegments) {
  std::string text = makeOperator(8, 16, 32);
  auto at = text.find("weight(%o, %c_w, %j_w)");
  std::string other = text;
  other.replace(at, 22, "weight(%o, %c_w) weight(%j_w)");
  // The tensors of the weights are no part of the operator.
  text.resize(text.find("func.func"));
  other.resize(other.find("func.func"));
  EXPECT_NE(getKey(text).structure, getKey(other).structure);
  EXPECT_EQ(getKey(text).numbers, getKey(other).numbers);
}

TEST_F(StructuralKeyTest, SizesAreNumbers) {
  expectSameStructure(getKey(makeMatmul(4, 5, 6)), getKey(makeMatmul(6, 5, 4)));
  expectSameStructure(getKey(makeConvolution(8, 16, 16, 1)),
                      getKey(makeConvolution(8, 16, 16, 2)));
  expectSameStructure(getElementwise("(i, j) -> (i mod 2, j)"),
                      getElementwise("(i, j) -> (i mod 3, j)"));
  expectSameStructure(getBody("%0 = arith.constant 3 : index"),
                      getBody("%0 = arith.constant 4 : index"));
  // Whether all strides are equal does not make a class.
  std::string text = makeConvolution(8, 16, 16, 1), other = text;
  llvm::StringRef from = "dilations = dense<1>";
  other.replace(other.find(from), from.size(), "dilations = dense<[1, 1]>");
  EXPECT_EQ(getKey(text), getKey(other));
  expectSameStructure(
      getBody("%0 = arith.constant dense<[1, 1, 1]> : vector<3xi64>"),
      getBody("%0 = arith.constant dense<[1, 2, 3]> : vector<3xi64>"));
  // Sizes of operators are constants when all symbols are bound.
  std::string concrete = R"(
kas.operator @shift (%n: 1, %w: {0}) from [1, {0}] {{
  %s = kas.shift %w by {1} : {0}
  kas.yield data(%n, %s)
})";
  auto make = [&](int64_t size, int64_t amount) {
    return getKey(llvm::formatv(concrete.c_str(), size, amount).str());
  };
  expectSameStructure(make(8, 1), make(16, 1));
  expectSameStructure(make(8, 1), make(8, 2));
}

/// Large constants differ by what they hold, not by their resource's name.
TEST_F(StructuralKeyTest, HashesResources) {
  auto get = [&](llvm::StringRef name, llvm::StringRef data) {
    return getKey(llvm::formatv(R"(
func.func @f() {{
  %c = arith.constant dense_resource<{0}> : tensor<1xf32>
  return
}
{{-#
  dialect_resources: {{
    builtin: {{ {0}: "0x04000000{1}" }
  }
#-})",
                                name, data)
                      .str());
  };
  Key one = get("weights", "0000803F");
  EXPECT_EQ(one, get("other", "0000803F"));
  EXPECT_NE(one, get("weights", "00000040"));
}
