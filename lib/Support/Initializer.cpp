//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How values of a tensor are made: the text form of `kas.init`, and filling.
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

Expected<Initializer> Initializer::parse(StringRef text) {
  auto fail = [&] {
    return llvm::createStringError(
        "expected zeros, ones, constant(V), normal(S), uniform(B), "
        "positive(V) or kaiming(F), got '" +
        text + "'");
  };
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

Initializer Initializer::defaultFor(ArrayRef<int64_t> shape) {
  if (shape.size() >= 2)
    return {Kind::Kaiming, 0};
  return {Kind::Normal, 0.1};
}

void Initializer::fill(llvm::MutableArrayRef<float> values,
                       ArrayRef<int64_t> shape,
                       const RandomStream &stream) const {
  float factor = static_cast<float>(parameter);
  if (kind == Kind::Kaiming) {
    double fanIn = parameter;
    if (fanIn == 0) {
      fanIn = 1;
      for (int64_t dimension :
           shape.drop_front(std::min<size_t>(1, shape.size())))
        fanIn *= static_cast<double>(std::max<int64_t>(dimension, 1));
    }
    factor = static_cast<float>(std::sqrt(2 / fanIn));
  }
  for (auto [index, value] : llvm::enumerate(values)) {
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
