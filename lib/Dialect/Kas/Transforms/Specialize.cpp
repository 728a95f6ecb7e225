//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes concrete copies of operators: every size becomes its value at a
// binding.
// All later passes see numbers, and never a binding
// (docs/internals/one-operator-six-forms.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Dialect/Kas/IR/NamedOperator.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace kas;

namespace kas {
#define GEN_PASS_DEF_KASSPECIALIZEPASS
#include "kas/Dialect/Kas/Transforms/Passes.h.inc"
} // namespace kas

/// The result is verified by construction: sizes are those that `verifyBinding`
/// has accepted, and constants stay constants.
FailureOr<OperatorOp> kas::specialize(OpBuilder &builder, OperatorOp op,
                                      const Binding &binding, StringRef name,
                                      EmitErrorFn emitError) {
  if (failed(verifyBinding(op, binding, emitError)))
    return failure();
  SymbolSet symbols = op.getSymbolSet();
  // Replaces sizes wherever they are: in attributes of primitives and in types
  // of coordinates.
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SizeAttr size) -> std::pair<Attribute, WalkResult> {
        return {SizeAttr::getConstant(size.getContext(),
                                      *kas::evaluate(size, symbols, binding)),
                WalkResult::skip()};
      });
  auto concrete = cast<OperatorOp>(builder.clone(*op));
  replacer.recursivelyReplaceElementsIn(concrete, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  concrete.setSymName(name);
  concrete.setPrimariesAttr(builder.getArrayAttr({}));
  concrete.setCoefficientsAttr(builder.getArrayAttr({}));
  return concrete;
}

namespace {
/// Makes concrete operators in one symbol table, each distinct one once.
/// Keyed by operator and binding, so that equal layers share an operator.
class Specializer {
public:
  explicit Specializer(Operation *root) : symbolTable(root) {}

  /// The operator itself when it is concrete already.
  FailureOr<OperatorOp> get(OperatorOp op, const Binding &binding,
                            EmitErrorFn emitError) {
    if (op.isConcrete())
      return op;
    OperatorOp &concrete =
        made[{op.getOperation(), {binding.begin(), binding.end()}}];
    if (concrete)
      return concrete;
    OpBuilder builder(op.getContext());
    FailureOr<OperatorOp> result =
        specialize(builder, op, binding, op.getSymName(), emitError);
    if (failed(result))
      return failure();
    concrete = *result;
    // Nothing outside of the module refers to it, so it may go when unused.
    concrete.setPrivate();
    unsigned counter = 0;
    concrete.setSymName(SymbolTable::generateSymbolName<128>(
        op.getSymName(),
        [&](StringRef name) { return symbolTable.lookup(name) != nullptr; },
        counter));
    // Copies follow their operator in the order in which they are requested.
    Operation *&last = lastMade.try_emplace(op, op).first->second;
    symbolTable.insert(concrete, std::next(last->getIterator()));
    last = concrete;
    return concrete;
  }

  unsigned getNumMade() const { return made.size(); }

private:
  SymbolTable symbolTable;
  /// Looked up only, never iterated over: the pointers order nothing.
  std::map<std::pair<Operation *, std::vector<int64_t>>, OperatorOp> made;
  /// After which op the next concrete one of an operator goes.
  llvm::DenseMap<Operation *, Operation *> lastMade;
};
} // namespace

/// The binding is inferred from types and attributes, then dropped.
static LogicalResult specializeApplies(Operation *root,
                                       Specializer &specializer) {
  WalkResult result = root->walk([&](ApplyOp apply) {
    OperatorOp op = apply.getOperator();
    auto emitError = [&] { return apply.emitOpError(); };
    if (!op) {
      emitError() << "requires a kas.operator, got '@" << apply.getCallee()
                  << "'";
      return WalkResult::interrupt();
    }
    if (op.isConcrete())
      return WalkResult::advance();
    FailureOr<Binding> binding = inferBinding(apply, op, emitError);
    if (failed(binding))
      return WalkResult::interrupt();
    FailureOr<OperatorOp> concrete = specializer.get(op, *binding, emitError);
    if (failed(concrete))
      return WalkResult::interrupt();
    apply.setCallee(concrete->getSymName());
    apply.setBindingAttr(BindingAttr::getNormal(apply.getContext(), {}));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

FailureOr<unsigned> kas::specializeApplies(Operation *root) {
  Specializer specializer(root);
  if (failed(::specializeApplies(root, specializer)))
    return failure();
  return specializer.getNumMade();
}

namespace {
/// Operators with symbols stay in the module: they are what was written, and
/// -kas-erase-operators removes them once nothing applies an operator.
struct KasSpecializePass
    : public kas::impl::KasSpecializePassBase<KasSpecializePass> {
  using KasSpecializePassBase::KasSpecializePassBase;

  /// The options `operator` and `bind`: one operator that nothing applies.
  LogicalResult specializeNamed(Specializer &specializer) {
    Operation *root = getOperation();
    auto named = getNamedOperator(root, operatorName, llvm::join(bind, ","));
    if (failed(named))
      return failure();
    auto [op, binding] = *named;
    return specializer.get(op, binding,
                           [&] { return mlir::emitError(root->getLoc()); });
  }

  void runOnOperation() override {
    if (!getOperation()->hasTrait<OpTrait::SymbolTable>()) {
      mlir::emitError(getOperation()->getLoc(),
                      "requires an op with a symbol table");
      return signalPassFailure();
    }
    Specializer specializer(getOperation());
    if ((!operatorName.empty() && failed(specializeNamed(specializer))) ||
        failed(specializeApplies(getOperation(), specializer)))
      return signalPassFailure();
    numSpecialized += specializer.getNumMade();
  }
};
} // namespace
