//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleGenerator.h"
#include "Mutator.h"
#include <cctype>
#include <limits>
#include <map>

using namespace kas::fuzz;

static size_t below(std::mt19937_64 &random, size_t bound) {
  return bound ? random() % bound : 0;
}

namespace {

/// Fills the places of one template.
class Instance {
public:
  /// Every size is small unless `isOdd`; `piece` makes names distinct.
  Instance(std::mt19937_64 &random, bool isOdd, size_t piece)
      : random(random), isOdd(isOdd), piece(piece) {}

  std::string fill(const std::string &text);

private:
  static constexpr int64_t dynamic = std::numeric_limits<int64_t>::min();

  template <size_t n>
  std::string any(const char *const (&choices)[n]) {
    return choices[below(random, n)];
  }
  std::string &drawOnce(char place);
  int64_t getSize(char letter);
  std::string compute(const std::string &expression);
  std::string drawName();

  std::mt19937_64 &random;
  bool isOdd;
  size_t piece;
  std::map<char, int64_t> sizes;
  std::map<char, std::string> drawn;
};

} // namespace

static const char *const floats[] = {"f32",  "f32", "f32", "f64",
                                     "bf16", "f16", "f128"};
static const char *const integers[] = {"i32", "i64", "i8",  "i1",
                                       "i4",  "i16", "i65", "i128"};
static const char *const elements[] = {
    "f32",      "f32",    "f32",          "f64",  "bf16",         "f16",
    "f8E4M3FN", "f8E5M2", "f4E2M1FN",     "tf32", "complex<f32>", "i32",
    "i64",      "i8",     "i1",           "i4",   "index",        "si8",
    "ui8",      "ui32",   "vector<4xf32>"};

std::string &Instance::drawOnce(char place) {
  std::string &text = drawn[place];
  if (!text.empty())
    return text;
  switch (place) {
  case 'e':
    return text = isOdd ? any(elements) : "f32";
  case 'f':
    return text = isOdd ? any(floats) : "f32";
  case 'i':
    return text = isOdd ? any(integers) : "i32";
  case 'P':
    return text = piece ? "f" + std::to_string(piece) : "forward";
  default:
    return text = "g" + std::to_string(piece);
  }
}

int64_t Instance::getSize(char letter) {
  auto [entry, isNew] = sizes.try_emplace(letter, 0);
  if (!isNew)
    return entry->second;
  static constexpr int64_t small[] = {1, 2, 3, 4, 5, 8, 16, 33};
  static constexpr int64_t odd[] = {
      0,       0,       0,          dynamic,      dynamic,
      dynamic, dynamic, 2147483648, 4294967296LL, int64_t(1) << 62,
      127,     1025};
  return entry->second = isOdd && below(random, 3) == 0
                             ? odd[below(random, std::size(odd))]
                             : small[below(random, std::size(small))];
}

/// Of letters and numbers, from left to right, wrapping around.
std::string Instance::compute(const std::string &expression) {
  uint64_t value = 0;
  char operation = '+';
  for (size_t i = 0; i < expression.size(); ++i) {
    char c = expression[i];
    uint64_t operand = 0;
    if (std::isdigit(static_cast<unsigned char>(c))) {
      operand = c - '0';
    } else if (std::isupper(static_cast<unsigned char>(c))) {
      if (getSize(c) == dynamic)
        return "?";
      operand = getSize(c);
    } else {
      operation = c;
      continue;
    }
    value = operation == '+'   ? value + operand
            : operation == '-' ? value - operand
                               : value * operand;
  }
  // No size is negative.
  return std::to_string(value & std::numeric_limits<int64_t>::max());
}

std::string Instance::drawName() {
  static const char *const names[] = {"main",
                                      "forward",
                                      "\"a b\"",
                                      "\"\\22\"",
                                      "\"\\C3\\A9\"",
                                      "\"../up\"",
                                      "\"\\00\"",
                                      "\"%s\"",
                                      "\"forward_prepack\"",
                                      "_mlir_x",
                                      "malloc",
                                      "memcpy",
                                      "omp_get_num_threads",
                                      "kas_assertion_messages"};
  return any(names);
}

std::string Instance::fill(const std::string &text) {
  static const char *const numbers[] = {
      "0", "1",  "2",   "-1",  "3",          "7",
      "8", "64", "255", "256", "2147483648", "4611686018427387904"};
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    char place = text[++i];
    if (place == '(') {
      size_t end = text.find(')', i);
      result += compute(text.substr(i + 1, end - i - 1));
      i = end;
    } else if (place == 'n') {
      result += isOdd ? any(numbers) : "1";
    } else if (place == 's') {
      result += isOdd ? drawName() : "s" + std::to_string(piece);
    } else if (place >= 'A' && place <= 'H') {
      result += compute(std::string(1, place));
    } else {
      result += drawOnce(place);
    }
  }
  return result;
}

/// What templates call `dense_resource`: one without elements, one of bytes.
static constexpr const char *resources =
    "{-# dialect_resources: { builtin: { empty: \"0x04000000\", "
    "bytes: \"0x0100000001000100\" } } #-}\n";

ModuleGenerator::ModuleGenerator(std::vector<std::string> templates,
                                 std::vector<std::string> corpus)
    : templates(std::move(templates)), corpus(std::move(corpus)) {}

std::string ModuleGenerator::instantiate(size_t index, uint64_t seed) {
  std::mt19937_64 random(seed);
  return Instance(random, /*isOdd=*/false, /*piece=*/0).fill(templates[index]) +
         resources;
}

std::string ModuleGenerator::make(mlir::MLIRContext &context, uint64_t seed,
                                  uint64_t number) {
  std::seed_seq both{seed, number};
  std::mt19937_64 random(both);
  size_t kind = below(random, 10);
  if (kind < 2 && !corpus.empty()) {
    Mutator mutator({corpus[below(random, corpus.size())]}, random());
    return mutator.nextWithOtherNumbers();
  }
  if (kind < 3)
    return operations.makeFunction(context, random, "forward", 200);
  std::string text;
  for (size_t piece = 0, pieces = 1 + below(random, 4) / 2; piece < pieces;
       ++piece) {
    bool isOdd = below(random, 8) != 0;
    text += Instance(random, isOdd, piece)
                .fill(templates[below(random, templates.size())]);
    text += "\n";
  }
  return text + resources;
}
