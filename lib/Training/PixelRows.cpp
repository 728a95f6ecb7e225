//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes windows of images as normalized f32 rows; written so that compilers
// vectorize it.
// This is most of the work of filling a batch, and runs while the processor
// could train, so rows are contiguous, pointers do not alias, and nothing
// branches within a row.
//
//===----------------------------------------------------------------------===//
#include "PixelRows.h"
#include <algorithm>

using namespace kas;
using namespace kas::training;

/// Written so that compilers vectorize it; without fused multiply-adds, which
/// only some machines have.
template <typename Pixel>
static void writeRow(const Pixel *__restrict from, int64_t count,
                     const PixelMap &map, float *__restrict to) {
#pragma clang fp contract(off)
  float scale = map.scale, offset = map.offset;
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]) * scale + offset;
}

/// The row mirrored: the first pixel of the result is the last one of `from`.
template <typename Pixel>
static void writeFlippedRow(const Pixel *__restrict from, int64_t count,
                            const PixelMap &map, float *__restrict to) {
#pragma clang fp contract(off)
  float scale = map.scale, offset = map.offset;
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[count - 1 - i]) * scale + offset;
}

/// One channel of a window that is cut, padded or mirrored.
///
///     image row:          |......................|
///     window:      |bbbbbb|...............|            left < 0
///                  0      first           last=width
///
/// `b` is padding.
template <typename Pixel>
static void writeChannel(const Pixel *from, const ImageWindow &window,
                         const PixelMap &map, float *to) {
  int64_t width = window.toWidth;
  // Columns of the window that are inside of the image.
  int64_t first = std::clamp<int64_t>(-window.left, 0, width);
  int64_t last = std::clamp<int64_t>(window.width - window.left, first, width);
  for (int64_t y = 0; y < window.toHeight; ++y, to += width) {
    // Rows of the result are never mirrored.
    int64_t row = window.top + y;
    // Rows above and below the image, and windows that miss it.
    if (row < 0 || row >= window.height || first == last) {
      std::fill_n(to, width, map.border);
      continue;
    }
    const Pixel *start = from + row * window.width + window.left + first;
    // Mirrored, the columns right of the image come first.
    int64_t before = window.flip ? width - last : first;
    std::fill_n(to, before, map.border);
    if (window.flip)
      writeFlippedRow(start, last - first, map, to + before);
    else
      writeRow(start, last - first, map, to + before);
    std::fill_n(to + before + (last - first), width - before - (last - first),
                map.border);
  }
}

/// All channels of an example; `maps` has one entry for each.
template <typename Pixel>
static void writeChannels(const Pixel *from, const ImageWindow &window,
                          llvm::ArrayRef<PixelMap> maps, float *to) {
  int64_t size = window.height * window.width;
  // Nothing moves: the channel is one long row, which saves the loop over rows.
  bool whole = window.height == window.toHeight &&
               window.width == window.toWidth && window.top == 0 &&
               window.left == 0 && !window.flip;
  for (const PixelMap &map : maps) {
    if (whole)
      writeRow(from, size, map, to);
    else
      writeChannel(from, window, map, to);
    from += size;
    to += window.toHeight * window.toWidth;
  }
}

void kas::training::writeWindow(const uint8_t *from, const ImageWindow &window,
                                llvm::ArrayRef<PixelMap> maps, float *to) {
  writeChannels(from, window, maps, to);
}

void kas::training::writeWindow(const float *from, const ImageWindow &window,
                                llvm::ArrayRef<PixelMap> maps, float *to) {
  writeChannels(from, window, maps, to);
}
