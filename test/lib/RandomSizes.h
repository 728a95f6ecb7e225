//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The symbols of a random operator with their values, and sizes over them: what
// the generator of random operators draws from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_RANDOMSIZES_H
#define KAS_TEST_LIB_RANDOMSIZES_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Builders.h"
#include <iterator>

namespace kas::test {

class RandomSizes {
public:
  /// Draws symbols. The values of the primary ones grow with `maxExtent`, which
  /// is at least 12; no product that `fits` has more than `maxPoints` / 4.
  RandomSizes(mlir::MLIRContext *context, uint64_t seed, int64_t maxExtent,
              int64_t maxPoints);

  //===--------------------------------------------------------------------===//
  // Dice
  //===--------------------------------------------------------------------===//

  uint64_t below(uint64_t bound) { return random.below(bound); }
  bool chance(unsigned percent) { return below(100) < percent; }

  template <typename Range>
  auto pick(const Range &range) {
    return range[below(std::size(range))];
  }

  template <typename Container>
  void shuffle(Container &container) {
    for (size_t i = container.size(); i > 1; --i)
      std::swap(container[i - 1], container[below(i)]);
  }

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  const Binding &getBinding() const { return binding; }
  mlir::ArrayAttr getNames(SymbolKind kind) const;

  std::optional<int64_t> valueOf(const Size &size) const {
    return size.evaluate(binding);
  }
  Size sizeOf(mlir::Value coordinate) const {
    return *getSize(coordinate).toSize(symbols);
  }
  int64_t extentOf(mlir::Value coordinate) const {
    return *valueOf(sizeOf(coordinate));
  }
  SizeAttr toAttr(const Size &size) const {
    return SizeAttr::getNormal(context, size, symbols);
  }

  /// A size whose value is at most `limit`.
  Size drawSize(int64_t limit);

  /// Whether neither the product nor its value is too large for a coordinate.
  bool fits(const std::optional<Size> &product) const;

  /// By which a coordinate of `size` can be merged.
  llvm::SmallVector<Size> getBlocks(const Size &size) const;
  /// Blocks of one or of everything are legal, but say little.
  llvm::SmallVector<Size> getProperBlocks(const Size &size) const;

private:
  void declare(llvm::StringRef name, SymbolKind kind,
               llvm::ArrayRef<int64_t> values);
  std::optional<Size> drawFactor(const Size &size);

  mlir::MLIRContext *context;
  Random random;
  int64_t maxExtent, maxPoints;
  SymbolSet symbols;
  Binding binding;
};

} // namespace kas::test

#endif // KAS_TEST_LIB_RANDOMSIZES_H
