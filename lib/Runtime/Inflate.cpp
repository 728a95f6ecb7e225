//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DEFLATE decompression, RFC 1951. Written out here because LLVM's wrapper of
// zlib reads only streams with a zlib header, which zip members lack.
//
//===----------------------------------------------------------------------===//

#include "kas/Runtime/Npy.h"
#include <array>

using namespace kas;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// Reads bits from the least significant end of each byte. Past the end it
/// yields zeros and remembers that it did.
class BitReader {
public:
  explicit BitReader(StringRef bytes) : bytes(bytes) {}

  uint32_t bit() {
    if (position >= bytes.size() * 8) {
      exhausted = true;
      return 0;
    }
    uint32_t value =
        (static_cast<unsigned char>(bytes[position / 8]) >> (position % 8)) & 1;
    ++position;
    return value;
  }
  uint32_t bits(unsigned count) {
    uint32_t value = 0;
    for (unsigned i = 0; i < count; ++i)
      value |= bit() << i;
    return value;
  }
  /// The rest of the stream from the next byte boundary.
  StringRef alignedRest() {
    position = (position + 7) / 8 * 8;
    return bytes.substr(position / 8);
  }
  void skipBytes(size_t count) { position += count * 8; }
  bool isExhausted() const { return exhausted; }

private:
  StringRef bytes;
  size_t position = 0;
  bool exhausted = false;
};

/// A canonical Huffman code (section 3.2.2), decoded by counting: the codes of
/// one length are consecutive numbers.
class HuffmanCode {
public:
  static constexpr unsigned maxLength = 15;

