//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opening a search database: locks, checks, the schema, and the settings.
//
//===----------------------------------------------------------------------===//

#include "SearchStoreImpl.h"
#include "llvm/Support/FileSystem.h"
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace kas;
using namespace kas::search;
using llvm::Error;
using llvm::Expected;

// The columns are described in docs/guide/searching.md. Keys are 64-bit hashes,
// stored as SQLite's signed integers. `decisive` settings must agree when a
// search goes on; the others are information. A candidate without `tell_event`
// is being evaluated, or its run was killed.
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

/// Opens the file, makes it when there is none, and keeps other searches out.
/// The lock is advisory (`flock`) and belongs to the process, so it is released
/// by the kernel when a search is killed. SQLite's own locks last for one
/// transaction only and would let two searches alternate.
Error SearchStore::Impl::lockFile() {
  const std::string &path = database.getPath();
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status);
  if (exists && !llvm::sys::fs::is_regular_file(status))
    return database.makeError("requires a regular file");
  // Whoever takes all rights to write away means it, also of root. SQLite would
  // report this later and less clearly, and root may write anyway.
  if (exists && !(status.permissions() & llvm::sys::fs::all_write))
    return database.makeError("the file is read-only");
  // O_CREAT makes an empty file, which `isNew` recognizes.
  do
    lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (lock < 0 && errno == EINTR);
  if (lock < 0)
    return database.makeError(std::generic_category().message(errno));
  // LOCK_NB: a second search fails at once instead of waiting for the first
  // one.
  if (::flock(lock, LOCK_EX | LOCK_NB))
    return database.makeError(errno == EWOULDBLOCK
                                  ? "in use by another search"
                                  : std::generic_category().message(errno));
  // An empty file next to a log with contents: opening it would make SQLite
  // apply the log of a database that somebody has truncated.
  uint64_t log = 0;
  if (exists && status.getSize() == 0 &&
      !llvm::sys::fs::file_size(path + "-wal", log) && log > 0)
    return database.makeError(
        "the file is empty, but its log is not: it was truncated");
  return Error::success();
}

/// The file is a search database of this schema, and sound. The page check is
/// quick: it finds a file that is cut off or overwritten, not a wrong index
/// (`checkIntegrity` does).
Error SearchStore::Impl::checkKind() {
  if (Error error =
          database.checkKind(applicationId, schemaVersion, "that kas made"))
    return error;
  return database.checkPages();
}

/// Also restores the counter of events: the next event has the number after the
/// last one, whether that was a proposal or an outcome.
Error SearchStore::Impl::readSettings() {
  SqliteStatement rows(database, "SELECT name, value FROM setting");
  while (rows.step())
    settings[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return error;
  // The maximum over an empty table is NULL, which reads as 0.
  Expected<int64_t> last = database.queryInteger(
      "SELECT 1 + max(max(ask_event), ifnull(max(tell_event), -1)) "
      "FROM candidate");
  if (!last)
    return last.takeError();
  events = *last;
  return Error::success();
}

/// Values may be long, such as a space. A value with a line break is not shown
/// at all: a diagnostic is one sentence.
static std::string abbreviate(llvm::StringRef text) {
  return text.contains('\n') ? "another" : ("'" + text + "'").str();
}

/// Both directions are checked: a setting that only one side has is a
/// difference, too. The first difference in alphabetical order is reported.
Error SearchStore::Impl::compareSettings(const SearchSettings &wanted) {
  SqliteStatement rows(database,
                       "SELECT name, value FROM setting WHERE decisive");
  SearchSettings known;
  while (rows.step())
    known[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return error;
  // Searches of networks once called their own settings this way. Files of
  // older versions stay usable: their names are translated before the
  // comparison.
  if (wanted.count("network_search") && !known.count("network_search"))
    if (auto former = known.extract("kernel_search")) {
      former.key() = "network_search";
      known.insert(std::move(former));
    }
  // Files without this setting count FLOPs with weights combined one by one.
  if (wanted.count("flops_of"))
    known.try_emplace("flops_of", "weights one by one");
  // An absent setting compares as an empty value.
  for (const auto &[name, value] : known) {
    auto found = wanted.find(name);
    std::string got = found == wanted.end() ? "" : found->second;
    if (got != value)
      return database.makeError("is of another search: requires its " + name +
                                (value.find('\n') == std::string::npos
                                     ? " " + abbreviate(value)
                                     : "") +
                                ", got " + abbreviate(got));
  }
  for (const auto &[name, value] : wanted)
    if (!known.count(name))
      return database.makeError("is of another search: requires no " + name +
                                ", got " + abbreviate(value));
  return Error::success();
}

/// One transaction: a search that is killed at this moment leaves an empty
/// file, which the next one fills.
Error SearchStore::Impl::create(const SearchSettings &wanted,
                                const SearchSettings &information) {
  auto fill = [&]() -> Error {
    if (Error error = database.execute(schema))
      return error;
    // `application_id` and `user_version` are in the header of the file and
    // identify it without reading a table.
    for (const auto &[pragma, value] :
         {std::pair<llvm::StringRef, int>("application_id", applicationId),
          {"user_version", schemaVersion}})
      if (Error error =
              database.execute("PRAGMA " + pragma + " = " + llvm::Twine(value)))
        return error;
    SqliteStatement insert(database, "INSERT INTO setting VALUES (?, ?, ?)");
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
  return database.runTransaction(fill);
}

/// The order matters. The lock comes first, so no other search writes during
/// the checks; the header is checked before SQLite opens the file, because
/// SQLite treats some damaged files as empty; the mode of the journal is set
/// only when all checks have passed, because setting it changes the file.
Expected<std::unique_ptr<SearchStore>>
SearchStore::open(llvm::StringRef path, const SearchSettings &settings,
                  const SearchSettings &information) {
  auto impl = std::make_unique<Impl>(path);
  if (Error error = impl->lockFile())
    return error;
  if (Error error = impl->database.checkHeader())
    return error;
  if (Error error = impl->database.open({.checkpointOnClose = false}))
    return error;
  Expected<bool> isNew = impl->database.isNew();
  if (!isNew)
    return isNew.takeError();
  if (!*isNew) {
    if (Error error = impl->checkKind())
      return error;
    if (Error error = impl->compareSettings(settings))
      return error;
  }
  // WAL: readers do not block the search, and a commit is one sequential write.
  if (Error error = impl->database.execute("PRAGMA journal_mode = WAL; "
                                           "PRAGMA foreign_keys = ON"))
    return error;
  if (*isNew)
    if (Error error = impl->create(settings, information))
      return error;
  if (Error error = impl->readSettings())
    return error;
  return std::unique_ptr<SearchStore>(new SearchStore(std::move(impl)));
}

/// Takes no lock: SQLite's snapshot keeps the reader consistent while a search
/// writes. The log must not be merged into the file on closing, since the
/// reader may not write.
Expected<std::unique_ptr<SearchStore>>
SearchStore::openToRead(llvm::StringRef path) {
  auto impl = std::make_unique<Impl>(path);
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return impl->database.makeError(error.message());
  if (!llvm::sys::fs::is_regular_file(status))
    return impl->database.makeError("requires a regular file");
  if (Error error = impl->database.checkHeader())
    return error;
  if (Error error = impl->database.open(
          {.access = SqliteOptions::Access::Read, .checkpointOnClose = false}))
    return error;
  if (Error error = impl->checkKind())
    return error;
  if (Error error = impl->readSettings())
    return error;
  return std::unique_ptr<SearchStore>(new SearchStore(std::move(impl)));
}
