//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over SQLite's C interface: errors as `llvm::Error`, statements
// that are finalized. Private to the library.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_CORE_SQLITE_H
#define LIB_SEARCH_CORE_SQLITE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <sqlite3.h>

namespace kas::search {

/// A prepared statement. Errors of binding and stepping are kept until
/// `takeError`, so that loops stay readable.
class SqliteStatement {
public:
  SqliteStatement(sqlite3 *connection, const char *text);

  SqliteStatement &bind(int64_t value);
  SqliteStatement &bind(double value);
  SqliteStatement &bind(llvm::StringRef value);
  SqliteStatement &bind(std::optional<int64_t> value);

  /// Goes to the next row; false at the end and after an error.
  bool step();

  /// Runs a statement without rows and makes it ready for the next one.
  llvm::Error run();

  bool isNull(int column) const;
  int64_t getInteger(int column) const;
  double getReal(int column) const;
  std::string getText(int column) const;

  llvm::Error takeError();

private:
  struct Finalizer {
    void operator()(sqlite3_stmt *statement) const {
      sqlite3_finalize(statement);
    }
  };
  void check(int code);

  sqlite3 *connection;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement;
  int next = 1;
  std::optional<std::string> error;
};

/// What `connection` last met, with the system's reason where there is one.
std::string getSqliteMessage(sqlite3 *connection, int code);

llvm::Error executeSqlite(sqlite3 *connection, const char *text);

/// The first value of the first row of a query.
llvm::Expected<int64_t> querySqliteInteger(sqlite3 *connection,
                                           const char *text);

/// `all` must succeed as one transaction, else nothing is changed.
template <typename Function>
llvm::Error runTransaction(sqlite3 *connection, Function all) {
  if (llvm::Error error = executeSqlite(connection, "BEGIN IMMEDIATE"))
    return error;
  llvm::Error error = all();
  if (!error)
    error = executeSqlite(connection, "COMMIT");
  // A full disk may have ended the transaction already.
  if (error && !sqlite3_get_autocommit(connection))
    llvm::consumeError(executeSqlite(connection, "ROLLBACK"));
  return error;
}

} // namespace kas::search

#endif // LIB_SEARCH_CORE_SQLITE_H
