//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text of tensor-level ops, and what is verified beside their shapes.
// Constraints are D1 to D20 of docs/reference/tensor-level.md; those on shapes
// are in KasDagShapes.cpp, those that look at the whole kernel in
// KasKernel.cpp.
//
//===----------------------------------------------------------------------===//

#include "KasDagShapes.h"
#include "KasSyntax.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

// Overloads of what KasSyntax.h has, for the generated code in this namespace.
namespace kas {

/// `[C, KH | H, W]` as a directive of an assembly format.
static ParseResult parseTensorShape(OpAsmParser &parser, Type &type) {
  FailureOr<SymbolicTensorType> parsed = kas::parseTensorShape(parser);
  if (failed(parsed))
    return failure();
  type = *parsed;
  return success();
}

static void printTensorShape(OpAsmPrinter &printer, Operation *,
                             SymbolicTensorType type) {
  kas::printTensorShape(printer, type);
}

/// `[3, k, C/G]`.
static ParseResult parseSizeList(OpAsmParser &parser, ArrayAttr &sizes) {
  SmallVector<Attribute> list;
  auto parseSize = [&]() -> ParseResult {
    SizeAttr size;
    if (parseBareSize(parser, size))
      return failure();
    list.push_back(size);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
    return failure();
  sizes = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printSizeList(OpAsmPrinter &printer, Operation *, ArrayAttr sizes) {
  printer << '[';
  llvm::interleaveComma(
      sizes.getAsRange<SizeAttr>(), printer,
      [&](SizeAttr size) { kas::printBareSize(printer, size); });
  printer << ']';
}

/// `<Cin = C, k = 3>`: a size for each symbol; nothing when there are none.
static ParseResult parseSizeBinding(OpAsmParser &parser, ArrayAttr &symbols,
                                    ArrayAttr &sizes) {
  SmallVector<Attribute> names, list;
  auto parseEntry = [&]() -> ParseResult {
    StringRef name;
    SizeAttr size;
    if (parser.parseKeyword(&name) || parser.parseEqual() ||
        parseBareSize(parser, size))
      return failure();
    names.push_back(parser.getBuilder().getStringAttr(name));
    list.push_back(size);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalLessGreater,
                                     parseEntry))
    return failure();
  symbols = parser.getBuilder().getArrayAttr(names);
  sizes = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printSizeBinding(OpAsmPrinter &printer, DagApplyOp op, ArrayAttr,
                             ArrayAttr) {
  if (op.getSymbols().empty())
    return;
  printer << '<';
  llvm::interleaveComma(llvm::zip(op.getSymbols().getAsRange<StringAttr>(),
                                  op.getSizes().getAsRange<SizeAttr>()),
                        printer, [&](auto entry) {
                          printer << std::get<0>(entry).getValue() << " = ";
                          kas::printBareSize(printer, std::get<1>(entry));
                        });
  printer << '>';
}

} // namespace kas

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasDagOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult DagShiftOp::verify() {
  // D4, as far as the text decides it.
  if (getAmount() == 0)
    return emitOpError("requires a shift amount d with 0 < |d| (D4), got 0");
  if (int64_t amount = getAmount(); getCausal() && amount > 0)
    return emitOpError("requires a negative shift amount for a causal shift "
                       "(D20), got ")
           << amount;
  return success();
}

/// At 1 nothing would be left to scale.
LogicalResult DagDropoutOp::verify() {
  // D14; a rate that is NaN fails both.
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError("requires a rate from 0 to below 1 (D14), got ")
           << getRateAttr();
  return success();
}

LogicalResult DagOutputOp::verify() {
  if (getCopies().has_value() != getChannels().has_value())
    return emitOpError("requires the number of blocks and their channels, or "
                       "neither, got one of them");
  return success();
}

static SymbolicTensorType getResultType(DagOutputOp op) {
  return cast<SymbolicTensorType>(
      op->getParentOfType<KernelOp>().getResultType());
}

/// What the input is viewed as: the result's dimensions, or with `average`
/// [copies, channels of a block | spatial...].
SmallVector<SizeAttr> DagOutputOp::getViewedDims() {
  SymbolicTensorType type = ::getResultType(*this);
  if (!getCopies())
    return SmallVector<SizeAttr>(type.getDims());
  SmallVector<SizeAttr> dims = {*getCopies(), *getChannels()};
  llvm::append_range(dims, type.getSpatialDims());
  return dims;
}

/// Blocks of channels in the result; null when that does not fit.
SizeAttr DagOutputOp::getNumBlocks() {
  SizeAttr channels =
      getProduct(getContext(), ::getResultType(*this).getChannelDims());
  return channels ? channels.divide(*getChannels()) : SizeAttr();
}
