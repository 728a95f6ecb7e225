//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchStore.h"
#include "TemporaryDirectory.h"
#include "gtest/gtest.h"
#include <csignal>
#include <limits>
#include <sqlite3.h>
#include <sys/resource.h>

using namespace kas;
using namespace kas::search;

static const SearchSettings settings = {{"space", "words\nof 5"},
                                        {"seed", "7"}};

static std::unique_ptr<SearchStore> openStore(llvm::StringRef path) {
  return llvm::cantFail(SearchStore::open(path, settings));
}

/// The message of what `open` or `openToRead` returns; empty when it succeeds.
static std::string
getError(llvm::Expected<std::unique_ptr<SearchStore>> store) {
  return store ? "" : llvm::toString(store.takeError());
}

static StoredCandidate makeCandidate(uint64_t id, llvm::StringRef text = "") {
  StoredCandidate candidate;
  candidate.id = id;
  candidate.key = id * 0x9e3779b97f4a7c15ull;
  candidate.text = text.empty() ? "candidate " + std::to_string(id) : text;
  candidate.askedAt = 1000.5 + static_cast<double>(id);
  return candidate;
}

static void fill(SearchStore &store, uint64_t count) {
  for (uint64_t id = 0; id < count; ++id) {
    llvm::cantFail(store.recordAsk(makeCandidate(id)));
    Outcome outcome = Metrics{{"cost", 1.0 / static_cast<double>(id + 1)}};
    llvm::cantFail(store.recordTell(id, outcome, 0.25));
  }
}

static void execute(llvm::StringRef path, const char *text) {
  sqlite3 *connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.str().c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, text, nullptr, nullptr, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(connection);
  sqlite3_close(connection);
}

TEST(SearchStore, KeepsWhatItIsGiven) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a ?#%.db");
  Metrics metrics = {{"cost", 0.1},
                     {"tiny", std::numeric_limits<double>::denorm_min()},
                     {"huge", -std::numeric_limits<double>::max()}};
  {
    auto store =
        llvm::cantFail(SearchStore::open(path, settings, {{"version", "0.1"}}));
    StoredCandidate second = makeCandidate(1, "β\n'\"");
    second.parent = 0;
    second.key = ~uint64_t(0);
    llvm::cantFail(store->recordAsk(makeCandidate(0)));
    llvm::cantFail(store->recordAsk(second));
    llvm::cantFail(store->recordAsk(makeCandidate(2)));
    llvm::cantFail(store->recordTell(1, metrics, 2.5));
    llvm::cantFail(store->recordTell(0, Failure{"it does not compile"}, 1.5));
    SearchStatistics statistics;
    statistics.expansions = 12345678901;
    llvm::cantFail(store->recordStatistics(statistics));
    statistics.rollouts = 3;
    llvm::cantFail(store->recordStatistics(statistics));
    // Not closed: as when the process is killed.
  }
  for (bool isClosed : {false, true}) {
    SCOPED_TRACE(isClosed);
    auto store = isClosed ? llvm::cantFail(SearchStore::openToRead(path))
                          : openStore(path);
    SearchSettings all = settings;
    all["version"] = "0.1";
    EXPECT_EQ(store->getSettings(), all);
    auto candidates = llvm::cantFail(store->readCandidates());
    ASSERT_EQ(candidates.size(), 3u);
    EXPECT_EQ(candidates[0].text, "candidate 0");
    EXPECT_EQ(std::get<Failure>(*candidates[0].outcome).reason,
              "it does not compile");
    EXPECT_EQ(candidates[0].tellEvent, 4u);
    EXPECT_EQ(candidates[1].text, "β\n'\"");
    EXPECT_EQ(candidates[1].parent, 0u);
    EXPECT_EQ(candidates[1].key, ~uint64_t(0));
    EXPECT_EQ(candidates[1].askEvent, 1u);
    EXPECT_EQ(candidates[1].tellEvent, 3u);
    EXPECT_EQ(candidates[1].askedAt, 1001.5);
    EXPECT_EQ(candidates[1].seconds, 2.5);
    EXPECT_EQ(std::get<Metrics>(*candidates[1].outcome), metrics);
    EXPECT_FALSE(candidates[2].outcome);
    EXPECT_FALSE(candidates[2].tellEvent);
    EXPECT_FALSE(candidates[2].parent);
    auto statistics = llvm::cantFail(store->readStatistics());
    EXPECT_EQ(statistics["expansions"], 12345678901u);
    EXPECT_EQ(statistics["walks"], 3u);
    llvm::cantFail(store->checkIntegrity());
    if (!isClosed)
      store->close();
  }
  EXPECT_FALSE(llvm::sys::fs::exists(path + "-wal"));
}

