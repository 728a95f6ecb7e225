//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomContraction.h"
#include "kas/Support/Random.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace kas;
using namespace kas::test;

namespace {

/// Which tensors a coordinate is in.
enum class Kind { Column, Row, Batch, Step };

struct Coordinate {
  Kind kind;
  std::string name;
  int64_t extent = 0;
  /// The last one of its kind, which is long and may be innermost.
  bool isLast = false;
};

/// Dimensions of a tensor that stay neighbours, as text and size.
using Dimensions = SmallVector<std::pair<std::string, int64_t>, 2>;

class Generator {
public:
  Generator(uint64_t seed, int64_t maxProducts)
      : random(seed), maxProducts(maxProducts) {
    assert(maxProducts >= 1 << 17 && "expected room for the smallest sizes");
  }

  std::string run(StringRef name);

private:
  void drawCoordinates();
  void drawExtents();
  /// The dimensions of a tensor that has the coordinates of `line`, in any
  /// order but for the innermost one.
  SmallVector<Dimensions> getTensor(Kind line);
  /// `dimensions`, of which two may be one and one may be two.
  void reshape(SmallVector<Dimensions> &dimensions);

  template <typename Range>
  void shuffle(Range &range) {
    for (size_t i = range.size(); i > 1; --i)
      std::swap(range[i - 1], range[random.below(i)]);
  }

  Random random;
  int64_t maxProducts;
  SmallVector<Coordinate> coordinates;
  /// Text of operations after those of reductions and shares.
  std::string views;
};

} // namespace

void Generator::drawCoordinates() {
  auto add = [&](Kind kind, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      coordinates.push_back({kind, {}, 0, false});
  };
  add(Kind::Column, 1 + random.below(2));
  add(Kind::Row, 1 + random.below(2));
  add(Kind::Batch, random.below(3) == 0);
  shuffle(coordinates);
  add(Kind::Step, 1 + random.below(2));
  for (auto [i, coordinate] : llvm::enumerate(coordinates))
    coordinate.name = "%c" + std::to_string(i);
}

void Generator::drawExtents() {
  SmallVector<Coordinate *> longer;
  for (Coordinate &coordinate : llvm::reverse(coordinates)) {
    bool isFirst = llvm::none_of(longer, [&](Coordinate *other) {
      return other->kind == coordinate.kind;
    });
    coordinate.isLast = isFirst && coordinate.kind != Kind::Batch;
    coordinate.extent = static_cast<int64_t>(
        coordinate.isLast ? 8 * (1 + random.below(64)) : 2 + random.below(3));
    if (coordinate.isLast)
      longer.push_back(&coordinate);
  }
  auto countMACs = [&] {
    int64_t products = 1;
    for (const Coordinate &coordinate : coordinates)
      products *= coordinate.extent;
    return products;
  };
  while (countMACs() > maxProducts) {
    Coordinate *longest =
        *llvm::max_element(longer, [](Coordinate *a, Coordinate *b) {
          return a->extent < b->extent;
        });
    longest->extent = longest->extent / 16 * 8;
  }
}

SmallVector<Dimensions> Generator::getTensor(Kind line) {
  SmallVector<Dimensions> dimensions;
  Kind inner = random.below(2) == 0 ? line : Kind::Step;
  std::string suffix = line == Kind::Column ? "_d" : "_w";
  Dimensions innermost;
  for (const Coordinate &coordinate : coordinates) {
    bool isShared =
        coordinate.kind == Kind::Batch || coordinate.kind == Kind::Step;
    if (coordinate.kind != line && !isShared)
      continue;
    Dimensions one = {
        {coordinate.name + (isShared ? suffix : ""), coordinate.extent}};
    if (coordinate.isLast && coordinate.kind == inner)
      innermost = one;
    else
      dimensions.push_back(one);
  }
  shuffle(dimensions);
  dimensions.push_back(innermost);
  return dimensions;
}

void Generator::reshape(SmallVector<Dimensions> &dimensions) {
  llvm::raw_string_ostream text(views);
  if (dimensions.size() > 1 && random.below(3) == 0) {
    auto [left, leftSize] = dimensions[dimensions.size() - 2].front();
    auto [right, rightSize] = dimensions.back().front();
    text << "%one = kas.split " << left << ", " << right << " : " << leftSize
         << ", " << rightSize << "\n";
    dimensions.pop_back();
    dimensions.back() = {{"%one", leftSize * rightSize}};
  } else if (random.below(3) == 0) {
    auto [whole, size] = dimensions.back().front();
    text << "%many, %few = kas.merge " << whole << " by 8 : " << size << "\n";
    dimensions.back() = {{"%many", size / 8}, {"%few", 8}};
  }
}

std::string Generator::run(StringRef name) {
  drawCoordinates();
  drawExtents();
  SmallVector<Dimensions> data = getTensor(Kind::Column),
                          weight = getTensor(Kind::Row);
  reshape(data);
  std::string result;
  llvm::raw_string_ostream text(result);
  text << "kas.operator @" << name << "(";
  llvm::interleaveComma(
      llvm::make_filter_range(coordinates,
                              [](const Coordinate &coordinate) {
                                return coordinate.kind != Kind::Step;
                              }),
      text, [&](const Coordinate &coordinate) {
        text << coordinate.name << ": " << coordinate.extent;
      });
  auto list = [&](ArrayRef<Dimensions> dimensions, auto get) {
    bool isFirst = true;
    for (const Dimensions &neighbours : dimensions)
      for (const auto &dimension : neighbours) {
        text << (isFirst ? "" : ", ") << get(dimension);
        isFirst = false;
      }
  };
  text << ") from [";
  list(data, [](const auto &dimension) { return dimension.second; });
  text << "] {\n";
  for (const Coordinate &coordinate : coordinates) {
    const std::string &one = coordinate.name;
    if (coordinate.kind == Kind::Step)
      text << one << " = kas.reduce sum : " << coordinate.extent << "\n";
    if (coordinate.kind == Kind::Step || coordinate.kind == Kind::Batch)
      text << one << "_d, " << one << "_w = kas.share " << one << " : "
           << coordinate.extent << "\n";
  }
  text << views << "kas.yield data(";
  list(data, [](const auto &dimension) { return dimension.first; });
  text << ") weight(";
  list(weight, [](const auto &dimension) { return dimension.first; });
  text << ")\n}\n";
  return result;
}

RandomOperator kas::test::makeRandomContraction(OpBuilder &builder,
                                                StringRef name, uint64_t seed,
                                                int64_t maxProducts) {
  std::string text = Generator(seed, maxProducts).run(name);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, builder.getContext());
  assert(module && "expected the text of an operator");
  auto op = module->lookupSymbol<OperatorOp>(name);
  op->remove();
  builder.insert(op);
  return {op, Binding()};
}
