//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces LLVM's header of that name where KAS_REVERSE_ITERATION is on:
// LLVM has the switch when it is built itself, for keys that are pointers; here
// DenseMap, DenseSet and SmallPtrSet of our own code go backwards whatever
// their keys are.
//
//===----------------------------------------------------------------------===//

#ifndef LLVM_SUPPORT_REVERSEITERATION_H
#define LLVM_SUPPORT_REVERSEITERATION_H

#include "llvm/Config/abi-breaking.h"
#include "llvm/Support/PointerLikeTypeTraits.h"
#include <type_traits>

namespace llvm {

namespace json {
class ObjectKey;
} // namespace json

/// json::Object has inline functions on its map while its types are incomplete;
/// it is written in the order of its keys anyway.
template <class T = void *>
constexpr bool shouldReverseIterate() {
  return !std::is_same_v<T, json::ObjectKey>;
}

} // namespace llvm

#endif // LLVM_SUPPORT_REVERSEITERATION_H
