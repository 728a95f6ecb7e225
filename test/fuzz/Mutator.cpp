//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

using namespace kas::fuzz;

namespace {
/// A piece of a text: `length` bytes from `begin` on.
struct Range {
  size_t begin;
  size_t length;
};
} // namespace

static bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
         c == '$';
}

/// Words, numbers and single punctuation marks; a mark before a name (`%x`,
/// `@f`, `!t`, `#a`) is a part of it.
static std::vector<Range> tokenize(const std::string &text) {
  std::vector<Range> result;
  for (size_t position = 0; position < text.size();) {
    size_t begin = position++;
    if (std::isspace(static_cast<unsigned char>(text[begin])))
      continue;
    if (isWordCharacter(text[begin]) ||
        std::string("%@!#^").find(text[begin]) != std::string::npos)
      while (position < text.size() && isWordCharacter(text[position]))
        ++position;
    result.push_back({begin, position - begin});
  }
  return result;
}

static std::vector<Range> splitLines(const std::string &text) {
  std::vector<Range> result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    end = end == std::string::npos ? text.size() : end + 1;
    result.push_back({begin, end - begin});
    begin = end;
  }
  return result;
}

static std::vector<Range> findNumbers(const std::string &text) {
  std::vector<Range> result;
  for (const Range &token : tokenize(text))
    if (std::isdigit(static_cast<unsigned char>(text[token.begin])))
      result.push_back(token);
  return result;
}

Mutator::Mutator(std::vector<std::string> texts, uint64_t seed)
    : corpus(std::move(texts)), generator(seed) {
  std::set<std::string> distinct;
  for (const std::string &text : corpus)
    for (const Range &token : tokenize(text))
      distinct.insert(text.substr(token.begin, token.length));
  tokens.assign(distinct.begin(), distinct.end());
}

std::string Mutator::anyToken() {
  return tokens.empty() ? "" : tokens[below(tokens.size())];
}

void Mutator::changeByte(std::string &text) {
  size_t position = below(text.size());
  switch (below(3)) {
  case 0:
    text[position] = static_cast<char>(generator());
    return;
  case 1:
    text.insert(position, 1, static_cast<char>(' ' + below(95)));
    return;
  default:
    text.erase(position, 1);
    return;
  }
}

void Mutator::changeToken(std::string &text) {
  std::vector<Range> places = tokenize(text);
  if (places.empty())
    return;
  Range place = places[below(places.size())];
  Range other = places[below(places.size())];
  std::string replacement;
  switch (below(4)) {
  case 0:
    replacement = anyToken();
    break;
  case 1:
    replacement = text.substr(other.begin, other.length);
    break;
  case 2:
    replacement = text.substr(place.begin, place.length) + " " + anyToken();
    break;
  default:
    break;
  }
  text.replace(place.begin, place.length, replacement);
}

void Mutator::changeNumber(std::string &text) {
  static const std::array<const char *, 16> numbers = {
      "0",
      "1",
      "-1",
      "2",
      "3",
      "127",
      "128",
      "129",
      "255",
      "256",
      "2147483648",
      "4294967296",
      "4611686018427387904",
      "9223372036854775807",
      "9223372036854775808",
      "340282366920938463463374607431768211456"};
  std::vector<Range> places = findNumbers(text);
  if (places.empty())
    return;
  Range place = places[below(places.size())];
  text.replace(place.begin, place.length, numbers[below(numbers.size())]);
}

void Mutator::changeLine(std::string &text) {
  std::vector<Range> lines = splitLines(text);
  Range line = lines[below(lines.size())];
  Range other = lines[below(lines.size())];
  std::string moved = text.substr(line.begin, line.length);
  switch (below(3)) {
  case 0:
    text.erase(line.begin, line.length);
    return;
  case 1:
    text.insert(other.begin, moved);
    return;
  default: {
    const std::string &source = anyText();
    std::vector<Range> sourceLines = splitLines(source);
    if (sourceLines.empty())
      return;
    Range taken = sourceLines[below(sourceLines.size())];
    text.insert(line.begin, source.substr(taken.begin, taken.length));
    return;
  }
  }
}

void Mutator::changeRange(std::string &text) {
  size_t begin = below(text.size());
  size_t length = 1 + below(std::min<size_t>(text.size() - begin, 256));
  switch (below(4)) {
  case 0:
    text.erase(begin, length);
    return;
  case 1:
    text.insert(below(text.size()), text.substr(begin, length));
    return;
  case 2: {
    // Deep nesting is what recursive parsers fear.
    std::string piece = text.substr(begin, 1 + below(4));
    size_t count = 1 + below(below(8) == 0 ? 4000 : 40);
    for (size_t i = 0; i < count && piece.size() < maxLength / 2; ++i)
      piece += text.substr(begin, 1);
    text.insert(begin, piece);
    return;
  }
  default:
    text.resize(begin);
    return;
  }
}

std::string Mutator::next() {
  std::string text = anyText();
  size_t changes = 1 + below(8);
  for (size_t i = 0; i < changes && !text.empty(); ++i) {
    switch (below(8)) {
    case 0:
      changeByte(text);
      break;
    case 1:
    case 2:
    case 3:
      changeToken(text);
      break;
    case 4:
    case 5:
      changeNumber(text);
      break;
    case 6:
      changeLine(text);
      break;
    default:
      changeRange(text);
      break;
    }
    if (text.size() > maxLength)
      text.resize(maxLength);
  }
  return text;
}

std::string Mutator::nextWithOtherNumbers() {
  std::string text = anyText();
  for (size_t i = below(4); i > 0; --i)
    changeNumber(text);
  return text;
}
