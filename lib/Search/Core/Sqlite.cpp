//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sqlite.h"
#include <system_error>

using namespace kas;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;

std::string kas::search::getSqliteMessage(sqlite3 *connection, int code) {
  std::string message =
      connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
  int reason = connection ? sqlite3_system_errno(connection) : 0;
  int kind = code & 0xff;
  if (reason && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN))
    message += ": " + std::generic_category().message(reason);
  return message;
}

Error kas::search::executeSqlite(sqlite3 *connection, const char *text) {
  int code = sqlite3_exec(connection, text, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK)
    return Error::success();
  return createStringError(getSqliteMessage(connection, code));
}

llvm::Expected<int64_t> kas::search::querySqliteInteger(sqlite3 *connection,
                                                        const char *text) {
  SqliteStatement statement(connection, text);
  int64_t value = statement.step() ? statement.getInteger(0) : 0;
  if (Error error = statement.takeError())
    return error;
  return value;
}

SqliteStatement::SqliteStatement(sqlite3 *connection, const char *text)
    : connection(connection) {
  sqlite3_stmt *prepared = nullptr;
  check(sqlite3_prepare_v2(connection, text, -1, &prepared, nullptr));
  statement.reset(prepared);
}

void SqliteStatement::check(int code) {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE && !error)
    error = getSqliteMessage(connection, code);
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
  return createStringError(message);
}
