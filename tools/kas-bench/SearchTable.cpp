//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SearchTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace kas;
using namespace kas::search;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

StringRef SearchTable::getText() {
  static constexpr llvm::StringLiteral text =
#include "SearchTable.txt.inc"
      ;
  return text;
}

static bool parseMoves(StringRef text, Path &path) {
  for (StringRef move : llvm::split(text, ',')) {
    auto [kind, code] = move.split(':');
    Move parsed;
    if (kind.getAsInteger(10, parsed.kind) ||
        code.getAsInteger(10, parsed.code))
      return false;
    path.push_back(parsed);
  }
  return true;
}

static bool parseRow(StringRef line, llvm::ArrayRef<Move> previous,
                     SearchTable::Row &row) {
  llvm::SmallVector<StringRef, 8> words;
  llvm::SplitString(line, words);
  size_t shared = 0;
  if (words.size() < 3 || words[0].getAsInteger(10, shared) ||
      shared > previous.size())
    return false;
  row.path.assign(previous.begin(), previous.begin() + shared);
  if (!parseMoves(words[1], row.path) || words[2].getAsDouble(row.reward))
    return false;
  for (StringRef word : llvm::ArrayRef(words).drop_front(3)) {
    row.features.emplace_back();
    if (word.getAsDouble(row.features.back()))
      return false;
  }
  return true;
}

llvm::Expected<SearchTable> SearchTable::parse(StringRef text) {
  SearchTable table;
  unsigned number = 0;
  for (StringRef line : llvm::split(text, '\n')) {
    ++number;
    line = line.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    Row row;
    llvm::ArrayRef<Move> previous;
    if (!table.rows.empty())
      previous = table.rows.back().path;
    if (!parseRow(line, previous, row))
      return llvm::createStringError("search table, line %u: '%s'", number,
                                     line.str().c_str());
    table.rows.push_back(std::move(row));
  }
  return table;
}

void SearchTable::print(llvm::raw_ostream &stream) const {
  llvm::ArrayRef<Move> previous;
  for (const Row &row : rows) {
    size_t shared = 0;
    while (shared < previous.size() && shared < row.path.size() &&
           previous[shared] == row.path[shared])
      ++shared;
    stream << shared << ' ';
    llvm::interleave(
        llvm::ArrayRef(row.path).drop_front(shared), stream,
        [&](Move move) { stream << move.kind << ':' << move.code; }, ",");
    stream << ' ' << llvm::format("%.4f", row.reward);
    for (double feature : row.features)
      stream << ' ' << llvm::format("%.4g", feature);
    stream << '\n';
    previous = row.path;
  }
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

namespace {

/// The rows as a tree of moves.
struct Trie {
  struct Node {
    std::vector<std::pair<Move, uint32_t>> children;
    /// One more than the row that ends here.
    uint32_t row = 0;
  };
  std::vector<Node> nodes = std::vector<Node>(1);
  std::shared_ptr<const SearchTable> table;
  unsigned numKinds = 0;
};

struct TabulatedSolution final : Solution {
  uint64_t key() const override { return row; }
  void getFeatures(llvm::SmallVectorImpl<double> &features) const override {
    llvm::append_range(features, table->rows[row].features);
  }
  std::shared_ptr<const SearchTable> table;
  uint64_t row = 0;
};

class TabulatedState final : public State {
public:
  explicit TabulatedState(std::shared_ptr<const Trie> trie)
      : trie(std::move(trie)) {}

  std::unique_ptr<State> clone() const override {
    return std::make_unique<TabulatedState>(*this);
  }
  void assign(const State &other) override {
    node = static_cast<const TabulatedState &>(other).node;
  }
  unsigned getNumKinds() const override { return trie->numKinds; }
  StringRef getKindName(unsigned kind) const override { return "move"; }
  std::optional<Move> nextMove(unsigned kind,
                               std::optional<Move> previous) const override {
    for (const auto &[move, child] : trie->nodes[node].children)
      if (move.kind == kind && (!previous || *previous < move))
        return move;
    return std::nullopt;
  }
  void apply(Move move) override {
    for (const auto &[made, child] : trie->nodes[node].children)
      if (made == move) {
        node = child;
        return;
      }
    llvm_unreachable("a move of another state");
  }
  bool isTerminal() const override { return trie->nodes[node].row != 0; }
  std::shared_ptr<const Solution> getSolution() const override {
    auto solution = std::make_shared<TabulatedSolution>();
    solution->table = trie->table;
    solution->row = trie->nodes[node].row - 1;
    return solution;
  }
  uint64_t key() const override {
    return isTerminal() ? trie->nodes[node].row - 1
                        : trie->table->rows.size() + node;
  }

private:
  std::shared_ptr<const Trie> trie;
  uint32_t node = 0;
};

} // namespace

std::unique_ptr<State>
kas::makeTabulatedState(std::shared_ptr<const SearchTable> table) {
  auto trie = std::make_shared<Trie>();
  for (auto [number, row] : llvm::enumerate(table->rows)) {
    uint32_t node = 0;
    for (Move move : row.path) {
      trie->numKinds = std::max(trie->numKinds, move.kind + 1);
      auto &children = trie->nodes[node].children;
      // Rows are in canonical order: a known move is the last one.
      if (!children.empty() && children.back().first == move) {
        node = children.back().second;
        continue;
      }
      children.emplace_back(move, trie->nodes.size());
      node = trie->nodes.size();
      trie->nodes.emplace_back();
    }
    trie->nodes[node].row = number + 1;
  }
  trie->table = std::move(table);
  return std::make_unique<TabulatedState>(trie);
}
