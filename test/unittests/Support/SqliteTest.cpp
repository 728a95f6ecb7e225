//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Sqlite.h"
#include "TemporaryDirectory.h"
#include "gtest/gtest.h"

using namespace kas;
using Access = SqliteOptions::Access;

namespace {
class SqliteTest : public testing::Test {
protected:
  std::unique_ptr<SqliteDatabase> open(SqliteOptions options = {
                                           .access = Access::Create}) {
    auto database = std::make_unique<SqliteDatabase>("test database", path);
    llvm::cantFail(database->open(options));
    return database;
  }
  std::string getError(llvm::Error error) {
    return llvm::toString(std::move(error));
  }

  TemporaryDirectory directory;
  std::string path = directory.getPath("a?b#c%.db");
  std::string start = "test database '" + path + "': ";
};
} // namespace

TEST_F(SqliteTest, KeepsRowsOfAllTypes) {
  {
    auto database = open();
    llvm::cantFail(database->execute("CREATE TABLE t(a INTEGER, b REAL, c)"));
    SqliteStatement insert(*database, "INSERT INTO t VALUES (?, ?, ?)");
    llvm::cantFail(insert.bind(INT64_MIN)
                       .bind(0.1)
                       .bind(llvm::StringRef("a\0b", 3))
                       .run());
    llvm::cantFail(
        insert.bind(int64_t(7)).bind(2.0).bind(std::optional<int64_t>()).run());
    EXPECT_EQ(database->countChanges(), 1);
  }
  auto database = open({.access = Access::Read});
  SqliteStatement rows(*database, "SELECT * FROM t ORDER BY a");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.getInteger(0), INT64_MIN);
  EXPECT_EQ(rows.getReal(1), 0.1);
  EXPECT_EQ(rows.getText(2), std::string("a\0b", 3));
  ASSERT_TRUE(rows.step());
  EXPECT_TRUE(rows.isNull(2));
  EXPECT_EQ(rows.getText(2), "");
  EXPECT_FALSE(rows.step());
  llvm::cantFail(rows.takeError());
  EXPECT_EQ(getError(database->execute("DELETE FROM t")),
            start + "attempt to write a readonly database");
}

TEST_F(SqliteTest, ErrorsNameTheFile) {
  auto database = open();
  EXPECT_EQ(getError(database->execute("nonsense")),
            start + "near \"nonsense\": syntax error");
  SqliteStatement rows(*database, "SELECT * FROM t");
  EXPECT_FALSE(rows.bind(int64_t(1)).step());
  EXPECT_EQ(getError(rows.takeError()), start + "no such table: t");
  EXPECT_EQ(getError(rows.takeError()), "");
  EXPECT_EQ(getError(database->queryInteger("SELECT x").takeError()),
            start + "no such column: x");
  SqliteDatabase missing("test database", directory.getPath("none/a.db"));
  EXPECT_NE(getError(missing.open({}))
                .find("unable to open database file: No "
                      "such file or directory"),
            std::string::npos);
}

TEST_F(SqliteTest, TransactionsAreAllOrNothing) {
  auto database = open();
  llvm::cantFail(database->execute("CREATE TABLE t(a UNIQUE)"));
  auto insertTwice = [&]() -> llvm::Error {
    if (llvm::Error error = database->execute("INSERT INTO t VALUES (1)"))
      return error;
    return database->execute("INSERT INTO t VALUES (1)");
  };
  EXPECT_EQ(getError(database->runTransaction(insertTwice)),
            start + "UNIQUE constraint failed: t.a");
  EXPECT_EQ(llvm::cantFail(database->queryInteger("SELECT count(*) FROM t")),
            0);
  llvm::cantFail(database->runTransaction(
      [&] { return database->execute("INSERT INTO t VALUES (1)"); }));
  EXPECT_EQ(llvm::cantFail(database->queryInteger("SELECT count(*) FROM t")),
            1);
}

TEST_F(SqliteTest, WaitsForOthersNoLongerThanItMay) {
  auto one = open(), two = open({.busyMilliseconds = 1});
  llvm::cantFail(one->execute("CREATE TABLE t(a)"));
  llvm::cantFail(one->runTransaction([&] {
    EXPECT_EQ(getError(two->execute("INSERT INTO t VALUES (1)")),
              start + "database is locked");
    return one->execute("INSERT INTO t VALUES (2)");
  }));
  llvm::cantFail(two->execute("INSERT INTO t VALUES (1)"));
}

TEST_F(SqliteTest, ChecksTheKind) {
  auto database = open();
  EXPECT_TRUE(llvm::cantFail(database->isNew()));
  EXPECT_EQ(getError(database->checkKind(5, 1, "of this test")),
            start +
                "requires a database of this test, got one of another program");
  llvm::cantFail(database->execute(
      "PRAGMA application_id = 5; PRAGMA user_version = 2; CREATE TABLE t(a)"));
  EXPECT_FALSE(llvm::cantFail(database->isNew()));
  EXPECT_EQ(getError(database->checkKind(5, 1, "of this test")),
            start + "requires schema version 1, got 2");
  EXPECT_EQ(getError(database->checkKind(5, 1, "of this test", ": make it")),
            start + "requires schema version 1, got 2");
  EXPECT_EQ(getError(database->checkKind(5, 3, "of this test", ": make it")),
            start + "requires schema version 3, got 2: make it");
  EXPECT_EQ(getError(database->checkKind(5, 2, "of this test")), "");
  EXPECT_EQ(getError(database->checkPages()), "");
}

TEST_F(SqliteTest, FindsDanglingReferences) {
  auto database = open();
  llvm::cantFail(database->execute(
      "CREATE TABLE t(a INTEGER PRIMARY KEY); CREATE TABLE u(a REFERENCES "
      "t(a)); INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)"));
  EXPECT_EQ(getError(database->checkIntegrity("nothing")), "");
  llvm::cantFail(database->execute("DELETE FROM t"));
  EXPECT_EQ(getError(database->checkIntegrity("nothing")),
            start + "the file is damaged: a row of u refers to nothing");
}

TEST_F(SqliteTest, FindsTruncatedFiles) {
  llvm::cantFail(open()->execute("CREATE TABLE t(a); CREATE TABLE u(a)"));
  std::string whole = readFile(path);
  ASSERT_EQ(whole.size(), 3 * 4096u);
  SqliteDatabase database("test database", path);
  EXPECT_EQ(getError(database.checkHeader()), "");
  for (size_t size : {1, 17, 50, 100, 4095, 4096, 8192, 12287}) {
    writeFile(path, whole.substr(0, size));
    std::string expected = start + "the file is damaged: it was truncated";
    EXPECT_EQ(getError(database.checkHeader(/*countPages=*/true)), expected)
        << size;
    EXPECT_EQ(getError(database.checkHeader()), size < 4096 ? expected : "")
        << size;
  }
  writeFile(path, "");
  EXPECT_EQ(getError(database.checkHeader()), "");
  writeFile(path, "not a database");
  EXPECT_EQ(getError(database.checkHeader()),
            start + "requires a database, got a file of another kind");
}