  /// False if the lengths claim more codes than there are.
  bool build(ArrayRef<uint8_t> lengths) {
    counts.fill(0);
    for (uint8_t length : lengths)
      ++counts[length];
    counts[0] = 0;
    int32_t left = 1;
    for (unsigned length = 1; length <= maxLength; ++length)
      if ((left = 2 * left - counts[length]) < 0)
        return false;
    std::array<uint16_t, maxLength + 2> offsets{};
    for (unsigned length = 1; length <= maxLength; ++length)
      offsets[length + 1] = offsets[length] + counts[length];
    symbols.assign(lengths.size(), 0);
    for (unsigned symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol])
        symbols[offsets[lengths[symbol]]++] = symbol;
    return true;
  }

  /// The next symbol, or -1 for bits that are no code.
  int decode(BitReader &reader) const {
    int32_t code = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= maxLength; ++length) {
      code |= static_cast<int32_t>(reader.bit());
      int32_t count = counts[length];
      if (code - count < first)
        return symbols[index + (code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    return -1;
  }

private:
  std::array<uint16_t, maxLength + 1> counts{};
  llvm::SmallVector<uint16_t> symbols;
};

// Section 3.2.5: base values and extra bits of lengths and distances.
constexpr uint16_t lengthBase[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                   15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                   67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr uint8_t lengthExtra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr uint16_t distanceBase[] = {
    1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
    33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr uint8_t distanceExtra[] = {0, 0, 0,  0,  1,  1,  2,  2,  3,  3,
                                     4, 4, 5,  5,  6,  6,  7,  7,  8,  8,
                                     9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

class Inflater {
public:
  Inflater(StringRef compressed, uint64_t size)
      : reader(compressed), size(size) {}

  Expected<std::string> run() {
    // Not reserved in full: `size` comes from the file and may be a lie.
    output.reserve(std::min<uint64_t>(size, 1 << 20));
    for (bool last = false; !last;) {
      last = reader.bit();
      bool good = false;
      switch (reader.bits(2)) {
      case 0:
        good = storedBlock();
        break;
      case 1:
        good = fixedCodes() && codedBlock();
        break;
      case 2:
        good = dynamicCodes() && codedBlock();
        break;
      default:
        break;
      }
      if (!good || reader.isExhausted())
        return llvm::createStringError("corrupt or truncated DEFLATE stream");
    }
    if (output.size() != size)
      return llvm::createStringError("DEFLATE stream should hold " +
                                     llvm::Twine(size) + " bytes, got " +
                                     llvm::Twine(output.size()));
    return std::move(output);
  }

private:
  bool storedBlock() {
    StringRef rest = reader.alignedRest();
    if (rest.size() < 4)
      return false;
    auto word = [&](size_t at) {
      return static_cast<unsigned char>(rest[at]) |
             static_cast<unsigned char>(rest[at + 1]) << 8;
    };
    unsigned count = word(0);
    if ((count ^ word(2)) != 0xffff || rest.size() < 4 + count ||
        output.size() + count > size)
      return false;
    output.append(rest.data() + 4, count);
    reader.skipBytes(4 + count);
    return true;
  }

  bool fixedCodes() {
    std::array<uint8_t, 288> lengths;
    for (unsigned i = 0; i < lengths.size(); ++i)
      lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    std::array<uint8_t, 30> distanceLengths;
    distanceLengths.fill(5);
    return literals.build(lengths) && distances.build(distanceLengths);
  }

  bool dynamicCodes() {
    unsigned numLiterals = reader.bits(5) + 257;
    unsigned numDistances = reader.bits(5) + 1;
    unsigned numLengths = reader.bits(4) + 4;
    if (numLiterals > 286 || numDistances > 30)
      return false;
    constexpr uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                 11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<uint8_t, 19> codeLengths{};
    for (unsigned i = 0; i < numLengths; ++i)
      codeLengths[order[i]] = reader.bits(3);
    HuffmanCode lengthCode;
    if (!lengthCode.build(codeLengths))
      return false;

    std::array<uint8_t, 286 + 30> lengths{};
    for (unsigned i = 0; i < numLiterals + numDistances;) {
      int symbol = lengthCode.decode(reader);
      if (symbol < 0 || reader.isExhausted())
        return false;
      if (symbol < 16) {
        lengths[i++] = symbol;
        continue;
      }
      if (symbol == 16 && i == 0)
        return false;
      uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
      unsigned repeat = symbol == 16   ? 3 + reader.bits(2)
                        : symbol == 17 ? 3 + reader.bits(3)
                                       : 11 + reader.bits(7);
      if (i + repeat > numLiterals + numDistances)
        return false;
      while (repeat--)
        lengths[i++] = value;
    }
    ArrayRef<uint8_t> all(lengths);
    return literals.build(all.take_front(numLiterals)) &&
           distances.build(all.slice(numLiterals, numDistances));
  }

  bool codedBlock() {
    for (;;) {
      int symbol = literals.decode(reader);
      if (symbol < 0 || reader.isExhausted())
        return false;
      if (symbol == 256)
        return true;
      if (symbol < 256) {
        if (output.size() >= size)
          return false;
        output.push_back(static_cast<char>(symbol));
        continue;
      }
      unsigned lengthIndex = symbol - 257;
      if (lengthIndex >= std::size(lengthBase))
        return false;
      uint64_t length =
          lengthBase[lengthIndex] + reader.bits(lengthExtra[lengthIndex]);
      int distanceIndex = distances.decode(reader);
      if (distanceIndex < 0 ||
          static_cast<size_t>(distanceIndex) >= std::size(distanceBase))
        return false;
      uint64_t distance = distanceBase[distanceIndex] +
                          reader.bits(distanceExtra[distanceIndex]);
      if (distance > output.size() || output.size() + length > size)
        return false;
      // Byte by byte: the copy may read what it has just written.
      for (uint64_t i = 0; i < length; ++i)
        output.push_back(output[output.size() - distance]);
    }
  }

  BitReader reader;
  uint64_t size;
  std::string output;
  HuffmanCode literals, distances;
};

} // namespace

Expected<std::string> kas::inflate(StringRef compressed, uint64_t size) {
  return Inflater(compressed, size).run();
}
