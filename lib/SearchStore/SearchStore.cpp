//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/SearchStore/SearchStore.h"
#include "Sqlite.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <chrono>
#include <cmath>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

struct SearchStore::Impl {
  ~Impl();

  std::string path;
  /// Holds the lock against other searches; -1 when only reading. It is open
  /// as long as the connection: closing it would drop SQLite's own locks.
  int lock = -1;
  sqlite3 *connection = nullptr;
  SearchSettings settings;
  int64_t events = 0;
  std::chrono::steady_clock::time_point synchronized;

  Error locate(const llvm::Twine &what) const;
  Error locate(Error error) const;
  Error lockFile();
  Error checkHeader() const;
  Error connect(int flags, const std::string &name);
  /// Nothing was ever written to the file.
  Expected<bool> isNew();
  Error checkKind();
  Error readSettings();
  Error compareSettings(const SearchSettings &wanted);
  Error create(const SearchSettings &wanted, const SearchSettings &information);
  Error write(llvm::function_ref<Error()> change);
  Error insertMetrics(const char *table, uint64_t id, const Metrics &metrics);
  Error insertOutcome(uint64_t id, const Outcome &outcome, double seconds,
                      uint64_t event);
  Error insertFinal(uint64_t id, const Outcome &outcome, double seconds);
  Expected<std::map<uint64_t, Metrics>> readMetrics(const char *table) const;
  Error readFinals(std::vector<StoredCandidate> &candidates) const;
};

// The columns are described in docs/Search.md.
static constexpr const char *schema = R"(
CREATE TABLE setting(
  name TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL,
  decisive INTEGER NOT NULL CHECK (decisive IN (0, 1))
) WITHOUT ROWID;
CREATE TABLE candidate(
  id INTEGER PRIMARY KEY NOT NULL,
  key INTEGER NOT NULL UNIQUE,
  operator TEXT NOT NULL,
  parent INTEGER REFERENCES candidate(id),
  ask_event INTEGER NOT NULL,
  tell_event INTEGER,
  failure TEXT,
  asked_at REAL NOT NULL,
  seconds REAL,
  state TEXT NOT NULL GENERATED ALWAYS AS (CASE
    WHEN tell_event IS NULL THEN 'asked'
    WHEN failure IS NULL THEN 'evaluated' ELSE 'failed' END) VIRTUAL
);
CREATE TABLE metric(
  candidate INTEGER NOT NULL REFERENCES candidate(id),
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (candidate, name)
) WITHOUT ROWID;
CREATE TABLE final_candidate(
  candidate INTEGER PRIMARY KEY NOT NULL REFERENCES candidate(id),
  failure TEXT,
  seconds REAL NOT NULL
);
CREATE TABLE final_metric(
  candidate INTEGER NOT NULL REFERENCES final_candidate(candidate),
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (candidate, name)
) WITHOUT ROWID;
CREATE TABLE statistic(
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) WITHOUT ROWID;
)";

SearchStore::Impl::~Impl() {
  sqlite3_close_v2(connection);
  if (lock >= 0)
    ::close(lock);
}

Error SearchStore::Impl::locate(const llvm::Twine &what) const {
  return createStringError("search database '" + path + "': " + what);
}

Error SearchStore::Impl::locate(Error error) const {
  if (!error)
    return error;
  return locate(llvm::toString(std::move(error)));
}

/// Opens the file, makes it when there is none, and keeps other searches out.
Error SearchStore::Impl::lockFile() {
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status);
  if (exists && !llvm::sys::fs::is_regular_file(status))
    return locate("requires a regular file");
  // Whoever takes all rights to write away means it, also of root.
  if (exists && !(status.permissions() & llvm::sys::fs::all_write))
    return locate("the file is read-only");
  do
    lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (lock < 0 && errno == EINTR);
  if (lock < 0)
    return locate(std::generic_category().message(errno));
  if (::flock(lock, LOCK_EX | LOCK_NB))
    return locate(errno == EWOULDBLOCK
                      ? "in use by another search"
                      : std::generic_category().message(errno));
  uint64_t log = 0;
  if (exists && status.getSize() == 0 &&
      !llvm::sys::fs::file_size(path + "-wal", log) && log > 0)
    return locate("the file is empty, but its log is not: it was truncated");
  return Error::success();
}

