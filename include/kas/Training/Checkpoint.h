//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a training in a file, from which it continues bit by bit.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TRAINING_CHECKPOINT_H
#define KAS_TRAINING_CHECKPOINT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>

namespace kas::training {

/// Where a tensor is: f32 in C order.
struct NamedBuffer {
  std::string name;
  llvm::SmallVector<int64_t> shape;
  float *data = nullptr;
};

/// Numbers by name: steps, epochs, seeds, or the bits of f64 values.
using Counters = std::map<std::string, uint64_t>;

/// Writes a .npz archive with a member `NAME.npy` for each buffer, which NumPy
/// reads, and `checkpoint.json` with the counters and `network`, a text that is
/// different for networks whose states are not to be mixed up. The file is
/// written beside and renamed: on any failure an old one stays whole. The same
/// state gives the same bytes. Names must be different and UTF-8.
llvm::Error writeCheckpoint(llvm::StringRef path, llvm::StringRef network,
                            const Counters &counters,
                            llvm::ArrayRef<NamedBuffer> buffers);

/// Reads a checkpoint of this network into `buffers`, bit by bit, and returns
/// its counters. On an error the buffers are as they were: another network, a
/// buffer that is missing, is not wanted or has another shape, a file that is
/// damaged (each member has a check sum) or none of kas.
llvm::Expected<Counters> readCheckpoint(llvm::StringRef path,
                                        llvm::StringRef network,
                                        llvm::ArrayRef<NamedBuffer> buffers);

} // namespace kas::training

#endif // KAS_TRAINING_CHECKPOINT_H
