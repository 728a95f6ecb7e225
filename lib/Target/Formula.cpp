//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes an operator as a formula.
// The form of the papers: the output is a sum over reductions of the data times
// weights, with coordinates as expressions in outputs and reductions. For
// `kas.conv1d`:
//   Y[n,cout,w] = sum over i<Cin, j<k of X[n,i,w+j-floor(k/2)] * W[cout,i,j]
// Symbols stay symbols. Where a window reaches outside and the data does not
// say so by itself, a condition follows: `; a term counts where 0 <= ... < W`.
//
//===----------------------------------------------------------------------===//

#include "Names.h"
#include "kas/Target/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace kas::target;
using namespace mlir;

namespace {
/// A part of the formula; `isSum` where a factor needs it in parentheses.
struct Term {
  std::string text;
  bool isSum = false;

  std::string asFactor() const { return isSum ? "(" + text + ")" : text; }
};

/// Visits the primitives from the outputs inwards and keeps the term of each
/// coordinate.
class FormulaWriter {
public:
  FormulaWriter(OperatorOp op, llvm::raw_ostream &os) : op(op), os(os) {}

  void write() {
    for (auto &[loop, name] : nameLoops(op))
      terms[loop] = {name};
    for (Operation &primitive : op.getBody().front().without_terminator())
      llvm::TypeSwitch<Operation *>(&primitive)
          .Case<SplitOp, MergeOp, ShiftOp, UnfoldOp, StrideOp, ShareOp>(
              [&](auto each) { add(each); });
    writeTensor("Y", op.getOutputs());
    os << " = ";
    writeReductions();
    // Data and weights in the order of the terminator.
    YieldOp yield = op.getYield();
    writeTensor("X", yield.getData());
    for (auto [index, weight] : llvm::enumerate(yield.getWeights())) {
      os << " * ";
      writeTensor(nameWeight(op, index), weight);
    }
    // Windows reach beyond the data; there is nothing there to add.
    for (auto [index, condition] : llvm::enumerate(conditions))
      os << (index ? ", " : "; a term counts where ") << condition;
  }

private:
  /// A size as text: `C/s`.
  static std::string print(SizeAttr size) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    SmallVector<StringRef> names;
    for (StringAttr name : size.getNames())
      names.push_back(name.getValue());
    printSize(stream, size.getValue(), names);
    return text;
  }
  /// A size that is a factor or a divisor.
  /// In parentheses unless it is a single name or number.
  static std::string printFactor(SizeAttr size) {
    std::string text = print(size);
    return llvm::all_of(text, llvm::isAlnum) ? text : "(" + text + ")";
  }
  /// `size * term`; a size of 1 is left out.
  static std::string multiply(SizeAttr size, const Term &term) {
    std::string factor = printFactor(size);
    return factor == "1" ? term.text : factor + "*" + term.asFactor();
  }

  /// Two loops that become one index: outer * size of inner + inner.
  void add(SplitOp split) {
    const Term &inner = terms[split.getInner()];
    terms[split.getResult()] = {
        multiply(getSize(split.getInner()), terms[split.getOuter()]) + "+" +
            inner.text,
        true};
  }
  /// One index that becomes two: its quotient and remainder by the block.
  void add(MergeOp merge) {
    std::string block = printFactor(merge.getBlock());
    Term whole = terms[merge.getCoord()];
    terms[merge.getQuotient()] = {"floor(" + whole.asFactor() + "/" + block +
                                  ")"};
    terms[merge.getRemainder()] = {whole.asFactor() + " mod " + block, true};
  }
  /// Wraps around within the size.
  void add(ShiftOp shift) {
    int64_t amount = shift.getAmount();
    terms[shift.getResult()] = {
        "(" + terms[shift.getCoord()].text + (amount < 0 ? "-" : "+") +
            std::to_string(std::abs(amount)) + ") mod " +
            printFactor(getSize(shift.getCoord())),
        true};
  }
  /// A window around the coordinate: `i + j - low`. Without `low` it is
  /// centred, and causal windows end at the coordinate.
  void add(UnfoldOp unfold) {
    std::string text =
        terms[unfold.getCoord()].text + "+" + terms[unfold.getWindow()].text;
    Attribute low = unfold.getLowAttr();
    if (!low)
      text += "-floor(" + print(getSize(unfold.getWindow())) + "/2)";
    else if (unfold.isCausal())
      text += "+1-" + printFactor(getSize(unfold.getWindow()));
    else if (auto number = dyn_cast<IntegerAttr>(low); !number)
      text += "-" + printFactor(cast<SizeAttr>(low));
    else if (number.getInt() != 0)
      text += "-" + std::to_string(number.getInt());
    terms[unfold.getResult()] = {text, true};
    // The data says by itself that nothing is outside.
    // After a merge, say, an index outside would be that of another element.
    if (!llvm::is_contained(op.getYield().getData(), unfold.getResult()))
      conditions.push_back("0 <= " + text + " < " +
                           print(getSize(unfold.getResult())));
  }
  void add(StrideOp stride) {
    terms[stride.getResult()] = {
        multiply(stride.getFactor(), terms[stride.getCoord()])};
  }
  /// The same index in the data and in a weight.
  void add(ShareOp share) {
    terms[share.getData()] = terms[share.getWeight()] =
        Term(terms[share.getCoord()]);
  }

  /// `sum over i<C, j<k of `, reductions of one kind together.
  void writeReductions() {
    SmallVector<ReduceOp> reductions = getReductions(op);
    for (auto [index, reduce] : llvm::enumerate(reductions)) {
      bool isNew =
          index == 0 || reductions[index - 1].getKind() != reduce.getKind();
      if (isNew)
        os << stringifyReduceKind(reduce.getKind()) << " over ";
      os << terms[reduce.getResult()].text << "<"
         << print(getSize(reduce.getResult()));
      bool isLast = index + 1 == reductions.size() ||
                    reductions[index + 1].getKind() != reduce.getKind();
      os << (isLast ? " of " : ", ");
    }
  }

  void writeTensor(StringRef name, ValueRange coordinates) {
    os << name << '[';
    llvm::interleave(
        coordinates, os, [&](Value i) { os << terms[i].text; }, ",");
    os << ']';
  }

  OperatorOp op;
  llvm::raw_ostream &os;
  /// The expression of each coordinate seen so far.
  llvm::DenseMap<Value, Term> terms;
  /// `0 <= i < size` for each window.
  SmallVector<std::string> conditions;
};
} // namespace

void kas::target::writeFormula(OperatorOp op, llvm::raw_ostream &os) {
  FormulaWriter(op, os).write();
}
