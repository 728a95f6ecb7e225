//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inner loops of batches: a window of an image, normalized.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_TRAINING_PIXELROWS_H
#define KAS_LIB_TRAINING_PIXELROWS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace kas::training {

/// What becomes of the pixels of one channel: `pixel * scale + offset`, and
/// `border` outside of the image.
struct PixelMap {
  float scale = 1, offset = 0, border = 0;
};

/// The part of an image that is read: `toHeight` x `toWidth` pixels from row
/// `top` and column `left` on, which may be outside of the image.
struct ImageWindow {
  int64_t height = 1, width = 1;
  int64_t toHeight = 1, toWidth = 1;
  int64_t top = 0, left = 0;
  /// Whether left and right change places.
  bool flip = false;
};

/// Writes the window of all channels of an image CxHxW, one map for each.
void writeWindow(const uint8_t *from, const ImageWindow &window,
                 llvm::ArrayRef<PixelMap> maps, float *to);
void writeWindow(const float *from, const ImageWindow &window,
                 llvm::ArrayRef<PixelMap> maps, float *to);

} // namespace kas::training

#endif // KAS_LIB_TRAINING_PIXELROWS_H
