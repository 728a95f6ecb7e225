//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Bytecode.h"
#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace mlir;

static std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

TEST(Bytecode, PassesModulesBetweenContexts) {
  MLIRContext one, two;
  OpBuilder builder(&one);
  Location loc = FileLineColLoc::get(&one, "model.mlir", 1, 2);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder inner = OpBuilder::atBlockEnd(module->getBody());
  auto part = ModuleOp::create(inner, loc, "part");
  part->setAttr("builtin.kept", builder.getF64FloatAttr(0.1));
  OwningOpRef<ModuleOp> copy = readBytecode(writeBytecode(*module), &two);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->getContext(), &two);
  EXPECT_EQ(print(*copy), print(*module));
  EXPECT_TRUE(isa<UnknownLoc>(copy->getLoc()));
  EXPECT_EQ(module->getLoc(), loc);
  // What is no module gets one.
  auto cast = UnrealizedConversionCastOp::create(
      inner, loc, builder.getI32Type(), ValueRange());
  OwningOpRef<ModuleOp> around = readBytecode(writeBytecode(cast), &two);
  ASSERT_TRUE(around);
  EXPECT_EQ(around->getBody()->getOperations().size(), 1u);
}

TEST(Bytecode, RefusesWhatIsNone) {
  MLIRContext context;
  std::string reason;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  std::string bytecode = writeBytecode(*module);
  EXPECT_FALSE(readBytecode(bytecode.substr(0, bytecode.size() / 2), &context));
  EXPECT_NE(reason, "");
}
