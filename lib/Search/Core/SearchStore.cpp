//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The database of a search: settings, candidates, metrics and events, in
// SQLite, so that a search can be continued.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/SearchStore.h"
#include "SearchStoreImpl.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <unistd.h>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

/// After the members: `database` is still open here, and the lock is the last
/// thing to go.
SearchStore::Impl::~Impl() {
  if (lock >= 0)
    ::close(lock);
}

SearchStore::SearchStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SearchStore::~SearchStore() = default;

llvm::StringRef SearchStore::getPath() const {
  return impl->database.getPath();
}

const SearchSettings &SearchStore::getSettings() const {
  return impl->settings;
}

/// Failures win over metrics, and the first failure over later ones: what
/// failed was not evaluated further.
std::optional<Outcome> StoredCandidate::getOutcome() const {
  if (!outcome || std::holds_alternative<Failure>(*outcome) || !finalOutcome)
    return outcome;
  if (std::holds_alternative<Failure>(*finalOutcome))
    return finalOutcome;
  Metrics all = std::get<Metrics>(*outcome);
  const Metrics &more = std::get<Metrics>(*finalOutcome);
  // Of a name in both, the first outcome counts.
  all.insert(more.begin(), more.end());
  return all;
}

/// All metrics of a table in one pass: a query for each candidate would be slow
/// for a large database.
Expected<std::map<uint64_t, Metrics>>
SearchStore::Impl::readMetrics(const char *table) const {
  SqliteStatement rows(
      database, llvm::Twine("SELECT candidate, name, value FROM ") + table);
  std::map<uint64_t, Metrics> known;
  while (rows.step())
    known[static_cast<uint64_t>(rows.getInteger(0))][rows.getText(1)] =
        rows.getReal(2);
  if (Error error = rows.takeError())
    return error;
  return known;
}

/// A row without a failure is an outcome with metrics, be they none at all.
Error SearchStore::Impl::readFinals(
    std::vector<StoredCandidate> &candidates) const {
  Expected<std::map<uint64_t, Metrics>> known = readMetrics("final_metric");
  if (!known)
    return known.takeError();
  SqliteStatement rows(database,
                       "SELECT candidate, failure FROM final_candidate");
  std::map<uint64_t, Outcome> finals;
  while (rows.step()) {
    auto id = static_cast<uint64_t>(rows.getInteger(0));
    if (rows.isNull(1))
      finals[id] = (*known)[id];
    else
      finals[id] = Failure{rows.getText(1)};
  }
  // Candidates without a row keep an empty outcome.
  for (StoredCandidate &candidate : candidates)
    if (auto found = finals.find(candidate.id); found != finals.end())
      candidate.finalOutcome = found->second;
  return rows.takeError();
}

/// In the order of identifiers, which is that of the proposals.
Expected<std::vector<StoredCandidate>> SearchStore::readCandidates() const {
  Expected<std::map<uint64_t, Metrics>> known = impl->readMetrics("metric");
  if (!known)
    return known.takeError();
  SqliteStatement rows(
      impl->database,
      "SELECT id, key, operator, parent, ask_event, tell_event, failure, "
      "asked_at, seconds FROM candidate ORDER BY id");
  std::vector<StoredCandidate> result;
  while (rows.step()) {
    StoredCandidate &candidate = result.emplace_back();
    candidate.id = static_cast<uint64_t>(rows.getInteger(0));
    candidate.key = static_cast<uint64_t>(rows.getInteger(1));
    candidate.text = rows.getText(2);
    if (!rows.isNull(3))
      // NULL means that the candidate was not made from another one.
      candidate.parent = static_cast<uint64_t>(rows.getInteger(3));
    candidate.askEvent = static_cast<uint64_t>(rows.getInteger(4));
    candidate.askedAt = rows.getReal(7);
    candidate.seconds = rows.getReal(8);
    // Without an event of its outcome it is still being evaluated.
    if (rows.isNull(5))
      continue;
    candidate.tellEvent = static_cast<uint64_t>(rows.getInteger(5));
    if (rows.isNull(6))
      candidate.outcome = (*known)[candidate.id];
    else
      candidate.outcome = Failure{rows.getText(6)};
  }
  if (Error error = rows.takeError())
    return error;
  if (Error error = impl->readFinals(result))
    return error;
  return result;
}

