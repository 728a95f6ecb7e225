//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library of named operators as text: names, comments, documentation page,
// and that printing and parsing are inverse.
//
//===----------------------------------------------------------------------===//

#include "kas/Library/Operators.h"
#include "Formulas.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <set>

using namespace kas;
using namespace kas::library;
using namespace mlir;

static std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

/// `N, Cin | k`: the declared symbols as they are in the text.
static std::string getSignature(OperatorOp op) {
  auto join = [](ArrayAttr names) {
    return llvm::join(
        llvm::map_range(names.getAsValueRange<StringAttr>(),
                        [](StringRef name) { return name.str(); }),
        ", ");
  };
  std::string signature = join(op.getPrimaries());
  if (!op.getCoefficients().empty())
    signature += " | " + join(op.getCoefficients());
  return signature;
}

TEST(Operators, AreSortedByName) {
  EXPECT_GE(getNamedOperators().size(), 30u);
  for (auto [before, after] : llvm::zip(getNamedOperators().drop_back(),
                                        getNamedOperators().drop_front()))
    EXPECT_LT(before.name, after.name);
}

TEST(Operators, AreFoundUnderBothSpellings) {
  for (const NamedOperator &op : getNamedOperators()) {
    EXPECT_EQ(lookupNamedOperator(op.name), &op);
    EXPECT_EQ(lookupNamedOperator(("kas." + op.name).str()), &op);
  }
  for (StringRef unknown :
       {"", "kas.", "kas.kas.conv2d", "conv2", "conv2d ", "Conv2d", "zzz"})
    EXPECT_EQ(lookupNamedOperator(unknown), nullptr) << unknown.str();
}

TEST(Operators, SayWhatTheyAreAndWhereFrom) {
  for (const NamedOperator &op : getNamedOperators()) {
    SCOPED_TRACE(op.name.str());
    EXPECT_TRUE(StringRef(op.getTitle()).ends_with("."));
    EXPECT_TRUE(StringRef(op.getFormula()).starts_with("Y["));
    EXPECT_TRUE(StringRef(op.getFormula()).contains(" = "));
    EXPECT_TRUE(StringRef(op.getSource()).ends_with("."));
  }
  EXPECT_EQ(lookupNamedOperator("matmul")->getTitle(),
            "Product of two matrices.");
  EXPECT_EQ(lookupNamedOperator("matmul")->getFormula(),
            "Y[m,n] = sum over k<K of X[m,k] * W[k,n]");
  EXPECT_EQ(lookupNamedOperator("matmul")->getSource(),
            "textbook; the operand order of linalg.matmul.");
}

TEST(Operators, ParseOneByOne) {
  MLIRContext context;
  for (const NamedOperator &named : getNamedOperators()) {
    SCOPED_TRACE(named.name.str());
    OwningOpRef<ModuleOp> module =
        parseNamedOperator(&context, ("kas." + named.name).str());
    ASSERT_TRUE(module);
    auto op = module->lookupSymbol<OperatorOp>(named.name);
    ASSERT_TRUE(op);
    EXPECT_EQ(&module->getBody()->front(), op.getOperation());
    EXPECT_EQ(&module->getBody()->back(), op.getOperation());
  }
  EXPECT_FALSE(parseNamedOperator(&context, "kas.unknown"));
}

TEST(Operators, ParseAllInOrder) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseNamedOperators(&context);
  ASSERT_TRUE(succeeded(verify(*module)));
  std::vector<StringRef> parsed, names;
  for (auto op : module->getOps<OperatorOp>())
    parsed.push_back(op.getSymName());
  for (const NamedOperator &op : getNamedOperators())
    names.push_back(op.name);
  EXPECT_EQ(parsed, names);
}

TEST(Operators, PrintAndParseAreInverse) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseNamedOperators(&context);
  for (auto op : module->getOps<OperatorOp>()) {
    std::string text = print(op);
    OwningOpRef<ModuleOp> again =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(print(&again->getBody()->front()), text);
  }
}

TEST(Operators, StandOnTheirPage) {
  auto page = llvm::MemoryBuffer::getFile(KAS_OPERATORS_PAGE);
  ASSERT_TRUE(page);
  SmallVector<StringRef> lines;
  (*page)->getBuffer().split(lines, '\n');
  std::set<std::string> rows;
  for (StringRef line : lines)
    if (line.starts_with("| `kas."))
      rows.insert(line.str());

  MLIRContext context;
  OwningOpRef<ModuleOp> module = parseNamedOperators(&context);
  std::set<std::string> expected;
  for (const NamedOperator &named : getNamedOperators()) {
    auto op = module->lookupSymbol<OperatorOp>(named.name);
    std::string signature = getSignature(op);
    if (size_t bar = signature.find('|'); bar != std::string::npos)
      signature.insert(bar, "\\");
    expected.insert("| `kas." + named.name.str() + "` | `" + signature +
                    "` | " + named.getTitle() + " `" + named.getFormula() +
                    "` | " + named.getSource() + " |");
  }
  EXPECT_EQ(rows, expected);
}

TEST(Operators, HaveFormulasAtTwoBindingsOneOfThemOdd) {
  std::set<std::string> names, covered;
  for (const NamedOperator &op : getNamedOperators())
    names.insert(op.name.str());
  for (const formulas::Formula &formula : formulas::getFormulas()) {
    SCOPED_TRACE(formula.name);
    EXPECT_TRUE(covered.insert(formula.name).second);
    EXPECT_GE(formula.bindings.size(), 2u);
    EXPECT_TRUE(llvm::any_of(formula.bindings, [](const formulas::Sizes &z) {
      return llvm::all_of(ArrayRef<int64_t>{z.H, z.W, z.L, z.M, z.K},
                          [](int64_t extent) { return !extent || extent % 2; });
    }));
  }
  EXPECT_EQ(covered, names);
}
