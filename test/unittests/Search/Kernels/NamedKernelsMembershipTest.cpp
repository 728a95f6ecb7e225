//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The named kernels are members of the sampler's space: their steps are moves.
//
//===----------------------------------------------------------------------===//

#include "KernelProblems.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"

using namespace kas;
using namespace kas::search;

namespace {

class NamedKernelsMembershipTest
    : public KernelProblemTest,
      public testing::WithParamInterface<const char *> {
protected:
  /// The ops of a kernel, one text each, without names of values and common
  /// dimensions of a merge, which may be written in several ways.
  std::vector<std::string> getSteps(KernelOp kernel) {
    std::vector<std::string> steps;
    for (mlir::Operation &op : kernel.getBody().front()) {
      std::string text;
      llvm::raw_string_ostream(text) << op;
      for (const auto &[pattern, with] :
           {std::pair("common \\[[0-9]+, [0-9]+\\]", "common"),
            std::pair("%[a-z0-9]+", "%"), std::pair(" = ", " ")})
        for (std::string next;
             (next = llvm::Regex(pattern).sub(with, text)) != text;)
          text = next;
      steps.push_back(text);
    }
    return steps;
  }

  std::string printName(mlir::Operation &op) {
    llvm::StringRef name = op.getName().stripDialect();
    name.consume_front("dag.");
    if (auto unary = llvm::dyn_cast<DagUnaryOp>(op))
      return stringifyDagUnaryKind(unary.getKind()).str();
    if (auto fold = llvm::dyn_cast<DagFoldOp>(op))
      return ("fold_" + stringifyDagFoldKind(fold.getKind())).str();
    if (auto merge = llvm::dyn_cast<DagBroadcastOp>(op))
      return stringifyDagBroadcastKind(merge.getKind()).str();
    return name.str();
  }

  /// The nodes that an op reads: the input is the first.
  std::vector<unsigned> getOperands(mlir::Operation &op) {
    std::vector<unsigned> operands;
    for (mlir::Value operand : op.getOperands()) {
      mlir::Operation *producer = operand.getDefiningOp();
      operands.push_back(
          producer ? 1 + std::distance(op.getBlock()->begin(),
                                       mlir::Block::iterator(producer))
                   : 0);
    }
    return operands;
  }

  /// The code has the dimensions and the dilation of `op`: there are many
  /// others.
  bool isUnfold(DagUnfoldOp op, unsigned code) const {
    unsigned mask = 0;
    for (int64_t dim : op.getDims())
      mask |= 1u << dim;
    return code % limits.dilation + 1 == op.getDilation() &&
           code / limits.dilation / (limits.pairedWindows ? 1 : 2) == mask;
  }

  /// Makes the step number `index` of `target` in every way that is a move, and
  /// goes on.
  bool follow(const State &state, KernelOp target, unsigned index) {
    auto &ops = target.getBody().front();
    if (index + 1 == ops.getOperations().size())
      return state.isTerminal() && isTarget(state, target);
    mlir::Operation &op = *std::next(ops.begin(), index);
    std::vector<unsigned> operands = getOperands(op);
    for (unsigned kind = 0; kind < state.getNumKinds(); ++kind) {
      if (state.getKindName(kind) != printName(op))
        continue;
      for (std::optional<Move> move = state.nextMove(kind); move;
           move = state.nextMove(kind, move)) {
        // Operands of one shape may be swapped.
        unsigned left = move->code >> 20, right = move->code >> 16 & 15;
        bool isSwapped =
            operands.size() > 1 && left == operands[1] &&
            right == operands[0] &&
            op.getOperand(0).getType() == op.getOperand(1).getType();
        if (!isSwapped && (left != operands[0] ||
                           (operands.size() > 1 && right != operands[1])))
          continue;
        if (auto unfold = llvm::dyn_cast<DagUnfoldOp>(op);
            unfold && !isUnfold(unfold, move->code & 0xffff))
          continue;
        std::unique_ptr<State> next = state.clone();
        next->apply(*move);
        if (follow(*next, target, index + 1))
          return true;
      }
    }
    return false;
  }

  bool isTarget(const State &state, KernelOp target) {
    auto graph =
        std::static_pointer_cast<const KernelGraph>(state.getSolution());
    mlir::OpBuilder builder(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    return getSteps(buildKernel(builder, builder.getUnknownLoc(), "k",
                                *graph)) == getSteps(target);
  }

  KernelLimits limits;
};

TEST_P(NamedKernelsMembershipTest, StepsAreMoves) {
  std::string path =
      std::string(KAS_KERNELS_DIRECTORY) + "/" + GetParam() + ".mlir";
  std::string text =
      llvm::cantFail(llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)))
          ->getBuffer()
          .str();
  // The sampler's names for the variables.
  for (auto [name, number] : {std::pair("x", "0"), {"z", "1"}})
    for (std::string next;
         (next =
              llvm::Regex(std::string("([^a-z0-9_%])") + name + "([^a-z0-9_])")
                  .sub(std::string("\\1x") + number + "\\2", text)) != text;)
      text = next;
  // A `conv` is windows and a layer by definition; the sampler has those.
  llvm::Regex convolution(
      "(%[a-z]+) = kas.dag.conv (%[a-z]+ )(groups 1 )"
      "(dims \\[[^]]*\\] by \\[[^]]*\\])( dilation 3)? to C : "
      "\\[C, 1 \\| H, W\\]");
  for (std::string next;
       (next = convolution.sub("\\1u = kas.dag.unfold \\2\\4\\5 : [C, 1 | H, W]"
                               "\n  \\1 = kas.dag.fc \\1u \\3to C : "
                               "[C, 1, windows | H, W]",
                               text)) != text;)
    text = next;
  for (llvm::StringRef window : {"k, k", "l, l"})
    if (size_t at = text.find("windows"); at != std::string::npos)
      text.replace(at, 7, window.str());
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  KernelOp target = *module->getOps<KernelOp>().begin();
  llvm::SmallVector<std::pair<llvm::StringRef, int64_t>> values;
  for (auto [name, value] :
       {std::pair("C", 8), {"G", 2}, {"H", 8}, {"W", 6}, {"k", 3}, {"l", 5}})
    if (target.getSymbolSet().lookup(name))
      values.push_back({name, value});
  mlir::Builder builder(&context);
  target.setBindingsAttr(
      builder.getArrayAttr({BindingAttr::getNormal(&context, values)}));
  target.setMultiplicities({1});
  unsigned count = target.getBody().front().getOperations().size() - 1;
  limits.minSteps = limits.maxSteps = count;
  limits.repeats = true;
  limits.steps.set();
  if (llvm::StringRef(GetParam()) == "large_kernel_attention") {
    limits.maxWeights = 5;
    limits.dilation = 3;
    // Each window in both dimensions.
    limits.pairedWindows = false;
  }
  auto problem = KernelProblem::get(target, limits, "");
  ASSERT_TRUE(succeeded(problem));
  std::unique_ptr<State> state =
      makeKernelState(std::make_shared<const KernelProblem>(*problem));
  llvm::SmallVector<Move, 4> moves;
  state->getMoves(moves);
  ASSERT_EQ(moves.size(), 1u);
  state->apply(moves.front());
  EXPECT_TRUE(follow(*state, target, 0));
}

// All but those with steps that look back, which the search does not make.
INSTANTIATE_TEST_SUITE_P(
    Kernels, NamedKernelsMembershipTest,
    testing::Values("canvas_figure6", "canvas_figure8", "canvas_figure9a",
                    "canvas_figure9b", "convolution", "depthwise_convolution",
                    "grouped_convolution", "involution",
                    "large_kernel_attention", "linear_attention", "mlp_mixer",
                    "multi_head_attention", "residual_block", "self_attention",
                    "separable_convolution", "shift_convolution",
                    "spatially_separable_convolution", "squeeze_excite"),
    [](const auto &info) { return std::string(info.param); });

} // namespace