/// SQLite takes what is shorter than a page for an empty file, and would write
/// over it.
Error SearchStore::Impl::checkHeader() const {
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, 100, 0);
  uint64_t size = 0;
  if (std::error_code code = llvm::sys::fs::file_size(path, size))
    return locate(code.message());
  if (size == 0)
    return Error::success();
  if (!buffer)
    return locate(buffer.getError().message());
  llvm::StringRef header = (*buffer)->getBuffer();
  llvm::StringRef magic("SQLite format 3", 16);
  if (!header.starts_with(magic.take_front(size)))
    return locate("requires a database, got a file of another kind");
  // The size of a page, 64 KiB as 1 (file format of SQLite, section 1.3).
  uint64_t page = size < 18 ? 512
                            : static_cast<uint8_t>(header[16]) * 256u +
                                  static_cast<uint8_t>(header[17]);
  if (size < (page == 1 ? 65536 : page))
    return locate("the file is damaged: it was truncated");
  return Error::success();
}

Error SearchStore::Impl::connect(int flags, const std::string &name) {
  int code = sqlite3_open_v2(
      name.c_str(), &connection,
      flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (code != SQLITE_OK)
    return locate(getSqliteMessage(connection, code));
  sqlite3_busy_timeout(connection, 5000);
  // A file that turns out to be damaged is left as it is.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return Error::success();
}

Expected<bool> SearchStore::Impl::isNew() {
  Expected<int64_t> kind =
      querySqliteInteger(connection, "PRAGMA application_id");
  if (!kind)
    return locate(kind.takeError());
  Expected<int64_t> tables =
      querySqliteInteger(connection, "SELECT count(*) FROM sqlite_schema");
  if (!tables)
    return locate(tables.takeError());
  return *kind == 0 && *tables == 0;
}

/// The file is a search database of this schema, and sound.
Error SearchStore::Impl::checkKind() {
  Expected<int64_t> kind =
      querySqliteInteger(connection, "PRAGMA application_id");
  if (!kind)
    return locate(kind.takeError());
  if (*kind != applicationId)
    return locate("requires a database that kas made, got one of another "
                  "program");
  Expected<int64_t> version =
      querySqliteInteger(connection, "PRAGMA user_version");
  if (!version)
    return locate(version.takeError());
  if (*version != schemaVersion)
    return locate("requires schema version " + llvm::Twine(schemaVersion) +
                  ", got " + llvm::Twine(*version));
  SqliteStatement check(connection, "PRAGMA quick_check(1)");
  std::string result = check.step() ? check.getText(0) : "";
  if (Error error = check.takeError())
    return locate(std::move(error));
  if (result != "ok")
    return locate("the file is damaged: " + result);
  return Error::success();
}

Error SearchStore::Impl::readSettings() {
  SqliteStatement rows(connection, "SELECT name, value FROM setting");
  while (rows.step())
    settings[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return locate(std::move(error));
  Expected<int64_t> last = querySqliteInteger(
      connection, "SELECT 1 + max(max(ask_event), ifnull(max(tell_event), -1)) "
                  "FROM candidate");
  if (!last)
    return locate(last.takeError());
  events = *last;
  return Error::success();
}

/// Values may be long, such as a space.
static std::string abbreviate(llvm::StringRef text) {
  return text.contains('\n') ? "another" : ("'" + text + "'").str();
}

Error SearchStore::Impl::compareSettings(const SearchSettings &wanted) {
  SqliteStatement rows(connection,
                       "SELECT name, value FROM setting WHERE decisive");
  SearchSettings known;
  while (rows.step())
    known[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return locate(std::move(error));
  for (const auto &[name, value] : known) {
    auto found = wanted.find(name);
    std::string got = found == wanted.end() ? "" : found->second;
    if (got != value)
      return locate("is of another search: requires its " + name +
                    (value.find('\n') == std::string::npos
                         ? " " + abbreviate(value)
                         : "") +
                    ", got " + abbreviate(got));
  }
  for (const auto &[name, value] : wanted)
    if (!known.count(name))
      return locate("is of another search: requires no " + name + ", got " +
                    abbreviate(value));
  return Error::success();
}

Error SearchStore::Impl::create(const SearchSettings &wanted,
                                const SearchSettings &information) {
  auto fill = [&]() -> Error {
    if (Error error = executeSqlite(connection, schema))
      return error;
    for (const auto &[pragma, value] :
         {std::pair<llvm::StringRef, int>("application_id", applicationId),
          {"user_version", schemaVersion}})
      if (Error error = executeSqlite(
              connection,
              ("PRAGMA " + pragma + " = " + llvm::Twine(value)).str().c_str()))
        return error;
    SqliteStatement insert(connection, "INSERT INTO setting VALUES (?, ?, ?)");
    for (const auto &[part, decisive] :
         {std::pair(&wanted, 1), {&information, 0}})
      for (const auto &[name, value] : *part)
        if (Error error = insert.bind(llvm::StringRef(name))
                              .bind(llvm::StringRef(value))
                              .bind(int64_t(decisive))
                              .run())
          return error;
    return Error::success();
  };
  return locate(runTransaction(connection, fill));
}

SearchStore::SearchStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SearchStore::~SearchStore() = default;

Expected<std::unique_ptr<SearchStore>>
SearchStore::open(llvm::StringRef path, const SearchSettings &settings,
                  const SearchSettings &information) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  if (Error error = impl->lockFile())
    return error;
  if (Error error = impl->checkHeader())
    return error;
  if (Error error = impl->connect(SQLITE_OPEN_READWRITE, impl->path))
    return error;
  Expected<bool> isNew = impl->isNew();
  if (!isNew)
    return isNew.takeError();
  if (!*isNew) {
    if (Error error = impl->checkKind())
      return error;
    if (Error error = impl->compareSettings(settings))
      return error;
  }
  if (Error error =
          impl->locate(executeSqlite(impl->connection, "PRAGMA journal_mode = "
                                                       "WAL; "
                                                       "PRAGMA foreign_keys = "
                                                       "ON")))
    return error;
  if (*isNew)
    if (Error error = impl->create(settings, information))
      return error;
  if (Error error = impl->readSettings())
    return error;
  return std::unique_ptr<SearchStore>(new SearchStore(std::move(impl)));
}

/// A name of the file for SQLite, with options.
static std::string makeUri(llvm::StringRef path, llvm::StringRef options) {
  std::string uri = "file:";
  for (char c : path) {
    if (c == '?' || c == '#' || c == '%')
      uri += (llvm::Twine("%") + llvm::utohexstr(c)).str();
    else
      uri += c;
  }
  return uri + "?" + options.str();
}

Expected<std::unique_ptr<SearchStore>>
SearchStore::openToRead(llvm::StringRef path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return impl->locate(error.message());
  if (!llvm::sys::fs::is_regular_file(status))
    return impl->locate("requires a regular file");
  if (Error error = impl->checkHeader())
    return error;
  // Without a log nobody is writing, and nothing need be written to read: the
  // file may be on a medium that is read-only.
  bool isClosed = !llvm::sys::fs::exists(path + "-wal");
  if (Error error =
          impl->connect(SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                        makeUri(path, isClosed ? "immutable=1" : "mode=ro")))
    return error;
  if (Error error = impl->checkKind())
    return error;
  if (Error error = impl->readSettings())
    return error;
  return std::unique_ptr<SearchStore>(new SearchStore(std::move(impl)));
}

llvm::StringRef SearchStore::getPath() const { return impl->path; }

const SearchSettings &SearchStore::getSettings() const {
  return impl->settings;
}

std::optional<Outcome> StoredCandidate::getOutcome() const {
  if (!outcome || std::holds_alternative<Failure>(*outcome) || !finalOutcome)
    return outcome;
  if (std::holds_alternative<Failure>(*finalOutcome))
    return finalOutcome;
  Metrics all = std::get<Metrics>(*outcome);
  const Metrics &more = std::get<Metrics>(*finalOutcome);
  all.insert(more.begin(), more.end());
  return all;
}

Expected<std::map<uint64_t, Metrics>>
SearchStore::Impl::readMetrics(const char *table) const {
  SqliteStatement rows(
      connection, (llvm::Twine("SELECT candidate, name, value FROM ") + table)
                      .str()
                      .c_str());
  std::map<uint64_t, Metrics> known;
  while (rows.step())
    known[static_cast<uint64_t>(rows.getInteger(0))][rows.getText(1)] =
        rows.getReal(2);
  if (Error error = rows.takeError())
    return locate(std::move(error));
  return known;
}

Error SearchStore::Impl::readFinals(
    std::vector<StoredCandidate> &candidates) const {
  Expected<std::map<uint64_t, Metrics>> known = readMetrics("final_metric");
  if (!known)
    return known.takeError();
  SqliteStatement rows(connection,
                       "SELECT candidate, failure FROM final_candidate");
  std::map<uint64_t, Outcome> finals;
  while (rows.step()) {
    auto id = static_cast<uint64_t>(rows.getInteger(0));
    if (rows.isNull(1))
      finals[id] = (*known)[id];
    else
      finals[id] = Failure{rows.getText(1)};
  }
  for (StoredCandidate &candidate : candidates)
    if (auto found = finals.find(candidate.id); found != finals.end())
      candidate.finalOutcome = found->second;
  return locate(rows.takeError());
}

Expected<std::vector<StoredCandidate>> SearchStore::readCandidates() const {
  Expected<std::map<uint64_t, Metrics>> known = impl->readMetrics("metric");
  if (!known)
    return known.takeError();
  SqliteStatement rows(
      impl->connection,
      "SELECT id, key, operator, parent, ask_event, tell_event, failure, "
      "asked_at, seconds FROM candidate ORDER BY id");
  std::vector<StoredCandidate> result;
  while (rows.step()) {
    StoredCandidate &candidate = result.emplace_back();
    candidate.id = static_cast<uint64_t>(rows.getInteger(0));
    candidate.key = static_cast<uint64_t>(rows.getInteger(1));
    candidate.text = rows.getText(2);
    if (!rows.isNull(3))
      candidate.parent = static_cast<uint64_t>(rows.getInteger(3));
    candidate.askEvent = static_cast<uint64_t>(rows.getInteger(4));
    candidate.askedAt = rows.getReal(7);
    candidate.seconds = rows.getReal(8);
    if (rows.isNull(5))
      continue;
    candidate.tellEvent = static_cast<uint64_t>(rows.getInteger(5));
    if (rows.isNull(6))
      candidate.outcome = (*known)[candidate.id];
    else
      candidate.outcome = Failure{rows.getText(6)};
  }
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  if (Error error = impl->readFinals(result))
    return error;
  return result;
}

Expected<std::map<std::string, uint64_t>> SearchStore::readStatistics() const {
  std::map<std::string, uint64_t> result;
  SqliteStatement rows(impl->connection, "SELECT name, value FROM statistic");
  while (rows.step())
    result[rows.getText(0)] = static_cast<uint64_t>(rows.getInteger(1));
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  return result;
}

/// One transaction. The log keeps all that is committed when the process ends;
/// it is brought to the disk, which is slow, once a second.
Error SearchStore::Impl::write(llvm::function_ref<Error()> change) {
  auto now = std::chrono::steady_clock::now();
  bool isDue = now - synchronized >= std::chrono::seconds(1);
  if (Error error =
          executeSqlite(connection, isDue ? "PRAGMA synchronous = FULL"
                                          : "PRAGMA synchronous = "
                                            "NORMAL"))
    return locate(std::move(error));
  if (Error error = runTransaction(connection, change))
    return locate(std::move(error));
  if (isDue)
    synchronized = now;
  return Error::success();
}

Error SearchStore::recordAsk(const StoredCandidate &candidate) {
  auto insert = [&]() -> Error {
    SqliteStatement row(impl->connection,
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
  ++impl->events;
  return Error::success();
}

Error SearchStore::Impl::insertMetrics(const char *table, uint64_t id,
                                       const Metrics &metrics) {
  SqliteStatement insert(
      connection, (llvm::Twine("INSERT INTO ") + table + " VALUES (?, ?, ?)")
                      .str()
                      .c_str());
  for (const auto &[name, value] : metrics) {
    if (!std::isfinite(value))
      return createStringError("metric '" + llvm::Twine(name) +
                               "' must be finite");
    if (Error error = insert.bind(static_cast<int64_t>(id))
                          .bind(llvm::StringRef(name))
                          .bind(value)
                          .run())
      return error;
  }
  return Error::success();
}

Error SearchStore::Impl::insertOutcome(uint64_t id, const Outcome &outcome,
                                       double seconds, uint64_t event) {
  const auto *failure = std::get_if<Failure>(&outcome);
  SqliteStatement row(connection,
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
  if (sqlite3_changes(connection) != 1)
    return createStringError("candidate " + llvm::Twine(id) +
                             " is not waiting for an outcome");
  if (failure)
    return Error::success();
  return insertMetrics("metric", id, std::get<Metrics>(outcome));
}

Error SearchStore::Impl::insertFinal(uint64_t id, const Outcome &outcome,
                                     double seconds) {
  const auto *failure = std::get_if<Failure>(&outcome);
  SqliteStatement row(connection,
                      failure ? "INSERT INTO final_candidate(candidate, "
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

Error SearchStore::recordStatistics(const SearchStatistics &statistics) {
  return impl->write([&]() -> Error {
    SqliteStatement row(impl->connection,
                        "INSERT INTO statistic VALUES (?, ?) ON CONFLICT "
                        "(name) DO UPDATE SET value = excluded.value");
    for (const auto &[name, value] : {std::pair<llvm::StringRef, uint64_t>(
                                          "expansions", statistics.expansions),
                                      {"walks", statistics.walks},
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

Error SearchStore::insert(llvm::ArrayRef<StoredCandidate> candidates) {
  return impl->write([&]() -> Error {
    SqliteStatement row(impl->connection,
                        "INSERT INTO candidate(id, key, operator, parent, "
                        "ask_event, asked_at) VALUES (?, ?, ?, ?, ?, ?)");
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
      if (candidate.finalOutcome)
        if (Error error =
                impl->insertFinal(candidate.id, *candidate.finalOutcome, 0))
          return error;
    }
    return Error::success();
  });
}

Error SearchStore::checkIntegrity() const {
  SqliteStatement rows(impl->connection, "PRAGMA integrity_check");
  std::string problems;
  while (rows.step())
    if (std::string row = rows.getText(0); row != "ok")
      problems += (problems.empty() ? "" : "; ") + row;
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  SqliteStatement dangling(impl->connection, "PRAGMA foreign_key_check");
  if (dangling.step())
    problems += (problems.empty() ? "" : "; ") +
                ("a row of " + dangling.getText(0)) + " refers to no candidate";
  if (Error error = dangling.takeError())
    return impl->locate(std::move(error));
  if (!problems.empty())
    return impl->locate("the file is damaged: " + problems);
  return Error::success();
}

void SearchStore::close() {
  // Somebody may be reading; then the log stays, which is no harm.
  sqlite3_busy_timeout(impl->connection, 0);
  llvm::consumeError(
      executeSqlite(impl->connection, "PRAGMA synchronous = FULL"));
  llvm::consumeError(
      executeSqlite(impl->connection, "PRAGMA journal_mode = DELETE"));
  impl.reset();
}
