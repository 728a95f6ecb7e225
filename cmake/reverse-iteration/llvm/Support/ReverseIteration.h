//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces LLVM's header of that name where KAS_REVERSE_ITERATION is on.
// LLVM chooses the direction of its hash containers when it is built itself,
// for keys that are pointers. Here DenseMap, DenseSet and SmallPtrSet of our
// own code go backwards, whatever their keys are, in each process that starts
// with the environment variable KAS_REVERSE_ITERATION. The two headers of
// these containers are patched for it (cmake/modules/ReverseIteration.cmake).
//
//===----------------------------------------------------------------------===//

#ifndef LLVM_SUPPORT_REVERSEITERATION_H
#define LLVM_SUPPORT_REVERSEITERATION_H

#include "llvm/ADT/iterator_range.h"
#include "llvm/Config/abi-breaking.h"
#include "llvm/Support/Compiler.h"
#include "llvm/Support/PointerLikeTypeTraits.h"
#include <cstddef>
#include <cstdlib>
#include <type_traits>

namespace llvm {

namespace json {
class ObjectKey;
} // namespace json

/// Whether the variable reverses containers with keys of this type. It does not
/// reverse json::Object, which is written in the order of its keys anyway and
/// goes back and forth between our code and LLVM's.
template <class T = void *>
constexpr bool shouldReverseIterate() {
  return !std::is_same_v<T, json::ObjectKey>;
}

/// -1 if KAS_REVERSE_ITERATION is set in the environment, else 0. Hidden, so
/// that no table of the loader is read before it.
LLVM_LIBRARY_VISIBILITY inline const std::ptrdiff_t reverseIterationOffset =
    std::getenv("KAS_REVERSE_ITERATION") ? -1 : 0;

/// An iterator over an array that goes forwards, as a pointer, or backwards, as
/// a std::reverse_iterator, which is kept one element past what it refers to.
/// It has the size and the layout of both.
template <typename PointerT>
class TwoWayPointer {
public:
  using Reference = std::remove_pointer_t<PointerT> &;

  TwoWayPointer() = default;
  explicit TwoWayPointer(PointerT base) : base(base) {}
  template <typename OtherT, typename = std::enable_if_t<
                                 std::is_convertible_v<OtherT, PointerT>>>
  TwoWayPointer(TwoWayPointer<OtherT> other) : base(other.getBase()) {}

  PointerT getBase() const { return base; }
  Reference operator*() const { return base[reverseIterationOffset]; }
  PointerT operator->() const { return base + reverseIterationOffset; }
  TwoWayPointer &operator++() {
    base += 2 * reverseIterationOffset + 1;
    return *this;
  }

  bool operator==(TwoWayPointer other) const { return base == other.base; }
  bool operator!=(TwoWayPointer other) const { return base != other.base; }
  bool operator<(TwoWayPointer other) const {
    return reverseIterationOffset ? other.base < base : base < other.base;
  }
  bool operator<=(TwoWayPointer other) const { return !(other < *this); }

private:
  PointerT base = nullptr;
};

/// The elements of an array in the direction of this process.
template <typename PointerT>
iterator_range<TwoWayPointer<PointerT>>
getTwoWayRange(iterator_range<PointerT> range) {
  TwoWayPointer<PointerT> begin(range.begin()), end(range.end());
  return reverseIterationOffset ? make_range(end, begin)
                                : make_range(begin, end);
}

} // namespace llvm

#endif // LLVM_SUPPORT_REVERSEITERATION_H
