//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SQLite databases and statements with errors that name the file and what to
// do.
// Used by the database of searches and by that of schedules. Files come from
// other machines, full disks and interrupted runs, so each error says which
// file, what is wrong with it and what helps.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Sqlite.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <sqlite3.h>
#include <system_error>

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Databases
//===----------------------------------------------------------------------===//

SqliteDatabase::SqliteDatabase(llvm::StringRef kind, llvm::StringRef path)
    : kind(kind), path(path) {}

/// `v2` waits for statements that are still alive, and takes null.
SqliteDatabase::~SqliteDatabase() { sqlite3_close_v2(connection); }

Error SqliteDatabase::makeError(const llvm::Twine &what) const {
  return createStringError(kind + " '" + path + "': " + what);
}

/// SQLite says "disk I/O error"; the system's reason, such as "No space left on
/// device", is what helps. The lower eight bits of an extended code are its
/// class.
std::string SqliteDatabase::getMessage(int code) const {
  std::string message =
      connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
  int reason = connection ? sqlite3_system_errno(connection) : 0;
  int kind = code & 0xff;
  if (reason && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN))
    message += ": " + std::generic_category().message(reason);
  return message;
}

/// Finds files that are no databases, or were cut off, before SQLite does,
/// which notices a missing page only when it happens to read it. An empty file
/// is a new database.
Error SqliteDatabase::checkHeader(bool countPages) const {
  uint64_t size = 0;
  if (std::error_code code = llvm::sys::fs::file_size(path, size))
    return makeError(code.message());
  if (size == 0)
    return Error::success();
  auto buffer =
      llvm::MemoryBuffer::getFileSlice(path, std::min<uint64_t>(size, 100), 0);
  if (!buffer)
    return makeError(buffer.getError().message());
  // The header has 100 bytes. A file of fewer bytes may be the beginning of one
  // that was cut off.
  llvm::StringRef header = (*buffer)->getBuffer();
  llvm::StringRef magic("SQLite format 3", 16);
  if (!header.starts_with(magic.take_front(size)))
    return makeError("requires a database, got a file of another kind");
  // The size of a page, 64 KiB as 1, and the number of pages, which is right
  // while there is no log (file format of SQLite, 1.3.2 and 1.3.8).
  // Numbers of the format are big-endian.
  auto at = [&](size_t place) { return static_cast<uint8_t>(header[place]); };
  uint64_t page = size < 18 ? 512 : at(16) * 256u + at(17), pages = 0;
  if (page == 1)
    page = 65536;
  if (countPages && size >= 100 && !llvm::sys::fs::exists(path + "-wal"))
    for (size_t place = 28; place < 32; ++place)
      pages = pages * 256 + at(place);
  if (size < page * std::max<uint64_t>(pages, 1))
    return makeError("the file is damaged: it was truncated");
  return Error::success();
}

/// A name of the file for SQLite, with options.
static std::string makeUri(llvm::StringRef path, llvm::StringRef options) {
  std::string uri = "file:";
  for (char c : path) {
    // These end the path or begin an escape in a URI.
    if (c == '?' || c == '#' || c == '%')
      uri += (llvm::Twine("%") + llvm::utohexstr(c)).str();
    else
      uri += c;
  }
  return uri + "?" + options.str();
}

