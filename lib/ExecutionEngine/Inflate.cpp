//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DEFLATE decompression through zlib. LLVM's wrapper of it reads only streams
// with a zlib header, which the members of a zip archive lack.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Npy.h"
#include "llvm/ADT/ScopeExit.h"
#include <algorithm>
#include <zlib.h>

using namespace kas;
using namespace kas::execution;

llvm::Expected<std::string> kas::execution::inflate(llvm::StringRef compressed,
                                                    uint64_t size) {
  auto broken = [] {
    return llvm::createStringError("the compressed data is broken");
  };
  z_stream stream = {};
  // Negative window bits: no header around the data.
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return llvm::createStringError("zlib could not be started");
  llvm::scope_exit end([&] { inflateEnd(&stream); });
  stream.next_in = reinterpret_cast<Bytef *>(
      const_cast<char *>(compressed.data())); // zlib only reads it
  size_t remaining = compressed.size();
  std::string output;
  // In pieces: the size that an archive claims is not to be trusted.
  constexpr size_t piece = 1 << 20;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(remaining, piece));
      remaining -= stream.avail_in;
    }
    size_t written = output.size();
    // One byte more than wanted shows a stream that is too long.
    size_t room = std::min<uint64_t>(piece, size - written + 1);
    output.resize(written + room);
    stream.next_out = reinterpret_cast<Bytef *>(output.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);
    output.resize(output.size() - stream.avail_out);
    bool stuck = state == Z_BUF_ERROR && remaining == 0;
    if ((state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) ||
        stuck || output.size() > size)
      return broken();
  }
  if (output.size() != size)
    return broken();
  return output;
}
