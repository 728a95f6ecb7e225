//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of the dialect tensor.
//
//===----------------------------------------------------------------------===//

#include "OperationCase.h"
#include "llvm/ADT/StringRef.h"

using namespace kas::pipelines;
using llvm::StringRef;

namespace {
/// A case on `types`, of which the last one is the result.
struct Text {
  const char *name, *variant;
  std::vector<std::string> types;
  const char *body;
  bool isStatic = false;
  const char *reference = "";
};
} // namespace

static std::vector<Text> getTexts() {
  return {
      {"tensor.bitcast",
       "",
       {"3x4xf32", "3x4xi32"},
       "  %r = tensor.bitcast %a0 : $0 to $1"},
      {"tensor.cast",
       "",
       {"3x4xf32", "3x4xf32"},
       "  %c = tensor.cast %a0 : $0 to tensor<?x4xf32>\n"
       "  %r = tensor.cast %c : tensor<?x4xf32> to $1"},
      {"tensor.collapse_shape",
       "",
       {"3x4x5xf32", "12x5xf32"},
       "  %r = tensor.collapse_shape %a0 [[0, 1], [2]] : $0 into $1"},
      {"tensor.collapse_shape",
       "to a scalar",
       {"1x1xf32", "f32"},
       "  %r = tensor.collapse_shape %a0 [] : $0 into $1",
       true},
      {"tensor.expand_shape",
       "",
       {"12x5xf32", "3x4x5xf32"},
       "  %r = tensor.expand_shape %a0 [[0, 1], [2]] output_shape [3, 4, 5] : "
       "$0 into tensor<3x4x5xf32>",
       true},
      {"tensor.expand_shape",
       "dynamic",
       {"12x5xf32", "3x4x5xf32"},
       "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
       "  %c4 = arith.constant 4 : index\n"
       "  %d = tensor.cast %a0 : $0 to tensor<?x?xf32>\n"
       "  %m = tensor.dim %d, %c0 : tensor<?x?xf32>\n"
       "  %n = tensor.dim %d, %c1 : tensor<?x?xf32>\n"
       "  %q = arith.divui %m, %c4 : index\n"
       "  %e = tensor.expand_shape %d [[0, 1], [2]] output_shape [%q, 4, %n] : "
       "tensor<?x?xf32> into tensor<?x4x?xf32>\n"
       "  %r = tensor.cast %e : tensor<?x4x?xf32> to $1"},
      {"tensor.concat",
       "",
       {"3x4xf32", "3x2xf32", "3x6xf32"},
       "  %r = tensor.concat dim(1) %a0, %a1 : ($0, $1) -> $2"},
      {"tensor.concat",
       "of one",
       {"3x4xi8", "3x4xi8"},
       "  %r = tensor.concat dim(0) %a0 : ($0) -> $1"},
      {"tensor.dim",
       "",
       {"3x4xf32", "1xindex"},
       "  %c1 = arith.constant 1 : index\n  %d = tensor.dim %a0, %c1 : $0\n"
       "  %f = tensor.from_elements %d : tensor<1xindex>\n"
       "  %r = tensor.cast %f : tensor<1xindex> to $1"},
      {"tensor.empty",
       "",
       {"3x4xf32", "3x4xf32"},
       "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
       "  %m = tensor.dim %a0, %c0 : $0\n  %n = tensor.dim %a0, %c1 : $0\n"
       "  %e = tensor.empty(%m, %n) : tensor<?x?xf32>\n"
       "  %k = linalg.copy ins(%a0 : $0) outs(%e : tensor<?x?xf32>) -> "
       "tensor<?x?xf32>\n  %r = tensor.cast %k : tensor<?x?xf32> to $1"},
      {"tensor.extract",
       "",
       {"3x4xf32", "1xf32"},
       "  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
       "  %x = tensor.extract %a0[%c2, %c1] : $0\n"
       "  %f = tensor.from_elements %x : tensor<1xf32>\n"
       "  %r = tensor.cast %f : tensor<1xf32> to $1"},
      {"tensor.extract_slice",
       "strided",
       {"9x8xf32", "3x4xf32"},
       "  %s = tensor.extract_slice %a0[1, 2] [3, 4] [3, 1] : $0 to "
       "tensor<3x4xf32>\n  %r = tensor.cast %s : tensor<3x4xf32> to $1"},
      {"tensor.extract_slice",
       "of less rank",
       {"9x8xf32", "8xf32"},
       "  %s = tensor.extract_slice %a0[4, 0] [1, 8] [1, 1] : $0 to "
       "tensor<8xf32>\n  %r = tensor.cast %s : tensor<8xf32> to $1"},
      {"tensor.from_elements",
       "",
       {"f32", "f32", "2x1xf32"},
       "  %f = tensor.from_elements %a0, %a1 : tensor<2x1xf32>\n"
       "  %r = tensor.cast %f : tensor<2x1xf32> to $2"},
      {"tensor.gather",
       "",
       {"5x4x3xf32", "6x2xindex", "6x4xf32"},
       "  %r = tensor.gather %a0[%a1] gather_dims([0, 2]) : ($0, $1) -> $2",
       false,
       "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
       "  %r = tensor.generate {\n^bb0(%i: index, %j: index):\n"
       "    %p = tensor.extract %a1[%i, %c0] : $1\n"
       "    %q = tensor.extract %a1[%i, %c1] : $1\n"
       "    %x = tensor.extract %a0[%p, %j, %q] : $0\n"
       "    tensor.yield %x : f32\n  } : $2"},
      {"tensor.gather",
       "keeps its dimensions",
       {"5x4x3xf32", "6x1xi32", "6x1x4x3xf32"},
       "  %r = tensor.gather %a0[%a1] gather_dims([0]) : ($0, $1) -> $2",
       true,
       "  %c0 = arith.constant 0 : index\n"
       "  %r = tensor.generate {\n"
       "^bb0(%i: index, %j: index, %k: index, %l: index):\n"
       "    %p = tensor.extract %a1[%i, %c0] : $1\n"
       "    %q = arith.index_cast %p : i32 to index\n"
       "    %x = tensor.extract %a0[%q, %k, %l] : $0\n"
       "    tensor.yield %x : f32\n  } : $2"},
      {"tensor.generate",
       "",
       {"3x4xindex", "3x4xindex"},
       "  %c0 = arith.constant 0 : index\n  %m = tensor.dim %a0, %c0 : $0\n"
       "  %g = tensor.generate %m {\n^bb0(%i: index, %j: index):\n"
       "    %k = arith.muli %i, %j : index\n"
       "    %x = tensor.extract %a0[%i, %j] : $0\n"
       "    %s = arith.addi %k, %x : index\n    tensor.yield %s : index\n"
       "  } : tensor<?x4xindex>\n"
       "  %r = tensor.cast %g : tensor<?x4xindex> to $1"},
      {"tensor.insert",
       "",
       {"f32", "3x4xf32", "3x4xf32"},
       "  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
       "  %r = tensor.insert %a0 into %a1[%c2, %c1] : $1"},
      {"tensor.insert_slice",
       "strided",
       {"3x4xf32", "9x8xf32", "9x8xf32"},
       "  %s = tensor.cast %a0 : $0 to tensor<3x4xf32>\n"
       "  %r = tensor.insert_slice %s into %a1[1, 2] [3, 4] [3, 1] : "
       "tensor<3x4xf32> into $1"},
      {"tensor.insert_slice",
       "of less rank",
       {"4xf32", "9x8xf32", "9x8xf32"},
       "  %s = tensor.cast %a0 : $0 to tensor<4xf32>\n"
       "  %r = tensor.insert_slice %s into %a1[1, 2] [1, 4] [1, 1] : "
       "tensor<4xf32> into $1"},
      {"tensor.pad",
       "",
       {"3x4xf32", "f32", "6x5xf32"},
       "  %p = tensor.pad %a0 low[1, 0] high[2, 1] {\n"
       "^bb0(%i: index, %j: index):\n    tensor.yield %a1 : f32\n"
       "  } : $0 to tensor<6x5xf32>\n"
       "  %r = tensor.cast %p : tensor<6x5xf32> to $2",
       true},
      {"tensor.pad",
       "dynamic, by its places",
       {"3x4xindex", "6x5xindex"},
       "  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
       "  %d = tensor.cast %a0 : $0 to tensor<?x?xindex>\n"
       "  %p = tensor.pad %d low[%c1, 0] high[%c2, %c1] {\n"
       "^bb0(%i: index, %j: index):\n    %k = arith.muli %i, %j : index\n"
       "    tensor.yield %k : index\n"
       "  } : tensor<?x?xindex> to tensor<?x?xindex>\n"
       "  %r = tensor.cast %p : tensor<?x?xindex> to $1"},
      {"tensor.parallel_insert_slice",
       "",
       {"6x4xf32", "6x4xf32", "6x4xf32"},
       "  %s = tensor.cast %a1 : $1 to tensor<6x4xf32>\n"
       "  %f = scf.forall (%i) in (6) shared_outs(%o = %s) -> "
       "(tensor<6x4xf32>) {\n"
       "    %x = tensor.extract_slice %a0[%i, 0] [1, 4] [1, 1] : $0 to "
       "tensor<1x4xf32>\n"
       "    %y = tensor.extract_slice %o[%i, 0] [1, 4] [1, 1] : "
       "tensor<6x4xf32> to tensor<1x4xf32>\n"
       "    %z = linalg.add ins(%x, %y : tensor<1x4xf32>, tensor<1x4xf32>) "
       "outs(%y : tensor<1x4xf32>) -> tensor<1x4xf32>\n"
       "    scf.forall.in_parallel {\n"
       "      tensor.parallel_insert_slice %z into %o[%i, 0] [1, 4] [1, 1] : "
       "tensor<1x4xf32> into tensor<6x4xf32>\n    }\n  }\n"
       "  %r = tensor.cast %f : tensor<6x4xf32> to $2"},
      {"tensor.rank",
       "",
       {"3x4xf32", "1xindex"},
       "  %d = tensor.rank %a0 : $0\n"
       "  %f = tensor.from_elements %d : tensor<1xindex>\n"
       "  %r = tensor.cast %f : tensor<1xindex> to $1"},
      {"tensor.reshape",
       "",
       {"3x4xf32", "2x6xf32"},
       "  %s = arith.constant dense<[2, 6]> : tensor<2xindex>\n"
       "  %r = tensor.reshape %a0(%s) : ($0, tensor<2xindex>) -> $1"},
      {"tensor.scatter",
       "",
       {"4xf32", "1x1xi32", "1xf32", "4xf32"},
       "  %r = tensor.scatter %a2 into %a0[%a1] scatter_dims([0]) unique : "
       "($2, $0, $1) -> $3"},
      {"tensor.splat",
       "",
       {"f32", "3x4xf32"},
       "  %f = tensor.splat %a0 : tensor<3x4xf32>\n"
       "  %r = tensor.cast %f : tensor<3x4xf32> to $1"},
  };
}

std::vector<OperationCase>
kas::pipelines::makeTensorCases(std::mt19937_64 &random) {
  std::vector<OperationCase> cases;
  for (const Text &text : getTexts()) {
    OperationCase made;
    made.name = text.name;
    made.variant = text.variant;
    made.types = text.types;
    made.numArguments = text.types.size() - 1;
    made.results = {made.numArguments};
    made.body = text.body;
    made.isStatic = text.isStatic;
    made.match = Match::Bits;
    if (StringRef(text.name) == "tensor.gather" ||
        StringRef(text.name) == "tensor.scatter") {
      made.fills = {Fill::Small, Fill::Indices};
      made.limit = 3;
      made.reference = text.reference;
    }
    cases.push_back(std::move(made));
  }
  return cases;
}