Expected<std::map<std::string, uint64_t>> SearchStore::readStatistics() const {
  std::map<std::string, uint64_t> result;
  SqliteStatement rows(impl->database, "SELECT name, value FROM statistic");
  while (rows.step())
    result[rows.getText(0)] = static_cast<uint64_t>(rows.getInteger(1));
  if (Error error = rows.takeError())
    return error;
  return result;
}

/// One transaction. The log keeps all that is committed when the process ends;
/// it is brought to the disk, which is slow, once a second. A process that dies
/// loses nothing: committed pages are in the log, which the operating system
/// has. Only a crash of the machine can lose the transactions since the last
/// one with synchronous = FULL.
Error SearchStore::Impl::write(llvm::function_ref<Error()> change) {
  auto now = std::chrono::steady_clock::now();
  bool isDue = now - synchronized >= std::chrono::seconds(1);
  if (Error error = database.execute(isDue ? "PRAGMA synchronous = FULL"
                                           : "PRAGMA synchronous = NORMAL"))
    return error;
  if (Error error = database.runTransaction(change))
    return error;
  if (isDue)
    // Only when the transaction was successful.
    synchronized = now;
  return Error::success();
}

Error SearchStore::recordAsk(const StoredCandidate &candidate) {
  auto insert = [&]() -> Error {
    SqliteStatement row(impl->database,
                        "INSERT INTO candidate(id, key, operator, parent, "
                        "ask_event, asked_at) VALUES (?, ?, ?, ?, ?, ?)");
    return row.bind(static_cast<int64_t>(candidate.id))
        .bind(static_cast<int64_t>(candidate.key))
        .bind(llvm::StringRef(candidate.text))
        .bind(std::optional<int64_t>(candidate.parent))
        .bind(impl->events)
        .bind(candidate.askedAt)
        .run();
  };
  if (Error error = impl->write(insert))
    return error;
  // The counter of events moves on only when the row is in the file, so the
  // numbers have no gaps and match a replay.
  ++impl->events;
  return Error::success();
}

/// `table` is a name from this file, never input.
Error SearchStore::Impl::insertMetrics(const char *table, uint64_t id,
                                       const Metrics &metrics) {
  SqliteStatement insert(database, llvm::Twine("INSERT INTO ") + table +
                                       " VALUES (?, ?, ?)");
  // SQLite stores NaN as NULL, which the schema forbids with a message that
  // says less.
  for (const auto &[name, value] : metrics) {
    if (!std::isfinite(value))
      return database.makeError("metric '" + llvm::Twine(name) +
                                "' must be finite");
    if (Error error = insert.bind(static_cast<int64_t>(id))
                          .bind(llvm::StringRef(name))
                          .bind(value)
                          .run())
      return error;
  }
  return Error::success();
}

/// The condition on `tell_event` makes a second outcome of a candidate change
/// no row, which is an error.
Error SearchStore::Impl::insertOutcome(uint64_t id, const Outcome &outcome,
                                       double seconds, uint64_t event) {
  const auto *failure = std::get_if<Failure>(&outcome);
  SqliteStatement row(database,
                      failure ? "UPDATE candidate SET tell_event = ?, seconds "
                                "= ?, failure = ? "
                                "WHERE id = ? AND tell_event IS NULL"
                              : "UPDATE candidate SET tell_event = ?, seconds "
                                "= ? WHERE id = ? AND tell_event IS NULL");
  row.bind(static_cast<int64_t>(event)).bind(seconds);
  if (failure)
    row.bind(llvm::StringRef(failure->reason));
  if (Error error = row.bind(static_cast<int64_t>(id)).run())
    return error;
  if (database.countChanges() != 1)
    return database.makeError("candidate " + llvm::Twine(id) +
                              " is not waiting for an outcome");
  if (failure)
    return Error::success();
  return insertMetrics("metric", id, std::get<Metrics>(outcome));
}

