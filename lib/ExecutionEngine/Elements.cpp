//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounds f32 values to f16 and bf16, and widens them.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Elements.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

using llvm::StringRef;

/// `dtype` is `f16` or `bf16`.
static const llvm::fltSemantics &getSemantics(StringRef dtype) {
  return dtype == "f16" ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
}

// To nearest, ties to even, as devices round. Too large values become infinity.
std::vector<uint16_t> kas::execution::narrow(llvm::ArrayRef<float> values,
                                             StringRef dtype) {
  std::vector<uint16_t> narrowed;
  narrowed.reserve(values.size());
  for (float value : values) {
    llvm::APFloat number(value);
    bool losesInfo;
    number.convert(getSemantics(dtype), llvm::APFloat::rmNearestTiesToEven,
                   &losesInfo);
    narrowed.push_back(
        static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue()));
  }
  return narrowed;
}

// Exact: every f16 and bf16 is a value of f32.
void kas::execution::widen(llvm::ArrayRef<uint16_t> narrowed, StringRef dtype,
                           llvm::MutableArrayRef<float> values) {
  for (auto [from, to] : llvm::zip_equal(narrowed, values)) {
    llvm::APFloat number(getSemantics(dtype), llvm::APInt(16, from));
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    to = number.convertToFloat();
  }
}
