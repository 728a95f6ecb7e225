//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The grammar of sizes, once, for the dialect's parser and for plain strings:
//
//   size   ::= factor (('*' | '/') factor)*        from left to right
//   factor ::= (integer | symbol | '(' size ')') ('**' integer)?
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_SIZEGRAMMAR_H
#define KAS_SUPPORT_SIZEGRAMMAR_H

#include "kas/Support/Size.h"

namespace kas {

/// Reads a size from `Source`, which provides
///   bool eat(char c)                     takes `c` if it is next,
///   bool integer(int64_t &value)         takes an integer if it is next,
///   bool symbol(Size &size)              takes a symbol if it is next; reports
///                                        an unknown one itself and sets
///                                        failed,
///   std::nullopt_t error(llvm::StringRef message).
/// Parentheses nest at most `depth` deep.
template <typename Source>
std::optional<Size> parseSizeFrom(Source &source, unsigned depth = 16);

namespace detail {

template <typename Source>
std::optional<Size> parseSizeAtom(Source &source, unsigned depth) {
  if (int64_t value = 0; source.integer(value)) {
    if (value < 1)
      return source.error("a size must be at least 1");
    if (std::optional<Size> size = Size::constant(value))
      return size;
    return source.error("size constant is too large");
  }
  if (source.eat('(')) {
    if (depth == 0)
      return source.error("parentheses nest too deeply in a size");
    std::optional<Size> inner = parseSizeFrom(source, depth - 1);
    if (inner && !source.eat(')'))
      return source.error("expected ')' in a size");
    return inner;
  }
  Size symbol;
  if (source.symbol(symbol))
    return symbol;
  if (source.failed)
    return std::nullopt;
  return source.error("expected a size: an integer, a symbol or '('");
}

/// `star` tells whether one '*' was taken that does not belong to this factor.
template <typename Source>
std::optional<Size> parseSizeFactor(Source &source, unsigned depth,
                                    bool &star) {
  star = false;
  std::optional<Size> size = parseSizeAtom(source, depth);
  while (size && source.eat('*')) {
    if (!source.eat('*')) {
      star = true;
      break;
    }
    int64_t exponent = 0;
    if (!source.integer(exponent) || exponent < 1)
      return source.error("expected a positive integer after '**'");
    size = exponent <= 127 ? size->power(exponent) : std::nullopt;
    if (!size)
      return source.error("size exponent or constant is too large");
  }
  return size;
}

} // namespace detail

template <typename Source>
std::optional<Size> parseSizeFrom(Source &source, unsigned depth) {
  bool star = false;
  std::optional<Size> size = detail::parseSizeFactor(source, depth, star);
  while (size && (star || source.eat('/'))) {
    bool multiply = star;
    std::optional<Size> factor = detail::parseSizeFactor(source, depth, star);
    if (!factor)
      return std::nullopt;
    size = multiply ? size->multiply(*factor) : size->divide(*factor);
    if (!size)
      return source.error("size exponent or constant is too large");
  }
  return size;
}

} // namespace kas

#endif // KAS_SUPPORT_SIZEGRAMMAR_H
