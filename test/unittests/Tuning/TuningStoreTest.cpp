//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/TuningStore.h"
#include "kas/Support/Target.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fstream>
#include <sqlite3.h>
#include <unistd.h>

using namespace kas;
using namespace kas::tuning;

namespace {

class TuningStoreTest : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> directory;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kas-tuning", directory));
    llvm::sys::path::append(directory, "t.db");
    path = directory.str();
  }
  void TearDown() override {
    llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(path));
  }
  std::unique_ptr<TuningStore> open(llvm::StringRef cpu = "one",
                                    llvm::StringRef toolchain = "kas 1") {
    return llvm::cantFail(
        TuningStore::open(path, {cpu.str(), toolchain.str(), "least of 3"}));
  }
  std::string getError() {
    auto store = TuningStore::open(path, {"one", "kas 1", "least of 3"});
    return store ? "" : llvm::toString(store.takeError());
  }
  static StoredMeasurement makeMeasurement(llvm::StringRef schedule,
                                           double ms) {
    StoredMeasurement result;
    result.schedule = schedule;
    result.ms = ms;
    result.defaultMs = 2;
    result.ratio = ms / 2;
    result.compileMs = 50;
    result.error = 1e-7;
    result.provenance = "a test";
    result.features = {1, 0.5f, -3};
    return result;
  }

  std::string path;
  StoredKernel kernel{"0123456789abcdef", "conv", "1,2,3"};
};

} // namespace

TEST_F(TuningStoreTest, KeepsMeasurements) {
  {
    auto store = open();
    int64_t id = llvm::cantFail(store->addKernel(kernel));
    EXPECT_EQ(llvm::cantFail(store->addKernel(kernel)), id);
    llvm::cantFail(store->record(id, makeMeasurement("fast", 1)));
    StoredMeasurement failed;
    failed.schedule = "bad";
    failed.failure = "the worker died: Killed";
    failed.provenance = "a test";
    llvm::cantFail(store->record(id, failed));
  }
  auto store = open();
  int64_t id = llvm::cantFail(store->addKernel(kernel));
  auto rows = llvm::cantFail(store->read(id));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].schedule, "fast");
  EXPECT_EQ(rows[0].ms, 1);
  EXPECT_EQ(rows[0].ratio, 0.5);
  EXPECT_EQ(rows[0].features, (std::vector<float>{1, 0.5f, -3}));
  EXPECT_EQ(rows[0].provenance, "a test");
  EXPECT_EQ(rows[1].failure, "the worker died: Killed");
  EXPECT_FALSE(store->checkIntegrity());
}

/// The least of each kernel, with its own columns; those that failed do not
/// count.
TEST_F(TuningStoreTest, FindsTheFastest) {
  auto store = open();
  int64_t id = llvm::cantFail(store->addKernel(kernel));
  for (auto [schedule, ms] :
       {std::pair("slow", 3.), {"fast", 1.}, {"middle", 2.}})
    llvm::cantFail(store->record(id, makeMeasurement(schedule, ms)));
  kernel.shape = "1,2,4";
  int64_t other = llvm::cantFail(store->addKernel(kernel));
  StoredMeasurement failed;
  failed.schedule = "bad";
  failed.failure = "a test";
  llvm::cantFail(store->record(other, failed));
  llvm::cantFail(store->recordUse("net", other, 1));
  auto best = llvm::cantFail(store->readBest(kernel.classKey, ""));
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].first, "1,2,3");
  EXPECT_EQ(best[0].second.schedule, "fast");
  EXPECT_EQ(best[0].second.ratio, 0.5);
  EXPECT_EQ(best[0].second.features.size(), 3u);
  EXPECT_TRUE(llvm::cantFail(store->readBest(kernel.classKey, "net")).empty());
  EXPECT_TRUE(
      llvm::cantFail(open("two")->readBest(kernel.classKey, "")).empty());
}

/// Neither another processor's nor another toolchain's times are given out,
/// and nor are their choices.
TEST_F(TuningStoreTest, KeepsEnvironmentsApart) {
  auto store = open();
  int64_t id = llvm::cantFail(store->addKernel(kernel));
  llvm::cantFail(store->record(id, makeMeasurement("fast", 1)));
  llvm::cantFail(store->recordChoice(id, "fast", "a test"));
  llvm::cantFail(store->recordUse("net", id, 1));
  for (auto [cpu, toolchain] :
       {std::pair<llvm::StringRef, llvm::StringRef>("two", "kas 1"),
        {"one", "kas 2"}}) {
    auto other = open(cpu, toolchain);
    EXPECT_EQ(llvm::cantFail(other->addKernel(kernel)), id);
    EXPECT_TRUE(llvm::cantFail(other->read(id)).empty());
    EXPECT_TRUE(llvm::cantFail(other->readClass(kernel.classKey)).empty());
    EXPECT_TRUE(
        llvm::cantFail(other->readChoices(kernel.classKey, "")).empty());
    EXPECT_TRUE(llvm::cantFail(other->readNetworks()).empty());
    EXPECT_EQ(llvm::cantFail(other->countForeign(kernel.classKey)), 1);
    EXPECT_TRUE(llvm::cantFail(other->claim(id, "fast", 10)));
  }
  EXPECT_EQ(llvm::cantFail(store->countForeign(kernel.classKey)), 0);
  EXPECT_EQ(llvm::cantFail(store->readChoices(kernel.classKey, "net")).size(),
            1u);
  EXPECT_TRUE(
      llvm::cantFail(store->readChoices(kernel.classKey, "other")).empty());
  EXPECT_EQ(llvm::cantFail(store->readNetworks())["net"][kernel.classKey], 1);
}

