//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers `kas.dropout` to linalg. Its random words are those of Philox4x32
// (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
// Philox is counter-based: each element computes its own word from its
// position, so that any order, tiling or number of threads draws the same, and
// the gradient draws again instead of keeping a mask.
//
//===----------------------------------------------------------------------===//

#include "kas/Conversion/Dropout.h"
#include "kas/Conversion/TensorEmitter.h"
#include "kas/Support/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace kas;
using namespace kas::scalars;

/// A probability of 1 would be 2^32, which does not fit: one word in 2^32
/// stays.
uint32_t kas::getDropoutBound(double probability) {
  return uint32_t(std::min(std::llround(probability * 0x1p32), 0xffffffffll));
}

namespace {

/// Philox4x32 on values of i32.
class PhiloxEmitter {
public:
  PhiloxEmitter(OpBuilder &builder, Location loc)
      : builder(builder), loc(loc) {}

  Value constant(uint32_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getI32IntegerAttr(int32_t(value)));
  }
  /// The first word.
  /// One of the four words of a block is used; the other three are dropped,
  /// which keeps elements independent of their neighbours.
  Value draw(std::array<Value, 4> counter, std::array<Value, 2> key);

private:
  /// a xor b xor c.
  Value combine(Value a, Value b, Value c) {
    return arith::XOrIOp::create(builder, loc,
                                 arith::XOrIOp::create(builder, loc, a, b), c);
  }

  OpBuilder &builder;
  Location loc;
};

} // namespace

Value PhiloxEmitter::draw(std::array<Value, 4> counter,
                          std::array<Value, 2> key) {
  // The same rounds as `Philox4x32` of Support, which tests compare with.
  for (unsigned round = 0; round < Philox4x32::numRounds; ++round) {
    auto first = arith::MulUIExtendedOp::create(
        builder, loc, counter[0], constant(Philox4x32::multipliers[0]));
    auto second = arith::MulUIExtendedOp::create(
        builder, loc, counter[2], constant(Philox4x32::multipliers[1]));
    counter = {combine(second.getHigh(), counter[1], key[0]), second.getLow(),
               combine(first.getHigh(), counter[3], key[1]), first.getLow()};
    for (unsigned word = 0; word < 2; ++word)
      key[word] = arith::AddIOp::create(builder, loc, key[word],
                                        constant(Philox4x32::keySteps[word]));
  }
  return counter[0];
}

/// The position of the element of a tensor of `shape` that a body is at, in
/// row-major order, as i64.
/// Horner's rule over the dimensions; 64 bits, of which the counter takes two
/// words.
static Value emitPosition(OpBuilder &builder, Location loc,
                          ArrayRef<int64_t> shape) {
  Value position = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto [dimension, size] : llvm::enumerate(shape)) {
    Value extent = arith::ConstantIndexOp::create(builder, loc, size);
    position = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, position, extent),
        linalg::IndexOp::create(builder, loc, dimension));
  }
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    position);
}

/// The bits of a float as f32.
/// Seeds are floats, because all arguments of a training step are tensors of
/// floats; their bits are the key, so that different numbers give different
/// keys.
static Value emitKey(OpBuilder &builder, Location loc, Value number) {
  if (number.getType().isF64())
    number =
        arith::TruncFOp::create(builder, loc, builder.getF32Type(), number);
  return arith::BitcastOp::create(builder, loc, builder.getI32Type(), number);
}

void kas::lowerDropout(RewriterBase &rewriter, DropoutOp op) {
  // Evaluation: dropout is the identity.
  if (!op.getSeed()) {
    rewriter.replaceOp(op, op.getData());
    return;
  }
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  double probability = op.getProbability().convertToDouble();
  uint32_t bound = getDropoutBound(probability);
  auto all = llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
  SmallVector<TensorWithoutDims> inputs{{op.getData(), {}}};
  auto seedType = cast<RankedTensorType>(op.getSeed().getType());
  // The seed is a tensor of two elements; each is a scalar operand of the body,
  // without any of the loops' dimensions.
  for (int64_t word : {0, 1}) {
    OpFoldResult at = rewriter.getIndexAttr(word),
                 one = rewriter.getIndexAttr(1);
    inputs.push_back(
        {tensor::ExtractSliceOp::create(
             rewriter, loc,
             RankedTensorType::get({}, seedType.getElementType()), op.getSeed(),
             ArrayRef{at}, ArrayRef{one}, ArrayRef{one}),
         all});
  }
  Value result =
      TensorEmitter(rewriter, loc, type)
          .map(inputs,
               [&](OpBuilder &builder, Location loc, ValueRange v) -> Value {
                 PhiloxEmitter philox(builder, loc);
                 Type word = builder.getI32Type();
                 Value position = emitPosition(builder, loc, type.getShape());
                 Value low =
                     arith::TruncIOp::create(builder, loc, word, position);
                 Value half = arith::ConstantOp::create(
                     builder, loc, builder.getI64IntegerAttr(32));
                 Value high = arith::TruncIOp::create(
                     builder, loc, word,
                     arith::ShRUIOp::create(builder, loc, position, half));
                 // Counter: position (two words), stream of this op, 0. The
                 // stream tells dropouts of one step apart.
                 Value drawn =
                     philox.draw({low, high, philox.constant(*op.getStream()),
                                  philox.constant(0)},
                                 {emitKey(builder, loc, v[1]),
                                  emitKey(builder, loc, v[2])});
                 Value stays = arith::CmpIOp::create(
                     builder, loc, arith::CmpIPredicate::uge, drawn,
                     philox.constant(bound));
                 // Inverted dropout: the expected value stays, so evaluation
                 // needs no factor.
                 return arith::SelectOp::create(
                     builder, loc, stays,
                     scale(builder, loc, v[0], 1 / (1 - probability)),
                     makeConstant(builder, loc, v[0].getType(), 0));
               });
  rewriter.replaceOp(op, result);
}
