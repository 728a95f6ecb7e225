//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the values of a tensor are made when no file gives them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_INITIALIZER_H
#define KAS_SUPPORT_INITIALIZER_H

#include "kas/Support/Random.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace kas {

/// How the values of a tensor are made when no file gives them. The text form
/// is the value of the argument attribute `kas.init`, which substituted weights
/// carry and which kas-run obeys:
///
///   zeros | ones | constant(V)   the same value everywhere
///   normal | normal(S)           mean 0, standard deviation S, default 1
///   uniform | uniform(B)         uniform in [-B, B), default 1
///   positive | positive(V)       uniform in [V / 2, 3 V / 2), default 1
///   kaiming | kaiming(F)         normal(sqrt(2 / F)); F is the number of terms
///                                that one output sums up (fan-in), by default
///                                the product of all dimensions but the first
///
/// (He et al.: "Delving Deep into Rectifiers", ICCV 2015, section 2.2.)
struct Initializer {
  enum class Kind { Constant, Normal, Uniform, Positive, Kaiming };
  Kind kind = Kind::Normal;
  /// The constant, the deviation, the bound, the middle or the fan-in (0: from
  /// the shape).
  double parameter = 1;

  /// The initializer that `text` stands for; an error lists the forms.
  static llvm::Expected<Initializer> parse(llvm::StringRef text);

  /// What an argument without file and attribute gets: kaiming from rank 2 on,
  /// else normal(0.1), which keeps a forgotten bias visible.
  static Initializer defaultFor(llvm::ArrayRef<int64_t> shape);

  /// Fills the tensor `values` of shape `shape`; the same stream gives the same
  /// values on every machine.
  void fill(llvm::MutableArrayRef<float> values, llvm::ArrayRef<int64_t> shape,
            const RandomStream &stream) const;
};

} // namespace kas

#endif // KAS_SUPPORT_INITIALIZER_H
