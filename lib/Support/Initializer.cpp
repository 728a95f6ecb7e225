//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How values of a tensor are made: the text form of `kas.init`, and filling.
// The values are a function of the seed and of the element's index alone, so
// any thread, order or machine makes the same tensor.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Initializer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <cmath>

using namespace kas;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::StringRef;

/// `name`, or `name(number)`: `normal` means `normal(1)`, `kaiming` takes the
/// fan-in from the shape, `constant` needs its number.
Expected<Initializer> Initializer::parse(StringRef text) {
  auto fail = [&] {
    return llvm::createStringError(
        "expected zeros, ones, constant(V), normal(S), uniform(B), "
        "positive(V) or kaiming(F), got '" +
        text + "'");
  };
  // "kaiming(9)" is "kaiming" and "9)"; without a parenthesis the rest is
  // empty.
  auto [name, rest] = text.split('(');
  bool hasParameter = name.size() != text.size();
  double value = 0;
  if (hasParameter && (!rest.consume_back(")") || rest.getAsDouble(value) ||
                       !std::isfinite(value)))
    return fail();
  auto parameterOr = [&](double other) { return hasParameter ? value : other; };

  if (name == "zeros" && !hasParameter)
    return Initializer{Kind::Constant, 0};
  if (name == "ones" && !hasParameter)
    return Initializer{Kind::Constant, 1};
  if (name == "constant" && hasParameter)
    return Initializer{Kind::Constant, value};
  if (name == "normal" && parameterOr(1) >= 0)
    return Initializer{Kind::Normal, parameterOr(1)};
  if (name == "uniform" && parameterOr(1) >= 0)
    return Initializer{Kind::Uniform, parameterOr(1)};
  if (name == "positive" && parameterOr(1) > 0)
    return Initializer{Kind::Positive, parameterOr(1)};
  if (name == "kaiming" && (!hasParameter || value > 0))
    return Initializer{Kind::Kaiming, parameterOr(0)};
  return fail();
}

/// Tensors of rank 2 or more are usually weights, the others biases: small and
/// not zero, so that an error in how they are added does not stay unseen.
Initializer Initializer::defaultFor(ArrayRef<int64_t> shape) {
  if (shape.size() >= 2)
    return {Kind::Kaiming, 0};
  return {Kind::Normal, 0.1};
}

void Initializer::fill(llvm::MutableArrayRef<float> values,
                       ArrayRef<int64_t> shape,
                       const RandomStream &stream) const {
  // In f32 from here on: the same bits wherever a tensor is filled.
  float factor = static_cast<float>(parameter);
  // He et al., "Delving Deep into Rectifiers", eq. 10: normal with variance 2 /
  // fan-in. The first dimension has the output channels, the product of the
  // others is the fan-in.
  if (kind == Kind::Kaiming) {
    double fanIn = parameter;
    // The text says no fan-in: that of a layer with this weight.
    if (fanIn == 0) {
      fanIn = 1;
      for (int64_t dimension :
           shape.drop_front(std::min<size_t>(1, shape.size())))
        fanIn *= static_cast<double>(std::max<int64_t>(dimension, 1));
    }
    factor = static_cast<float>(std::sqrt(2 / fanIn));
  }
  for (auto [index, value] : llvm::enumerate(values)) {
    // `normal(index)` has variance 1, `uniform(index)` lies in [0, 1).
    switch (kind) {
    case Kind::Constant:
      value = factor;
      break;
    case Kind::Uniform:
      value = factor * (2 * stream.uniform(index) - 1);
      break;
    case Kind::Positive:
      value = factor * (0.5f + stream.uniform(index));
      break;
    case Kind::Normal:
    case Kind::Kaiming:
      value = factor * stream.normal(index);
      break;
    }
  }
}
