//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shape of a compiled CUDA module, as far as it must be right before its
// bytes are handed to a driver that does not get their number.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_CUDAIMAGE_H
#define LIB_RUNTIME_CUDAIMAGE_H

#include "Status.h"
#include <cstdint>

namespace kas::rt {

/// A cubin or fatbin that is whole, or the text of PTX. `image` becomes what
/// the driver reads: PTX closed by a null.
Status readCudaImage(const void *data, size_t bytes, std::string &image);

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDAIMAGE_H
