//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DEFLATE decompression through zlib. LLVM's wrapper of it reads only streams
// with a zlib header, which archives and gzip files lack.
//
// Everything about the input may be wrong, sizes included, so output grows as
// it is decompressed and never beyond a limit.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Inflate.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Endian.h"
#include <algorithm>
#include <zlib.h>

using namespace kas;
using namespace kas::execution;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// In pieces: the size that an archive claims is not to be trusted.
constexpr size_t piece = 1 << 20;

/// Decompresses one stream at the start of `rest`, which it drops, and appends
/// at most `limit` bytes to `output`. `windowBits` is that of zlib's
/// inflateInit2: negative without a header, 16 more with that of gzip.
Error inflateStream(StringRef &rest, int windowBits, uint64_t limit,
                    std::string &output) {
  z_stream stream = {};
  if (inflateInit2(&stream, windowBits) != Z_OK)
    return llvm::createStringError("zlib could not be started");
  llvm::scope_exit end([&] { inflateEnd(&stream); });
  stream.next_in = reinterpret_cast<Bytef *>(
      const_cast<char *>(rest.data())); // zlib only reads it
  size_t remaining = rest.size(), start = output.size();
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(remaining, piece));
      remaining -= stream.avail_in;
    }
    size_t written = output.size();
    // One byte more than wanted shows a stream that is too long.
    size_t room = std::min<uint64_t>(piece, limit - (written - start) + 1);
    output.resize(written + room);
    stream.next_out = reinterpret_cast<Bytef *>(output.data() + written);
    stream.avail_out = static_cast<uInt>(room);
    state = ::inflate(&stream, Z_NO_FLUSH);
    output.resize(output.size() - stream.avail_out);
    // Input is missing: no progress is possible.
    bool stuck = state == Z_BUF_ERROR && remaining == 0;
    if ((state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) ||
        stuck || output.size() - start > limit)
      return llvm::createStringError("the compressed data is broken");
  }
  // What zlib has not read belongs to the next stream or record.
  rest = rest.take_back(stream.avail_in + remaining);
  return Error::success();
}

} // namespace

Expected<std::string> kas::execution::inflate(StringRef compressed,
                                              uint64_t size) {
  std::string output;
  // Negative: no header.
  if (Error error = inflateStream(compressed, -MAX_WBITS, size, output))
    return error;
  if (output.size() != size)
    return llvm::createStringError("the compressed data is broken");
  return output;
}

bool kas::execution::isGzip(StringRef bytes) {
  return bytes.starts_with("\x1f\x8b");
}

Expected<std::string> kas::execution::gunzip(StringRef compressed) {
  // No stream of DEFLATE expands more than 1032 times.
  constexpr uint64_t largestRatio = 1032;
  std::string output;
  if (compressed.size() >= 4) {
    // The last four bytes of a gzip file are the size modulo 2^32: a hint only.
    uint64_t size = llvm::support::endian::read32le(compressed.end() - 4);
    output.reserve(std::min(size, compressed.size() * largestRatio));
  }
  // A gzip file may be several streams one after the other.
  do {
    if (Error error = inflateStream(compressed, MAX_WBITS + 16,
                                    compressed.size() * largestRatio, output))
      return error;
  } while (!compressed.empty());
  return output;
}
