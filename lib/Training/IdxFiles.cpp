//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The idx format of LeCun's MNIST: two zero bytes, a byte for the type, one for
// the rank, the dimensions as big-endian u32, and the numbers, big-endian.
// There is no magic number but the two zeros, so the sizes are what tells a
// damaged file from a sound one.
//
//===----------------------------------------------------------------------===//

#include "DataFiles.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"

using namespace kas;
using namespace kas::training;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// The types that the format knows, by its codes.
static std::optional<NumberType> getIdxType(uint8_t code) {
  switch (code) {
  case 0x08:
    return NumberType::U8;
  case 0x09:
    return NumberType::I8;
  case 0x0b:
    return NumberType::I16;
  case 0x0c:
    return NumberType::I32;
  case 0x0d:
    return NumberType::F32;
  case 0x0e:
    return NumberType::F64;
  default:
    return std::nullopt;
  }
}

/// Images of MNIST have type 8 (u8) and rank 3:
///    00 00 08 03 | 00 00 ea 60 | 00 00 00 1c | 00 00 00 1c | pixels
/// The array points into the file.
Expected<DataArray> kas::training::parseIdx(const DataFile &file) {
  StringRef bytes = file.bytes;
  if (!bytes.starts_with(StringRef("\0\0", 2)))
    return createStringError("not an idx file: requires two bytes of zero at "
                             "the start");
  if (bytes.size() < 4)
    return createStringError("truncated idx header");
  auto type = getIdxType(static_cast<uint8_t>(bytes[2]));
  if (!type)
    return createStringError(
        "requires an idx type of 8, 9, 11, 12, 13 or 14, got " +
        Twine(static_cast<unsigned>(static_cast<uint8_t>(bytes[2]))));
  size_t rank = static_cast<uint8_t>(bytes[3]);
  size_t header = 4 + 4 * rank;
  if (bytes.size() < header)
    return createStringError("truncated idx header: rank " + Twine(rank) +
                             " has " + Twine(header) + " bytes, got " +
                             Twine(bytes.size()));
  DataArray array;
  array.type = *type;
  // Whatever machine wrote it.
  array.bigEndian = true;
  // Sizes are checked against the file later, with those of all formats.
  for (size_t d = 0; d < rank; ++d)
    array.shape.push_back(
        llvm::support::endian::read32be(bytes.data() + 4 + 4 * d));
  array.data = {bytes.drop_front(header), file.storage};
  return array;
}
