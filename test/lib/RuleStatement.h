//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rules as text: two operators that are the same, and why.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RULESTATEMENT_H
#define KAS_TEST_LIB_RULESTATEMENT_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IntegerSet.h"

namespace kas::test {

/// A rule `module @NAME` says that the operators `@before` and `@after` in it
/// are the same at all sizes (docs/internals/proofs.md). Sizes are products of
/// symbols, without denominators: `from [N*b]` with a merge by b instead of
/// `from [N]` with N/b.
struct RuleStatement {
  mlir::ModuleOp module;
  llvm::StringRef name;
  OperatorOp before, after;
  /// From the axes of `before` (its outputs, then its reductions) to those of
  /// `after`, which it yields as data; made of splits, merges and shifts, so
  /// that it is a bijection, and of expands, which drop axes. Null: the axes
  /// are the same.
  OperatorOp map;
  /// What is required of the amounts of shifts (its dimensions) and of the
  /// symbols of `before` (its symbols, in their order).
  std::optional<mlir::IntegerSet> condition;
  /// Elements of weights may have other places: those of one weight of `before`
  /// are those of one of `after` by a bijection. Otherwise they stay where they
  /// are.
  bool renamesWeights = false;
  /// Weights of `before`: the first is none in `after`, since its element
  /// follows from that of the second.
  llvm::SmallVector<std::pair<unsigned, unsigned>> absorbed;
  /// The weight of `before` that is summed over the axes that `map` drops.
  std::optional<unsigned> summed;
  /// Sizes to look at instead of all.
  BindingAttr sizes;
  /// Numbers for symbols in the instance that -kas-canonicalize is tested with.
  BindingAttr instance;
  /// The amounts of shifts there: a number for each that the rule leaves open.
  llvm::ArrayRef<int64_t> amounts;
};

/// The rules of a file: the modules in it. One that is alone in its file is
/// what the parser returns.
llvm::SmallVector<mlir::ModuleOp> getRules(mlir::ModuleOp file);

/// The weights of `before` that `after` has, with their numbers there.
llvm::SmallVector<std::pair<unsigned, unsigned>>
getKeptWeights(RuleStatement rule);

/// The amount of `shift` as a sum of products of the dimensions and symbols of
/// its attribute `expression`; null when it has none, and the number counts.
mlir::AffineExpr getSymbolicAmount(ShiftOp shift);

/// The rule of `module` or, with `nearMiss`, what the module `@near_miss` in it
/// has instead: operators and attributes that it does not have are those of
/// the rule. Reports what is wrong.
mlir::FailureOr<RuleStatement> getStatement(mlir::ModuleOp module,
                                            bool nearMiss = false);

/// The operator with the numbers of `rule.instance` for symbols and those of
/// `rule.amounts` for the amounts of shifts, without attributes, called like
/// the rule: in a new module. Reports a shift whose amount is no number then.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
getInstance(RuleStatement rule, OperatorOp op);

/// Reports a shift of `op` whose amount in the text is not that of the
/// instance.
mlir::LogicalResult verifyInstance(RuleStatement rule, OperatorOp op);

} // namespace kas::test

#endif // KAS_TEST_LIB_RULESTATEMENT_H
