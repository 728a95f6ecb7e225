//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decompression by zlib.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_INFLATE_H
#define KAS_EXECUTIONENGINE_INFLATE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace kas::execution {

/// Decompresses a raw DEFLATE stream (RFC 1951) of exactly `size` bytes.
llvm::Expected<std::string> inflate(llvm::StringRef compressed, uint64_t size);

/// Whether `bytes` start as a gzip file (RFC 1952) does.
bool isGzip(llvm::StringRef bytes);

/// Decompresses a gzip file: one member or several after each other, as gzip
/// itself does. Check sums are verified; missing or other bytes at the end are
/// errors.
llvm::Expected<std::string> gunzip(llvm::StringRef compressed);

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_INFLATE_H