/// There is no row of the final round before: the primary key refuses a second
/// one.
Error SearchStore::Impl::insertFinal(uint64_t id, const Outcome &outcome,
                                     double seconds) {
  const auto *failure = std::get_if<Failure>(&outcome);
  SqliteStatement row(database, failure
                                    ? "INSERT INTO final_candidate(candidate, "
                                      "seconds, failure) VALUES (?, ?, ?)"
                                    : "INSERT INTO final_candidate(candidate, "
                                      "seconds) VALUES (?, ?)");
  row.bind(static_cast<int64_t>(id)).bind(seconds);
  if (failure)
    row.bind(llvm::StringRef(failure->reason));
  if (Error error = row.run())
    return error;
  if (failure)
    return Error::success();
  return insertMetrics("final_metric", id, std::get<Metrics>(outcome));
}

/// The event number is written with the outcome, in one transaction.
Error SearchStore::recordTell(uint64_t id, const Outcome &outcome,
                              double seconds) {
  if (Error error = impl->write([&] {
        return impl->insertOutcome(id, outcome, seconds,
                                   static_cast<uint64_t>(impl->events));
      }))
    return error;
  ++impl->events;
  return Error::success();
}

Error SearchStore::recordFinal(uint64_t id, const Outcome &outcome,
                               double seconds) {
  return impl->write([&] { return impl->insertFinal(id, outcome, seconds); });
}

// Not part of the schema: searches without training have none. It is made when
// the first row comes.
static constexpr const char *trainingTable = R"(
CREATE TABLE IF NOT EXISTS training(
  candidate INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (candidate, seed, epoch, name)
) WITHOUT ROWID;
)";

/// A training that is repeated after an interruption replaces its points.
Error SearchStore::Impl::insertTraining(llvm::ArrayRef<TrainingPoint> points) {
  if (Error error = database.execute(trainingTable))
    return error;
  SqliteStatement row(database,
                      "INSERT OR REPLACE INTO training VALUES (?, ?, ?, ?, ?)");
  for (const TrainingPoint &point : points)
    if (Error error = row.bind(point.candidate)
                          .bind(static_cast<int64_t>(point.seed))
                          .bind(static_cast<int64_t>(point.epoch))
                          .bind(llvm::StringRef(point.name))
                          .bind(point.value)
                          .run())
      return error;
  return Error::success();
}

/// Readers must not make tables, so they look first.
Expected<bool> SearchStore::Impl::hasTable(llvm::StringRef name) const {
  SqliteStatement rows(database, "SELECT 1 FROM sqlite_schema WHERE name = ?");
  rows.bind(name);
  bool isThere = rows.step();
  if (Error error = rows.takeError())
    return error;
  return isThere;
}

Error SearchStore::recordTraining(llvm::ArrayRef<TrainingPoint> points) {
  return impl->write([&] { return impl->insertTraining(points); });
}

Expected<std::vector<TrainingPoint>> SearchStore::readTraining() const {
  std::vector<TrainingPoint> points;
  Expected<bool> isThere = impl->hasTable("training");
  if (!isThere)
    return isThere.takeError();
  if (!*isThere)
    return points;
  SqliteStatement rows(impl->database,
                       "SELECT candidate, seed, epoch, name, value FROM "
                       "training ORDER BY candidate, seed, epoch, name");
  while (rows.step())
    points.push_back({rows.getInteger(0),
                      static_cast<uint64_t>(rows.getInteger(1)),
                      static_cast<uint64_t>(rows.getInteger(2)),
                      rows.getText(3), rows.getReal(4)});
  if (Error error = rows.takeError())
    return error;
  return points;
}

// Nor is this: files of before have none. Its keys are negative, see
// `StoredBaseline`. `evaluators` is a list with commas.
static constexpr const char *baselineTable = R"(
CREATE TABLE IF NOT EXISTS baseline(
  id INTEGER PRIMARY KEY NOT NULL CHECK (id < 0),
  name TEXT NOT NULL UNIQUE,
  operator TEXT NOT NULL,
  evaluators TEXT NOT NULL
);
)";

