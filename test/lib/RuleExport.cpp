//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuleExport.h"
#include "mlir/Dialect/SMT/IR/SMTOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Target/SMTLIB/ExportSMTLIB.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::test;
using namespace mlir;

namespace {
class SolverBuilder {
public:
  SolverBuilder(const Formula &formula, MLIRContext &context)
      : formula(formula), builder(UnknownLoc::get(&context), &context),
        variables(formula.variables.size()) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getLoc());
    builder.setInsertionPointToEnd(module->getBody());
    auto solver = smt::SolverOp::create(builder, TypeRange(), ValueRange());
    builder.setInsertionPointToEnd(&solver.getBodyRegion().emplaceBlock());
    add(formula.one);
    if (!formula.two.claims.empty())
      add(formula.two);
    smt::YieldOp::create(builder);
    return module;
  }

private:
  void add(const Formula::Section &section) {
    for (unsigned number : section.variables)
      variables[number] = smt::DeclareFunOp::create(
          builder, smt::IntType::get(builder.getContext()),
          builder.getStringAttr(formula.variables[number]));
    for (const Constraint &premise : section.premises)
      smt::AssertOp::create(builder, getValue(premise));
    for (const ProductFact &fact : section.facts)
      addFact(fact);
    for (const Claim &claim : section.claims)
      addClaim(claim);
  }

  void addFact(const ProductFact &fact) {
    for (int64_t k = -2; k <= 2; ++k)
      for (int64_t sign : {1, -1}) {
        Polynomial value = (fact.value - k) * sign;
        smt::AssertOp::create(
            builder,
            getValue({Constraint::NonNegative, value * fact.factor, {value}}));
      }
  }

  void addClaim(const Claim &claim) {
    smt::PushOp::create(builder, 1);
    for (const Constraint &constraint : claim.assumed)
      smt::AssertOp::create(builder, getValue(constraint));
    smt::AssertOp::create(
        builder, smt::NotOp::create(builder, getAll(claim.goals)).getResult());
    auto check = smt::CheckOp::create(builder, TypeRange());
    for (Region &region : check->getRegions()) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&region.emplaceBlock());
      smt::YieldOp::create(builder);
    }
    smt::PopOp::create(builder, 1);
  }

  Value getAll(ArrayRef<Constraint> constraints) {
    SmallVector<Value> values;
    for (const Constraint &constraint : constraints)
      values.push_back(getValue(constraint));
    if (values.empty())
      return smt::BoolConstantOp::create(builder, true);
    return values.size() == 1 ? values.front()
                              : smt::AndOp::create(builder, values);
  }

  Value getValue(const Constraint &constraint) {
    Value result = getRelation(constraint.relation, constraint.value);
    if (constraint.when.empty())
      return result;
    SmallVector<Constraint> when;
    for (const Polynomial &value : constraint.when)
      when.push_back({Constraint::NonNegative, value});
    return smt::ImpliesOp::create(builder, getAll(when), result);
  }

  /// Terms with negative coefficients go to the other side, so that there are
  /// no numbers below 0.
  Value getRelation(Constraint::Relation relation, const Polynomial &value) {
    Value left = getSum(value, 1), right = getSum(value, -1);
    switch (relation) {
    case Constraint::NonNegative:
      return smt::IntCmpOp::create(builder, smt::IntPredicate::ge, left, right);
    case Constraint::Zero:
      return smt::EqOp::create(builder, left, right);
    case Constraint::NonZero:
      return smt::NotOp::create(
          builder, smt::EqOp::create(builder, left, right).getResult());
    }
    llvm_unreachable("no other relation");
  }

  /// The terms whose coefficients have the sign, without it.
  Value getSum(const Polynomial &polynomial, int64_t sign) {
    SmallVector<Value> terms;
    for (const auto &[monomial, coefficient] : polynomial.getTerms())
      if (coefficient * sign > 0)
        terms.push_back(getProduct(monomial, coefficient * sign));
    if (terms.empty())
      return getConstant(0);
    return terms.size() == 1
               ? terms.front()
               : smt::IntAddOp::create(builder, terms).getResult();
  }
  Value getProduct(const Polynomial::Monomial &monomial, int64_t coefficient) {
    SmallVector<Value> factors;
    if (coefficient != 1 || monomial.empty())
      factors.push_back(getConstant(coefficient));
    for (unsigned variable : monomial)
      factors.push_back(variables[variable]);
    return factors.size() == 1
               ? factors.front()
               : smt::IntMulOp::create(builder, factors).getResult();
  }
  Value getConstant(int64_t value) {
    return smt::IntConstantOp::create(builder,
                                      builder.getI64IntegerAttr(value));
  }

  const Formula &formula;
  ImplicitLocOpBuilder builder;
  SmallVector<Value> variables;
};
} // namespace

OwningOpRef<ModuleOp> kas::test::getSolver(const Formula &formula,
                                           MLIRContext &context) {
  return SolverBuilder(formula, context).build();
}

LogicalResult kas::test::exportFormula(const Formula &formula,
                                       MLIRContext &context,
                                       llvm::raw_ostream &os) {
  for (const Formula::Section *section : {&formula.one, &formula.two})
    for (const Claim &claim : section->claims)
      os << "; claim: " << claim.name << "\n";
  smt::SMTEmissionOptions options;
  options.inlineSingleUseValues = true;
  return smt::exportSMTLIB(*getSolver(formula, context), os, options);
}
