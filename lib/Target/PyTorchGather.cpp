//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes any operator in PyTorch by gathering the elements of all points.
// The form for operators that are no contraction: sums of maxima, windows of
// windows that clip. All iterations are there at once as a tensor with a
// dimension for each loop; indices are computed as integers, elements gathered,
// and the dimensions reduced from the last one on. It takes as much memory as
// there are iterations, so it is a definition more than a program.
//
//===----------------------------------------------------------------------===//

#include "Names.h"
#include "PyTorch.h"
#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

namespace {
class GatherWriter {
public:
  GatherWriter(OperatorOp op, llvm::raw_ostream &os)
      : op(op), os(os), nest(getCoordinates(op)) {
    // As in the formula: outputs first, then reductions, which is the order of
    // axes.
    for (auto &[loop, name] : nameLoops(op))
      names.push_back(name);
    for (const Axis &axis : nest.axes)
      ranges.push_back({0, axis.extent - 1});
  }

  void write() {
    writeAxes();
    writeGuards();
    writeProduct();
    // Reductions are the last axes, and the innermost one is the last.
    for (unsigned axis = nest.axes.size(); axis-- > nest.numOutputs;)
      writeReduction(*nest.axes[axis].kind, nest.axes[axis].extent);
    os << "    return " << (hasGuards() ? "torch.where(exists, y, 0)" : "y")
       << "\n";
  }

private:
  bool hasGuards() const { return !nest.guards.empty(); }

  /// Each axis is a tensor that varies along a dimension of its own.
  /// The code: `w = torch.arange(8, device=data.device).reshape(1, 8, 1)`.
  /// PyTorch broadcasts them where they meet.
  void writeAxes() {
    size_t rank = nest.axes.size();
    for (unsigned axis = 0; axis < rank; ++axis) {
      SmallVector<int64_t> shape(rank, 1);
      shape[axis] = nest.axes[axis].extent;
      os << "    " << names[axis] << " = torch.arange("
         << nest.axes[axis].extent << ", device=data.device)";
      if (rank > 1)
        os << ".reshape(" << listNumbers(shape) << ")";
      os << "\n";
    }
    SmallVector<int64_t> shape;
    for (const Axis &axis : nest.axes)
      shape.push_back(axis.extent);
    os << "    shape = (" << listNumbers(shape, /*isTuple=*/true) << ")\n";
  }

  /// A boolean for each iteration, true where all windows are within their
  /// ranges.
  void writeGuards() {
    if (!hasGuards())
      return;
    os << "    # Points at which a window leaves its range do not exist.\n"
       << "    exists = ";
    llvm::interleave(
        nest.guards, os,
        [&](const Guard &guard) {
          std::string value = print(guard.expr);
          os << "(" << value << " >= 0) & (" << value << " < " << guard.extent
             << ")";
        },
        " & ");
    os << "\n    exists = exists.expand(shape)\n";
  }

  /// `y`, one value for each iteration.
  void writeProduct() {
    OperatorShapes shapes = getShapes(op);
    os << "    y = ";
    writeElements("data", nest.data, shapes.data);
    for (auto [index, weight] : llvm::enumerate(nest.weights)) {
      os << " * ";
      writeElements("weight" + Twine(index), weight, shapes.weights[index]);
    }
    os << "\n    y = y.expand(shape)\n";
  }

  /// `data[n, c, w + j - 1]`, with tensors as indices.
  void writeElements(const Twine &tensor, ArrayRef<AffineExpr> indices,
                     ArrayRef<int64_t> shape) {
    os << tensor << '[';
    llvm::interleaveComma(llvm::zip_equal(indices, shape), os,
                          [&](const auto &entry) {
                            auto [index, size] = entry;
                            writeIndex(index, size);
                          });
    os << ']';
  }

  /// Indices of points that do not exist may be anywhere.
  /// They are clamped, and the value is masked later: indexing outside is an
  /// error.
  void writeIndex(AffineExpr index, int64_t size) {
    Interval interval = getInterval(index, ranges);
    std::string text = print(index);
    if (interval.lower >= 0 && interval.upper < size)
      os << text;
    else
      os << "(" << text << ").clamp(0, " << size - 1 << ")";
  }

  std::string print(AffineExpr expr) {
    return printExpr(expr, names, ranges, ExprSyntax::Python);
  }

  /// Over the last dimension. What does not exist is the identity of the
  /// reduction; a reduction of nothing does not exist for the one outside
  /// (docs/reference/dialect.md).
  void writeReduction(ReduceKind kind, int64_t extent) {
    bool isMax = kind == ReduceKind::Max;
    if (hasGuards())
      os << "    y = torch.where(exists, y, "
         << (isMax ? "float(\"-inf\")" : "0") << ")\n";
    os << "    y = y." << (isMax ? "amax" : "sum") << "(-1)";
    if (kind == ReduceKind::Mean)
      os << " / " << extent;
    os << "\n";
    if (hasGuards())
      os << "    exists = exists.any(-1)\n";
  }

  OperatorOp op;
  llvm::raw_ostream &os;
  Coordinates nest;
  SmallVector<std::string> names;
  SmallVector<Interval> ranges;
};
} // namespace

/// Also the fallback of writePyTorch for everything that no contraction
/// computes.
void kas::target::writeTorchGather(OperatorOp op, llvm::raw_ostream &os) {
  GatherWriter(op, os).write();
}