TEST(SearchStore, KeepsBaselines) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  {
    auto store = openStore(path);
    EXPECT_TRUE(llvm::cantFail(store->readBaselines()).empty());
    llvm::cantFail(store->recordBaseline({-2, "x", "an operator", {}}));
    llvm::cantFail(store->recordBaseline(
        {-1, "network itself", "", {"flops", "proxy=fisher"}},
        {{-1, 7, 0, "flops", 12}, {-1, 7, 0, "proxy_fisher", 0.5}}));
    // More is known of it.
    llvm::cantFail(store->recordBaseline({-2, "x", "an operator", {"flops"}},
                                         {{-2, 7, 0, "flops", 3}}));
    // Of candidates there are none.
    EXPECT_NE(llvm::toString(store->recordBaseline({0, "y", "", {}})), "");
  }
  auto store = openStore(path);
  auto baselines = llvm::cantFail(store->readBaselines());
  ASSERT_EQ(baselines.size(), 2u);
  EXPECT_EQ(baselines[0].name, "network itself");
  EXPECT_EQ(baselines[0].evaluators,
            (std::vector<std::string>{"flops", "proxy=fisher"}));
  EXPECT_EQ(baselines[1].id, -2);
  EXPECT_EQ(baselines[1].text, "an operator");
  EXPECT_EQ(baselines[1].evaluators, std::vector<std::string>{"flops"});
  auto points = llvm::cantFail(store->readTraining());
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].candidate, -2);
  EXPECT_EQ(points[0].value, 3);
  EXPECT_TRUE(llvm::cantFail(store->readCandidates()).empty());
}

TEST(SearchStore, KeepsTheFinalRound) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  {
    auto store = openStore(path);
    fill(*store, 3);
    llvm::cantFail(store->recordAsk(makeCandidate(3)));
    llvm::cantFail(store->recordFinal(0, Metrics{{"ms", 2}}, 0.5));
    llvm::cantFail(store->recordFinal(2, Failure{"too slow"}, 0.5));
    // Once for each, and only for candidates that there are.
    EXPECT_NE(llvm::toString(store->recordFinal(0, Metrics(), 0)), "");
    EXPECT_NE(llvm::toString(store->recordFinal(9, Metrics(), 0)), "");
  }
  auto rows = llvm::cantFail(openStore(path)->readCandidates());
  ASSERT_EQ(rows.size(), 4u);
  // The algorithm gets the outcomes that it got before.
  EXPECT_EQ(std::get<Metrics>(*rows[0].outcome), (Metrics{{"cost", 1}}));
  EXPECT_EQ(std::get<Metrics>(*rows[0].getOutcome()),
            (Metrics{{"cost", 1}, {"ms", 2}}));
  EXPECT_EQ(std::get<Metrics>(*rows[1].getOutcome()), (Metrics{{"cost", 0.5}}));
  EXPECT_EQ(std::get<Failure>(*rows[2].getOutcome()).reason, "too slow");
  EXPECT_FALSE(rows[3].getOutcome());
}

TEST(SearchStore, KeepsCurves) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("curves.db");
  {
    std::unique_ptr<SearchStore> store = openStore(path);
    EXPECT_TRUE(llvm::cantFail(store->readTraining()).empty());
    llvm::cantFail(store->recordTraining(
        {{0, 3, 2, "loss", 0.5}, {-1, 0, 1, "accuracy", 0.25}}));
    llvm::cantFail(store->recordTraining({{0, 3, 2, "loss", 0.75}}));
    store->close();
  }
  std::vector<TrainingPoint> points =
      llvm::cantFail(openStore(path)->readTraining());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].candidate, -1);
  EXPECT_EQ(points[0].name, "accuracy");
  EXPECT_EQ(points[1].seed, 3u);
  EXPECT_EQ(points[1].epoch, 2u);
  EXPECT_EQ(points[1].value, 0.75);
}

