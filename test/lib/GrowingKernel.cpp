//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrowingKernel.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>

using namespace kas;
using namespace kas::test;
using namespace mlir;

/// Operators that a kernel may apply to an image, in their usual notation.
static constexpr StringLiteral operators = R"mlir(
  kas.operator @pointwise<N, I, O, H, W>
      (%n: N, %o: O, %h: H, %w: W) from [N, I, H, W] {
    %i = kas.reduce sum : I
    %d, %k = kas.share %i : I
    kas.yield data(%n, %d, %h, %w) weight(%o, %k)
  }
  kas.operator @rows<N, C, H, W | k>
      (%n: N, %c: C, %h: H, %w: W) from [N, C, H, W] {
    %i = kas.reduce sum : k
    %c_d, %c_w = kas.share %c : C
    %i_d, %i_w = kas.share %i : k
    %y = kas.unfold %h, %i_d : H, k
    kas.yield data(%n, %c_d, %y, %w) weight(%c_w, %i_w)
  }
)mlir";

static constexpr StringLiteral symbolNames[] = {"C", "H", "W", "G", "K", "A"};

static void addOperators(ModuleOp module) {
  if (module.lookupSymbol("pointwise"))
    return;
  OwningOpRef<ModuleOp> parsed =
      parseSourceString<ModuleOp>(operators, ParserConfig(module.getContext()));
  module.getBody()->getOperations().splice(module.getBody()->end(),
                                           parsed->getBody()->getOperations());
}

GrowingKernel::GrowingKernel(ModuleOp module, StringRef name, uint64_t seed,
                             const RandomKernelOptions &options)
    : context(module.getContext()), builder(context), random(seed),
      options(options) {
  addOperators(module);
  declare(module, name);
}

void GrowingKernel::declare(ModuleOp module, StringRef name) {
  int64_t groups = 1 + random.below(3);
  numbers = {groups * int64_t(1 + random.below(3)),
             1 + int64_t(random.below(7)),
             1 + int64_t(random.below(7)),
             groups,
             pick({1, 2, 3, 5}),
             1 + int64_t(random.below(3))};
  builder.setInsertionPointToEnd(module.getBody());
  auto getNames = [&](ArrayRef<StringRef> names) {
    return builder.getStrArrayAttr(names);
  };
  SmallVector<std::pair<StringRef, int64_t>> entries;
  for (auto [symbol, number] : llvm::zip_equal(symbolNames, numbers))
    entries.emplace_back(symbol, number);
  SmallVector<SizeAttr> dims = {symbol("C"), symbol("H"), symbol("W")};
  auto type = SymbolicTensorType::get(context, dims, 1);
  kernel = KernelOp::create(
      builder, builder.getUnknownLoc(), builder.getStringAttr(name),
      StringAttr(), UnitAttr(), getNames({"C", "H", "W"}),
      getNames({"G", "K", "A"}), getNames({}),
      builder.getArrayAttr({symbol("G")}), getNames({"C"}), TypeAttr::get(type),
      builder.getArrayAttr({BindingAttr::getNormal(context, entries)}),
      builder.getDenseI64ArrayAttr({1}), builder.getDictionaryAttr({}),
      builder.getDictionaryAttr({}));
  Block &block = kernel.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  unsigned numInputs = 1 + (random.below(4) == 0);
  for (unsigned i = 0; i < numInputs; ++i)
    tensors.push_back(describe(block.addArgument(type, kernel.getLoc()), 1));
}

int64_t GrowingKernel::evaluate(SizeAttr size) {
  SymbolSet symbols = kernel.getSymbolSet();
  return kas::evaluate(size, symbols, Binding(numbers.begin(), numbers.end()))
      .value_or(0);
}

GrowingKernel::Tensor GrowingKernel::describe(Value value, double magnitude) {
  auto type = cast<SymbolicTensorType>(value.getType());
  Tensor tensor{value, {}, type.getNumChannelDims(), magnitude};
  for (SizeAttr size : type.getDims())
    tensor.shape.push_back(evaluate(size));
  return tensor;
}

int64_t GrowingKernel::product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t extent : shape)
    result *= std::max<int64_t>(extent, 0);
  return result;
}

SizeAttr GrowingKernel::pickSize() {
  switch (random.below(6)) {
  case 0:
    return symbol("G");
  case 1:
    return symbol("C").multiply(symbol("K"));
  case 2:
    return number(1 + random.below(8));
  case 3:
    return symbol("C").multiply(symbol("A"));
  default:
    return symbol("C");
  }
}

SizeAttr GrowingKernel::pickWindow() {
  return flip() ? symbol("K") : number(pick({1, 2, 3, 5}));
}

GrowingKernel::Tensor &GrowingKernel::pickTensor() {
  // The latest ones more often, so that chains grow.
  size_t last = tensors.size() - 1;
  return tensors[flip() ? last : random.below(last + 1)];
}

SmallVector<int64_t> GrowingKernel::pickDims(int64_t first, int64_t last) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq(first, last));
  for (size_t i = dims.size(); i > 1; --i)
    std::swap(dims[i - 1], dims[random.below(i)]);
  if (!dims.empty())
    dims.truncate(1 + random.below(dims.size()));
  return dims;
}

double GrowingKernel::getPoints(const SizeProduct &term) {
  double points = double(term.factor);
  for (SizeAttr size : term.sizes)
    points *= double(evaluate(size));
  return points;
}

bool GrowingKernel::keep(DagOpInterface step, ArrayRef<Tensor *> operands,
                         double magnitude) {
  Tensor result = describe(step->getResult(0), magnitude);
  bool isLegal = magnitude <= 100 && !llvm::is_contained(result.shape, 0) &&
                 result.shape.size() <= 7 &&
                 product(result.shape) <= options.maxElements;
  for (SizeAttr size : step.getImpliedSizes())
    isLegal &= size && evaluate(size) > 0;
  double weights = 0, flops = 0;
  for (const SizeProduct &term : step.getParams())
    weights += getPoints(term);
  for (const SizeProduct &term : step.getFlops())
    flops += getPoints(term);
  if (!isLegal || weights > 4 * double(options.maxElements) || flops > 1e6) {
    step->erase();
    return false;
  }
  for (Tensor *operand : operands)
    operand->isUsed = true;
  tensors.push_back(result);
  return true;
}
