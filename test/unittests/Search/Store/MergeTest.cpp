//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemporaryDirectory.h"
#include "kas/Search/Core/SearchStore.h"
#include "gtest/gtest.h"

using namespace kas;
using namespace kas::search;

namespace {

struct Row {
  uint64_t key;
  std::optional<Outcome> outcome;
  std::optional<uint64_t> parent = std::nullopt;
};

} // namespace

static std::unique_ptr<SearchStore>
make(llvm::StringRef path, llvm::StringRef seed, llvm::ArrayRef<Row> rows) {
  auto store = llvm::cantFail(SearchStore::open(
      path, {{"space", "words"}, {"seed", seed.str()}, {"algorithm", "x"}}));
  for (const Row &row : rows) {
    StoredCandidate candidate;
    candidate.id = static_cast<uint64_t>(&row - rows.data());
    candidate.key = row.key;
    candidate.text = "text " + std::to_string(row.key);
    candidate.parent = row.parent;
    llvm::cantFail(store->recordAsk(candidate));
    if (row.outcome)
      llvm::cantFail(store->recordTell(candidate.id, *row.outcome, 1));
  }
  return store;
}

TEST(Merge, KeepsTheBetterKnown) {
  TemporaryDirectory directory;
  Metrics flops = {{"flops", 1}}, both = {{"flops", 2}, {"ms", 3}};
  Failure failure = {"no"};
  auto a = make(directory.getPath("a.db"), "1",
                {{10, flops}, {11, failure}, {12, {}}, {13, failure}});
  auto b = make(directory.getPath("b.db"), "2",
                {{20, flops},
                 {12, failure},
                 {11, both, 0},
                 {10, both, 1},
                 {21, flops, 2}});
  std::string path = directory.getPath("c.db");
  MergeCounts counts = llvm::cantFail(mergeSearches(*a, *b, path));
  EXPECT_EQ(counts.candidates, 6u);
  EXPECT_EQ(counts.duplicates, 3u);
  auto c = llvm::cantFail(SearchStore::openToRead(path));
  llvm::cantFail(c->checkIntegrity());
  EXPECT_EQ(c->getSettings(),
            (SearchSettings{{"space", "words"}, {"algorithm", "merge"}}));
  auto rows = llvm::cantFail(c->readCandidates());
  ASSERT_EQ(rows.size(), 6u);
  std::vector<uint64_t> keys;
  for (const StoredCandidate &row : rows) {
    EXPECT_EQ(row.id, keys.size());
    EXPECT_EQ(row.text, "text " + std::to_string(row.key));
    keys.push_back(row.key);
  }
  EXPECT_EQ(keys, (std::vector<uint64_t>{10, 11, 12, 13, 20, 21}));
  Metrics joined = {{"flops", 1}, {"ms", 3}};
  EXPECT_EQ(std::get<Metrics>(*rows[0].outcome), joined);
  EXPECT_EQ(std::get<Metrics>(*rows[1].outcome), both);
  EXPECT_EQ(std::get<Failure>(*rows[2].outcome).reason, "no");
  EXPECT_EQ(std::get<Failure>(*rows[3].outcome).reason, "no");
  // 21 came of the second file's third, which is the first file's second.
  EXPECT_EQ(rows[5].parent, 1u);
  // The sources are as they were.
  EXPECT_EQ(llvm::cantFail(a->readCandidates()).size(), 4u);
  EXPECT_EQ(llvm::cantFail(b->readCandidates()).size(), 5u);
}

TEST(Merge, RefusesWhatDoesNotFit) {
  TemporaryDirectory directory;
  auto a = make(directory.getPath("a.db"), "1", {{1, {}}});
  auto b = llvm::cantFail(
      SearchStore::open(directory.getPath("b.db"), {{"space", "numbers"}}));
  std::string path = directory.getPath("c.db");
  auto getError = [&](const SearchStore &other, llvm::StringRef output) {
    auto counts = mergeSearches(*a, other, output);
    return counts ? "" : llvm::toString(counts.takeError());
  };
  EXPECT_EQ(getError(*b, path), "requires two searches of one space, got those "
                                "of '" +
                                    a->getPath().str() + "' and '" +
                                    b->getPath().str() + "'");
  EXPECT_FALSE(llvm::sys::fs::exists(path));
  writeFile(path, "mine");
  EXPECT_EQ(getError(*a, path), "'" + path + "' exists already");
  EXPECT_EQ(readFile(path), "mine");
}