TEST(SearchStore, RefusesWrongRows) {
  TemporaryDirectory directory;
  auto store = openStore(directory.getPath("a.db"));
  fill(*store, 2);
  StoredCandidate again = makeCandidate(5);
  again.key = makeCandidate(1).key;
  EXPECT_TRUE(llvm::StringRef(llvm::toString(store->recordAsk(again)))
                  .contains("UNIQUE constraint failed: candidate.key"));
  EXPECT_TRUE(
      llvm::StringRef(llvm::toString(store->recordTell(1, Metrics(), 0)))
          .contains("candidate 1 is not waiting for an outcome"));
  llvm::cantFail(store->recordAsk(makeCandidate(2)));
  for (double value : {std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity()})
    EXPECT_TRUE(llvm::StringRef(llvm::toString(store->recordTell(
                                    2, Metrics{{"m", value}}, 0)))
                    .contains("metric 'm' must be finite"));
  // All or nothing: the candidate still waits, and events have no gap.
  llvm::cantFail(store->recordTell(2, Metrics{{"m", 1}}, 0));
  auto candidates = llvm::cantFail(store->readCandidates());
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[2].tellEvent, 5u);
}

TEST(SearchStore, RefusesOtherSettings) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  fill(*openStore(path), 3);
  std::string before = readFile(path);
  auto open = [&](SearchSettings other) {
    return getError(SearchStore::open(path, other));
  };
  std::string start = "search database '" + path + "': is of another search: ";
  EXPECT_EQ(open({{"space", "words\nof 5"}, {"seed", "8"}}),
            start + "requires its seed '7', got '8'");
  EXPECT_EQ(open({{"space", "words\nof 6"}, {"seed", "7"}}),
            start + "requires its space, got another");
  EXPECT_EQ(open({{"space", "words\nof 5"}}),
            start + "requires its seed '7', got ''");
  EXPECT_EQ(open({{"space", "words\nof 5"}, {"seed", "7"}, {"speed", "high"}}),
            start + "requires no speed, got 'high'");
  EXPECT_TRUE(readFile(path) == before);
  EXPECT_EQ(llvm::cantFail(openStore(path)->readCandidates()).size(), 3u);
}

TEST(SearchStore, RefusesOtherFiles) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  std::string start = "search database '" + path + "': ";
  auto expectError = [&](llvm::StringRef message) {
    std::string before = readFile(path);
    EXPECT_EQ(getError(SearchStore::open(path, settings)),
              start + message.str());
    EXPECT_EQ(getError(SearchStore::openToRead(path)), start + message.str());
    EXPECT_TRUE(readFile(path) == before);
  };
  writeFile(path, "kas.space @a [3] from [3]\n");
  expectError("requires a database, got a file of another kind");
  llvm::sys::fs::remove(path);
  execute(path, "CREATE TABLE recipe(name TEXT)");
  expectError("requires a database that kas made, got one of another program");
  llvm::sys::fs::remove(path);
  auto store = openStore(path);
  fill(*store, 2);
  store->close();
  execute(path, "PRAGMA user_version = 2");
  expectError("requires schema version 1, got 2");
  execute(path, "PRAGMA user_version = 1");
  EXPECT_EQ(llvm::cantFail(openStore(path)->readCandidates()).size(), 2u);
}

