//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Databases of SQLite (sqlite.org): connections, statements, transactions, and
// the checks that a file needs before it is written.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_SQLITE_H
#define KAS_SUPPORT_SQLITE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace kas {

class SqliteDatabase;

/// A prepared statement. Errors of binding and stepping are kept until
/// `takeError`, so that loops stay readable.
class SqliteStatement {
public:
  SqliteStatement(const SqliteDatabase &database, const llvm::Twine &text);

  /// Sets the next parameter.
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
    void operator()(sqlite3_stmt *statement) const;
  };
  void check(int code);

  const SqliteDatabase &database;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement;
  int next = 1;
  std::optional<std::string> error;
};

struct SqliteOptions {
  enum class Access {
    /// Also of a file on a medium that is read-only, or that others write.
    Read,
    /// Of a file that exists.
    ReadWrite,
    /// The same, or makes the file.
    Create
  };
  Access access = Access::ReadWrite;
  /// How long a call waits for other processes.
  int busyMilliseconds = 5000;
  /// Whether the last to close the file writes its log back; if not, a file
  /// that turns out to be damaged is left as it is.
  bool checkpointOnClose = true;
};

/// One file. All errors, also those of its statements, name the kind of the
/// file and its path. One thread at a time may use an object.
class SqliteDatabase {
public:
  /// `kind` is what errors call the file, such as "search database".
  SqliteDatabase(llvm::StringRef kind, llvm::StringRef path);
  SqliteDatabase(const SqliteDatabase &) = delete;
  SqliteDatabase &operator=(const SqliteDatabase &) = delete;
  ~SqliteDatabase();

  const std::string &getPath() const { return path; }

  /// "search database 'a.db': what".
  llvm::Error makeError(const llvm::Twine &what) const;

  /// The file is empty, or starts like a database and has one page, or with
  /// `countPages` all of them. SQLite takes what is shorter than a page for an
  /// empty file, and would write over it; this is to be called before `open`.
  llvm::Error checkHeader(bool countPages = false) const;
  llvm::Error open(const SqliteOptions &options);

  /// Nothing was ever written to the file.
  llvm::Expected<bool> isNew() const;
  /// The file has this `PRAGMA application_id` and `user_version`; `origin` is
  /// how the error describes files with another one, such as "that kas made",
  /// and `remedy` what it adds where the version is an older one.
  llvm::Error checkKind(int64_t applicationId, int64_t schemaVersion,
                        llvm::StringRef origin,
                        llvm::StringRef remedy = "") const;
  /// The cheap check of all pages.
  llvm::Error checkPages() const;
  /// All that SQLite can check; `referent` is what the error says that a
  /// dangling reference does not refer to, such as "nothing".
  llvm::Error checkIntegrity(llvm::StringRef referent) const;

  /// Runs statements without parameters, and drops their rows.
  llvm::Error execute(const llvm::Twine &text) const;
  /// The first value of the first row of a query; 0 where there is none.
  llvm::Expected<int64_t> queryInteger(const llvm::Twine &text) const;
  /// `all` must succeed as one transaction, else nothing is changed.
  llvm::Error runTransaction(llvm::function_ref<llvm::Error()> all) const;
  /// How many rows the last statement changed.
  int64_t countChanges() const;
  void setBusyTimeout(int milliseconds);

private:
  friend class SqliteStatement;
  /// What the connection last met, with the system's reason where there is one.
  std::string getMessage(int code) const;

  std::string kind, path;
  sqlite3 *connection = nullptr;
};

} // namespace kas

#endif // KAS_SUPPORT_SQLITE_H
