//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators from their text at several bindings, for tests of sameness.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_SAMENESS_SAMENESSFIXTURE_H
#define KAS_TEST_UNITTESTS_SAMENESS_SAMENESSFIXTURE_H

#include "Fingerprint.h"
#include "Sameness.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace kas::test {

/// Pairs of operators that are known to be the same, or not.
class SamenessTest : public testing::Test {
protected:
  SamenessTest() { context.loadDialect<KasDialect>(); }

  /// The only operator in `kas.operator @name<symbols>(outputs) from
  /// [inputs] {body}` at each binding.
  ConcreteOperators parse(llvm::StringRef signature, llvm::StringRef body) {
    std::string text =
        ("kas.operator @x" + signature + " {\n" + body + "\n}").str();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    OperatorOp op = *module->getOps<OperatorOp>().begin();
    ConcreteOperators result;
    for (const Binding &binding : bindings) {
      EXPECT_TRUE(mlir::succeeded(
          verifyBinding(op, binding, [&] { return op.emitError(); })));
      result.push_back(*makeConcrete(op, binding));
    }
    return result;
  }

  bool areSame(llvm::StringRef a, llvm::StringRef b) {
    bool result = test::areSame(parse(signature, a), parse(signature, b));
    EXPECT_EQ(result, test::areSame(parse(signature, b), parse(signature, a)));
    SamenessClasses classes;
    classes.insert(parse(signature, a));
    EXPECT_EQ(classes.insert(parse(signature, b)).second, !result);
    EXPECT_EQ(haveEqualFingerprints(parse(signature, a), parse(signature, b)),
              result);
    return result;
  }

  /// At all positions, with all nodes distinguished.
  static bool haveEqualFingerprints(const ConcreteOperators &a,
                                    const ConcreteOperators &b) {
    Fingerprinter fingerprinter({0, 0, 4, 1000});
    return llvm::all_of(llvm::zip_equal(a, b), [&](auto pair) {
      auto &[x, y] = pair;
      return fingerprinter.compute(x) == fingerprinter.compute(y);
    });
  }

  mlir::MLIRContext context;
  std::string signature;
  std::vector<Binding> bindings;
};

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_SAMENESS_SAMENESSFIXTURE_H