Error SearchStore::recordBaseline(const StoredBaseline &baseline,
                                  llvm::ArrayRef<TrainingPoint> points) {
  return impl->write([&]() -> Error {
    if (Error error = impl->database.execute(baselineTable))
      return error;
    SqliteStatement row(impl->database,
                        "INSERT OR REPLACE INTO baseline VALUES (?, ?, ?, ?)");
    if (Error error = row.bind(baseline.id)
                          .bind(llvm::StringRef(baseline.name))
                          .bind(llvm::StringRef(baseline.text))
                          .bind(llvm::join(baseline.evaluators, ","))
                          .run())
      return error;
    return points.empty() ? Error::success() : impl->insertTraining(points);
  });
}

/// Descending identifiers: -1, the network itself, comes first.
Expected<std::vector<StoredBaseline>> SearchStore::readBaselines() const {
  std::vector<StoredBaseline> baselines;
  Expected<bool> isThere = impl->hasTable("baseline");
  if (!isThere)
    return isThere.takeError();
  if (!*isThere)
    return baselines;
  SqliteStatement rows(impl->database,
                       "SELECT id, name, operator, evaluators FROM baseline "
                       "ORDER BY id DESC");
  while (rows.step()) {
    baselines.push_back(
        {rows.getInteger(0), rows.getText(1), rows.getText(2), {}});
    std::string evaluators = rows.getText(3);
    for (llvm::StringRef name : llvm::split(evaluators, ','))
      if (!name.empty())
        baselines.back().evaluators.push_back(name.str());
  }
  if (Error error = rows.takeError())
    return error;
  return baselines;
}

/// Overwrites: statistics are totals since the beginning of the search.
Error SearchStore::recordStatistics(const SearchStatistics &statistics) {
  return impl->write([&]() -> Error {
    SqliteStatement row(impl->database,
                        "INSERT INTO statistic VALUES (?, ?) ON CONFLICT "
                        "(name) DO UPDATE SET value = excluded.value");
    // The key of rollouts keeps the name that files of earlier versions have.
    for (const auto &[name, value] : {std::pair<llvm::StringRef, uint64_t>(
                                          "expansions", statistics.expansions),
                                      {"walks", statistics.rollouts},
                                      {"dead_ends", statistics.deadEnds},
                                      {"duplicates", statistics.duplicates},
                                      {"asked", statistics.asked},
                                      {"evaluated", statistics.evaluated},
                                      {"failed", statistics.failed}})
      if (Error error = row.bind(name).bind(static_cast<int64_t>(value)).run())
        return error;
    return Error::success();
  });
}

/// For merged files: identifiers and events are those of the rows, not counted
/// here.
Error SearchStore::insert(llvm::ArrayRef<StoredCandidate> candidates) {
  return impl->write([&]() -> Error {
    SqliteStatement row(impl->database,
                        "INSERT INTO candidate(id, key, operator, parent, "
                        "ask_event, asked_at) VALUES (?, ?, ?, ?, ?, ?)");
    // Parents come before their children, as the foreign key demands.
    for (const StoredCandidate &candidate : candidates) {
      if (Error error = row.bind(static_cast<int64_t>(candidate.id))
                            .bind(static_cast<int64_t>(candidate.key))
                            .bind(llvm::StringRef(candidate.text))
                            .bind(std::optional<int64_t>(candidate.parent))
                            .bind(static_cast<int64_t>(candidate.askEvent))
                            .bind(candidate.askedAt)
                            .run())
        return error;
      if (candidate.outcome)
        if (Error error =
                impl->insertOutcome(candidate.id, *candidate.outcome,
                                    candidate.seconds, *candidate.tellEvent))
          return error;
      // The time of a final round is not kept by `StoredCandidate`.
      if (candidate.finalOutcome)
        if (Error error =
                impl->insertFinal(candidate.id, *candidate.finalOutcome, 0))
          return error;
    }
    return Error::success();
  });
}

Error SearchStore::checkIntegrity() const {
  return impl->database.checkIntegrity("no candidate");
}

/// Leaving WAL mode merges the log into the file and removes it. Errors are
/// ignored: everything is committed already, and the next process to open the
/// file does the same.
void SearchStore::close() {
  // Somebody may be reading; then the log stays, which is no harm. Do not wait
  // for readers.
  impl->database.setBusyTimeout(0);
  llvm::consumeError(impl->database.execute("PRAGMA synchronous = FULL"));
  llvm::consumeError(impl->database.execute("PRAGMA journal_mode = DELETE"));
  impl.reset();
}