TEST(SearchStore, RefusesTruncatedFiles) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  auto store = openStore(path);
  fill(*store, 200);
  store->close();
  std::string whole = readFile(path);
  ASSERT_GT(whole.size(), 5 * 4096u);
  for (size_t size = 1; size < whole.size(); size += 1021) {
    SCOPED_TRACE(size);
    writeFile(path, whole.substr(0, size));
    EXPECT_NE(getError(SearchStore::open(path, settings)), "");
    EXPECT_NE(getError(SearchStore::openToRead(path)), "");
    EXPECT_TRUE(readFile(path) == whole.substr(0, size));
  }
  // Pages that are lost within the file.
  std::string damaged = whole;
  damaged.replace(2 * 4096, 3 * 4096, 3 * 4096, '\0');
  writeFile(path, damaged);
  EXPECT_NE(getError(SearchStore::open(path, settings)), "");
  writeFile(path, whole);
  EXPECT_EQ(llvm::cantFail(openStore(path)->readCandidates()).size(), 200u);
}

TEST(SearchStore, TakesWhatACrashLeaves) {
  // Killed before the first transaction: the file is there, and empty.
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  writeFile(path, "");
  fill(*openStore(path), 2);
  // Empty, though a log says that it was not.
  ASSERT_TRUE(llvm::sys::fs::exists(path + "-wal"));
  std::string log = readFile(path + "-wal");
  writeFile(path, "");
  EXPECT_EQ(getError(SearchStore::open(path, settings)),
            "search database '" + path +
                "': the file is empty, but its log is not: it was truncated");
  EXPECT_TRUE(readFile(path + "-wal") == log);
}

TEST(SearchStore, LetsOneSearchWriteAndAnyRead) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  auto store = openStore(path);
  fill(*store, 3);
  EXPECT_EQ(getError(SearchStore::open(path, settings)),
            "search database '" + path + "': in use by another search");
  auto reader = llvm::cantFail(SearchStore::openToRead(path));
  EXPECT_EQ(llvm::cantFail(reader->readCandidates()).size(), 3u);
  llvm::cantFail(store->recordAsk(makeCandidate(3)));
  EXPECT_EQ(llvm::cantFail(reader->readCandidates()).size(), 4u);
  reader.reset();
  // A second that was turned away has not taken the lock with it.
  EXPECT_NE(getError(SearchStore::open(path, settings)), "");
  store.reset();
  EXPECT_EQ(llvm::cantFail(openStore(path)->readCandidates()).size(), 4u);
}

TEST(SearchStore, SaysWhyAFileCannotBeWritten) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  auto store = openStore(path);
  fill(*store, 3);
  store->close();
  using llvm::sys::fs::perms;
  llvm::sys::fs::setPermissions(path, perms::owner_read);
  EXPECT_EQ(getError(SearchStore::open(path, settings)),
            "search database '" + path + "': the file is read-only");
  EXPECT_EQ(getError(SearchStore::openToRead(path)), "");
  std::string none = directory.getPath("none/a.db");
  EXPECT_EQ(getError(SearchStore::open(none, settings)),
            "search database '" + none + "': No such file or directory");
  EXPECT_EQ(getError(SearchStore::openToRead(none)),
            "search database '" + none + "': No such file or directory");
  std::string parent = directory.getPath("");
  EXPECT_EQ(getError(SearchStore::open(parent, settings)),
            "search database '" + parent + "': requires a regular file");
}

TEST(SearchStore, KeepsOldDataWhenTheDiskIsFull) {
  TemporaryDirectory directory;
  std::string path = directory.getPath("a.db");
  auto store = openStore(path);
  fill(*store, 50);
  // No file may grow beyond what the log has now.
  uint64_t size = 0;
  ASSERT_FALSE(llvm::sys::fs::file_size(path + "-wal", size));
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit full = {size + 10000, old.rlim_max};
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &full);
  std::string message;
  uint64_t id = 50;
  while (message.empty() && id < 1000)
    message = llvm::toString(store->recordAsk(makeCandidate(id++)));
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(llvm::StringRef(message).starts_with("search database '" + path +
                                                   "': disk I/O error"))
      << message;
  uint64_t kept = id - 1;
  EXPECT_EQ(llvm::cantFail(store->readCandidates()).size(), kept);
  store.reset();
  store = openStore(path);
  EXPECT_EQ(llvm::cantFail(store->readCandidates()).size(), kept);
  llvm::cantFail(store->checkIntegrity());
  // With space again it goes on.
  llvm::cantFail(store->recordAsk(makeCandidate(id)));
}
