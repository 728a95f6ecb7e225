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

// The columns are described in docs/guide/searching.md.
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
Error SearchStore::Impl::lockFile() {
  const std::string &path = database.getPath();
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status);
  if (exists && !llvm::sys::fs::is_regular_file(status))
    return database.makeError("requires a regular file");
  // Whoever takes all rights to write away means it, also of root.
  if (exists && !(status.permissions() & llvm::sys::fs::all_write))
    return database.makeError("the file is read-only");
  do
    lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (lock < 0 && errno == EINTR);
  if (lock < 0)
    return database.makeError(std::generic_category().message(errno));
  if (::flock(lock, LOCK_EX | LOCK_NB))
    return database.makeError(errno == EWOULDBLOCK
                                  ? "in use by another search"
                                  : std::generic_category().message(errno));
  uint64_t log = 0;
  if (exists && status.getSize() == 0 &&
      !llvm::sys::fs::file_size(path + "-wal", log) && log > 0)
    return database.makeError(
        "the file is empty, but its log is not: it was truncated");
  return Error::success();
}

/// The file is a search database of this schema, and sound.
Error SearchStore::Impl::checkKind() {
  if (Error error =
          database.checkKind(applicationId, schemaVersion, "that kas made"))
    return error;
  return database.checkPages();
}

Error SearchStore::Impl::readSettings() {
  SqliteStatement rows(database, "SELECT name, value FROM setting");
  while (rows.step())
    settings[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return error;
  Expected<int64_t> last = database.queryInteger(
      "SELECT 1 + max(max(ask_event), ifnull(max(tell_event), -1)) "
      "FROM candidate");
  if (!last)
    return last.takeError();
  events = *last;
  return Error::success();
}

/// Values may be long, such as a space.
static std::string abbreviate(llvm::StringRef text) {
  return text.contains('\n') ? "another" : ("'" + text + "'").str();
}

Error SearchStore::Impl::compareSettings(const SearchSettings &wanted) {
  SqliteStatement rows(database,
                       "SELECT name, value FROM setting WHERE decisive");
  SearchSettings known;
  while (rows.step())
    known[rows.getText(0)] = rows.getText(1);
  if (Error error = rows.takeError())
    return error;
  // Searches of networks once called their own settings this way.
  if (wanted.count("network_search") && !known.count("network_search"))
    if (auto former = known.extract("kernel_search")) {
      former.key() = "network_search";
      known.insert(std::move(former));
    }
  if (wanted.count("flops_of"))
    known.try_emplace("flops_of", "weights one by one");
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

Error SearchStore::Impl::create(const SearchSettings &wanted,
                                const SearchSettings &information) {
  auto fill = [&]() -> Error {
    if (Error error = database.execute(schema))
      return error;
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
