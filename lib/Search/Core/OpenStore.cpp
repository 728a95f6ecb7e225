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
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
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