TEST_F(TuningStoreTest, OnlyOneMeasures) {
  auto one = open(), two = open();
  int64_t id = llvm::cantFail(one->addKernel(kernel));
  EXPECT_TRUE(llvm::cantFail(one->claim(id, "a", 60)));
  EXPECT_FALSE(llvm::cantFail(two->claim(id, "a", 60)));
  EXPECT_TRUE(llvm::cantFail(two->claim(id, "b", 60)));
  llvm::cantFail(one->record(id, makeMeasurement("a", 1)));
  EXPECT_FALSE(llvm::cantFail(two->claim(id, "a", 60)));
  EXPECT_FALSE(llvm::cantFail(one->claim(id, "a", 60)));
  // A claim ends.
  EXPECT_TRUE(llvm::cantFail(one->claim(id, "c", -1)));
  EXPECT_TRUE(llvm::cantFail(two->claim(id, "c", 60)));
}

TEST_F(TuningStoreTest, EnvironmentNamesTheMachine) {
  Target target;
  target.cpu = "znver4";
  target.features = "+avx512f";
  TuningEnvironment environment = TuningEnvironment::get(target, "p");
  EXPECT_NE(environment.target.find("znver4"), std::string::npos);
  EXPECT_NE(environment.target.find("+avx512f"), std::string::npos);
  EXPECT_NE(environment.toolchain.find("LLVM"), std::string::npos);
  target.l2Bytes *= 2;
  EXPECT_NE(TuningEnvironment::get(target, "p").target, environment.target);
}

TEST_F(TuningStoreTest, RefusesOtherFiles) {
  std::ofstream(path) << "not a database";
  EXPECT_EQ(getError(), "tuning database '" + path +
                            "': requires a database, got a file of another "
                            "kind");
}

TEST_F(TuningStoreTest, RefusesOtherDatabases) {
  sqlite3 *connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  sqlite3_exec(connection, "CREATE TABLE t(x)", nullptr, nullptr, nullptr);
  sqlite3_close(connection);
  EXPECT_EQ(getError(), "tuning database '" + path +
                            "': requires a database of kas-tune, got one of "
                            "another program");
}

TEST_F(TuningStoreTest, RefusesOtherVersions) {
  open();
  sqlite3 *connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  sqlite3_exec(connection, "PRAGMA user_version = 99", nullptr, nullptr,
               nullptr);
  sqlite3_close(connection);
  EXPECT_EQ(getError(), "tuning database '" + path +
                            "': requires schema version 2, got 99");
}

/// Keys of version 1 were hashes of printed IR: no kernel would be found again.
TEST_F(TuningStoreTest, RefusesFormerKeys) {
  sqlite3 *connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, R"(
CREATE TABLE kernel(id INTEGER PRIMARY KEY NOT NULL, class TEXT NOT NULL,
  shape TEXT NOT NULL, class_text TEXT NOT NULL, UNIQUE (class, shape));
INSERT INTO kernel VALUES (1, '04ce0dfe86e95f67', '4,2;0123456789abcdef',
  '% = linalg.matmul ins(%, % : tensor<#x#xf32>, tensor<#x#xf32>)');
PRAGMA application_id = 0x6b617354;
PRAGMA user_version = 1;
)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(connection);
  auto read = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string before = read();
  EXPECT_EQ(getError(),
            "tuning database '" + path +
                "': requires schema version 2, got 1, whose kernels have keys "
                "that cannot be converted: remove the file or name another "
                "one, and tune again");
  EXPECT_EQ(read(), before);
}

TEST_F(TuningStoreTest, RefusesTruncatedFiles) {
  {
    auto store = open();
    int64_t id = llvm::cantFail(store->addKernel(kernel));
    llvm::cantFail(store->record(id, makeMeasurement("a", 1)));
  }
  uint64_t size = 0;
  ASSERT_FALSE(llvm::sys::fs::file_size(path, size));
  for (uint64_t part : {size - 100, size / 2, uint64_t(600), uint64_t(50)}) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(part)), 0);
    EXPECT_NE(getError().find("tuning database '" + path + "': "),
              std::string::npos)
        << part;
  }
}

TEST_F(TuningStoreTest, RefusesWhatCannotBeWritten) {
  path = llvm::sys::path::parent_path(path).str() + "/missing/t.db";
  EXPECT_NE(getError().find("unable to open"), std::string::npos);
  path =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(path)).str() +
      "/t.db";
}
