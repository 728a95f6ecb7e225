//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The binary version of CIFAR-10 and CIFAR-100: records of one or two labels
// and 3x32x32 bytes.
// The format is described at https://www.cs.toronto.edu/~kriz/cifar.html:
// CIFAR-10 has a label of one byte, CIFAR-100 a coarse one and a fine one. A
// file has no header, so the size is all that can be checked.
//
//===----------------------------------------------------------------------===//

#include "DataFiles.h"
#include "llvm/ADT/Twine.h"

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Error;
using llvm::Twine;

/// Appends the records of `file`, without copying: `examples` keeps pointers
/// into its bytes. `labelBytes` is 1 or 2.
Error kas::training::appendCifar(const DataFile &file, int64_t labelBytes,
                                 Examples &examples,
                                 std::vector<int64_t> &labels) {
  constexpr int64_t imageBytes = 3 * 32 * 32;
  int64_t record = labelBytes + imageBytes;
  auto size = static_cast<int64_t>(file.bytes.size());
  // An empty file is a download that failed.
  if (size == 0 || size % record != 0)
    return createStringError("truncated or of another format: requires records "
                             "of " +
                             Twine(record) + " bytes, got " + Twine(size) +
                             " bytes");
  for (int64_t start = 0; start < size; start += record) {
    const char *image = file.bytes.data() + start + labelBytes;
    // The fine label of CIFAR-100 is the second one.
    labels.push_back(static_cast<uint8_t>(image[-1]));
    examples.starts.push_back(image);
  }
  examples.type = ElementType::U8;
  // Planes of red, green and blue, row by row.
  examples.shape = {3, 32, 32};
  return Error::success();
}
