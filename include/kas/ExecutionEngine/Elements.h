//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors of f32 on the host as elements of 16 bits, as devices keep them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_ELEMENTS_H
#define KAS_EXECUTIONENGINE_ELEMENTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <vector>

namespace kas::execution {

/// The bits of `values` as `f16` or `bf16`, rounded to nearest, ties to even.
std::vector<uint16_t> narrow(llvm::ArrayRef<float> values,
                             llvm::StringRef dtype);

/// The inverse, of as many elements as `values` has.
void widen(llvm::ArrayRef<uint16_t> narrowed, llvm::StringRef dtype,
           llvm::MutableArrayRef<float> values);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_ELEMENTS_H