Error SqliteDatabase::open(const SqliteOptions &options) {
  int flags = SQLITE_OPEN_READWRITE;
  std::string name = path;
  if (options.access == SqliteOptions::Access::Create)
    flags |= SQLITE_OPEN_CREATE;
  // `immutable` takes no locks and makes no files next to the database, so that
  // it can be read in a folder without permission to write. With a log the
  // other program's pages are in it, and SQLite must look.
  if (options.access == SqliteOptions::Access::Read) {
    // Without a log nobody is writing, and nothing need be written to read.
    bool isClosed = !llvm::sys::fs::exists(path + "-wal");
    flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    name = makeUri(path, isClosed ? "immutable=1" : "mode=ro");
  }
  int code = sqlite3_open_v2(
      name.c_str(), &connection,
      // One connection is used by one thread at a time. Extended result codes
      // tell a full disk from a broken one.
      flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (code != SQLITE_OK)
    return makeError(getMessage(code));
  // Several searches may share a database: writers wait for each other.
  setBusyTimeout(options.busyMilliseconds);
  // A worker that ends must not hold up the others by copying the log.
  if (!options.checkpointOnClose)
    sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return Error::success();
}

void SqliteDatabase::setBusyTimeout(int milliseconds) {
  sqlite3_busy_timeout(connection, milliseconds);
}

/// Neither marked as the database of a program nor with any table: may be
/// taken.
Expected<bool> SqliteDatabase::isNew() const {
  Expected<int64_t> kind = queryInteger("PRAGMA application_id");
  if (!kind)
    return kind.takeError();
  Expected<int64_t> tables = queryInteger("SELECT count(*) FROM sqlite_schema");
  if (!tables)
    return tables.takeError();
  return *kind == 0 && *tables == 0;
}

Error SqliteDatabase::checkKind(int64_t applicationId, int64_t schemaVersion,
                                llvm::StringRef origin,
                                llvm::StringRef remedy) const {
  Expected<int64_t> kind = queryInteger("PRAGMA application_id");
  if (!kind)
    return kind.takeError();
  // The id is checked first: the version of another program means nothing.
  if (*kind != applicationId)
    return makeError("requires a database " + origin +
                     ", got one of another program");
  Expected<int64_t> version = queryInteger("PRAGMA user_version");
  if (!version)
    return version.takeError();
  if (*version != schemaVersion)
    return makeError("requires schema version " + llvm::Twine(schemaVersion) +
                     ", got " + llvm::Twine(*version) +
                     (*version < schemaVersion ? remedy : ""));
  return Error::success();
}

/// The structure of the file, in time linear in its size. `integrity_check`
/// compares indices and tables, too.
Error SqliteDatabase::checkPages() const {
  SqliteStatement check(*this, "PRAGMA quick_check(1)");
  std::string result = check.step() ? check.getText(0) : "";
  if (Error error = check.takeError())
    return error;
  if (result != "ok")
    return makeError("the file is damaged: " + result);
  return Error::success();
}

Error SqliteDatabase::checkIntegrity(llvm::StringRef referent) const {
  SqliteStatement rows(*this, "PRAGMA integrity_check");
  // All problems, not the first one: the user decides what can be saved.
  std::string problems;
  while (rows.step())
    if (std::string row = rows.getText(0); row != "ok")
      problems += (problems.empty() ? "" : "; ") + row;
  if (Error error = rows.takeError())
    return error;
  SqliteStatement dangling(*this, "PRAGMA foreign_key_check");
  if (dangling.step())
    problems += (problems.empty() ? "" : "; ") +
                ("a row of " + dangling.getText(0)) + " refers to " +
                referent.str();
  if (Error error = dangling.takeError())
    return error;
  if (!problems.empty())
    return makeError("the file is damaged: " + problems);
  return Error::success();
}

Error SqliteDatabase::execute(const llvm::Twine &text) const {
  int code =
      sqlite3_exec(connection, text.str().c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Error::success() : makeError(getMessage(code));
}

Expected<int64_t> SqliteDatabase::queryInteger(const llvm::Twine &text) const {
  SqliteStatement statement(*this, text);
  int64_t value = statement.step() ? statement.getInteger(0) : 0;
  if (Error error = statement.takeError())
    return error;
  return value;
}

/// IMMEDIATE takes the lock for writing now. A transaction that begins as a
/// reader would fail in the middle, when another one has written meanwhile.
Error SqliteDatabase::runTransaction(llvm::function_ref<Error()> all) const {
  if (Error error = execute("BEGIN IMMEDIATE"))
    return error;
  Error error = all();
  if (!error)
    error = execute("COMMIT");
  // A full disk may have ended the transaction already.
  if (error && !sqlite3_get_autocommit(connection))
    llvm::consumeError(execute("ROLLBACK"));
  return error;
}

int64_t SqliteDatabase::countChanges() const {
  return sqlite3_changes(connection);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void SqliteStatement::Finalizer::operator()(sqlite3_stmt *statement) const {
  sqlite3_finalize(statement);
}

SqliteStatement::SqliteStatement(const SqliteDatabase &database,
                                 const llvm::Twine &text)
    : database(database) {
  sqlite3_stmt *prepared = nullptr;
  // An error is kept and reported by `takeError`: binds and steps can be
  // chained without a check of each.
  check(sqlite3_prepare_v2(database.connection, text.str().c_str(), -1,
                           &prepared, nullptr));
  statement.reset(prepared);
}

void SqliteStatement::check(int code) {
  // The first error counts; later ones follow from it.
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE && !error)
    error = database.getMessage(code);
}

SqliteStatement &SqliteStatement::bind(int64_t value) {
  if (!error)
    check(sqlite3_bind_int64(statement.get(), next++, value));
  return *this;
}

SqliteStatement &SqliteStatement::bind(double value) {
  if (!error)
    check(sqlite3_bind_double(statement.get(), next++, value));
  return *this;
}

SqliteStatement &SqliteStatement::bind(llvm::StringRef value) {
  if (!error)
    check(sqlite3_bind_text64(statement.get(), next++, value.data(),
                              // SQLite copies the text, which may be gone
                              // before `step`.
                              value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

SqliteStatement &SqliteStatement::bind(std::optional<int64_t> value) {
  if (value)
    return bind(*value);
  if (!error)
    check(sqlite3_bind_null(statement.get(), next++));
  return *this;
}

bool SqliteStatement::step() {
  if (error)
    return false;
  int code = sqlite3_step(statement.get());
  check(code);
  return code == SQLITE_ROW;
}

/// For statements without rows. Ready for the next bindings afterwards;
/// resetting keeps the compiled statement, which is why inserts in a loop are
/// fast.
Error SqliteStatement::run() {
  (void)step();
  sqlite3_reset(statement.get());
  next = 1;
  return takeError();
}

bool SqliteStatement::isNull(int column) const {
  return sqlite3_column_type(statement.get(), column) == SQLITE_NULL;
}

int64_t SqliteStatement::getInteger(int column) const {
  return sqlite3_column_int64(statement.get(), column);
}

double SqliteStatement::getReal(int column) const {
  return sqlite3_column_double(statement.get(), column);
}

std::string SqliteStatement::getText(int column) const {
  // The text first and its size second, as SQLite requires: the first call may
  // convert. Text may hold zero bytes, so the size is needed.
  const void *text = sqlite3_column_text(statement.get(), column);
  if (!text)
    return "";
  size_t size =
      static_cast<size_t>(sqlite3_column_bytes(statement.get(), column));
  return std::string(static_cast<const char *>(text), size);
}

Error SqliteStatement::takeError() {
  if (!error)
    return Error::success();
  std::string message = std::move(*error);
  error.reset();
  return database.makeError(message);
}
