//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/TuningStore.h"
#include "Sqlite.h"
#include "kas/Support/Target.h"
#include "kas/Support/Version.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <unistd.h>

using namespace kas;
using namespace kas::search;
using namespace kas::tuning;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

// The columns are described in docs/guide/tuning.md.
static constexpr const char *schema = R"(
CREATE TABLE environment(
  id INTEGER PRIMARY KEY NOT NULL,
  target TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  protocol TEXT NOT NULL,
  UNIQUE (target, toolchain, protocol)
);
CREATE TABLE kernel(
  id INTEGER PRIMARY KEY NOT NULL,
  class TEXT NOT NULL,
  shape TEXT NOT NULL,
  class_text TEXT NOT NULL,
  UNIQUE (class, shape)
);
CREATE TABLE measurement(
  id INTEGER PRIMARY KEY NOT NULL,
  kernel INTEGER NOT NULL REFERENCES kernel(id),
  environment INTEGER NOT NULL REFERENCES environment(id),
  schedule TEXT NOT NULL,
  failure TEXT,
  ms REAL,
  default_ms REAL,
  ratio REAL,
  compile_ms REAL,
  error REAL,
  features TEXT NOT NULL,
  provenance TEXT NOT NULL,
  measured_at REAL NOT NULL,
  UNIQUE (kernel, environment, schedule)
);
CREATE TABLE claim(
  kernel INTEGER NOT NULL REFERENCES kernel(id),
  environment INTEGER NOT NULL REFERENCES environment(id),
  schedule TEXT NOT NULL,
  process INTEGER NOT NULL,
  until REAL NOT NULL,
  PRIMARY KEY (kernel, environment, schedule)
) WITHOUT ROWID;
CREATE TABLE network(
  name TEXT NOT NULL,
  kernel INTEGER NOT NULL REFERENCES kernel(id),
  uses INTEGER NOT NULL,
  PRIMARY KEY (name, kernel)
) WITHOUT ROWID;
CREATE TABLE choice(
  kernel INTEGER NOT NULL REFERENCES kernel(id),
  environment INTEGER NOT NULL REFERENCES environment(id),
  schedule TEXT NOT NULL,
  provenance TEXT NOT NULL,
  PRIMARY KEY (kernel, environment)
) WITHOUT ROWID;
)";

// "kasT": other databases of kas have another number.
static constexpr int64_t applicationId = 0x6b617354, schemaVersion = 1;

/// What the system calls the processor: LLVM's name is that of a family.
static std::string getProcessorName() {
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo");
  if (!file)
    return "unknown";
  for (llvm::line_iterator line(**file); !line.is_at_end(); ++line)
    if (line->starts_with("model name"))
      return line->split(':').second.trim().str();
  return "unknown";
}

std::string TuningEnvironment::getToolchain() {
  return llvm::formatv("kas {0}, LLVM {1}", getVersion(), LLVM_VERSION_STRING);
}

TuningEnvironment TuningEnvironment::get(const Target &target,
                                         StringRef protocol) {
  return {llvm::formatv("{0}; {1} {2}; vectors of {3} bits; caches of {4} and "
                        "{5} bytes; {6}",
                        getProcessorName(), target.triple, target.cpu,
                        target.vectorBits, target.l1Bytes, target.l2Bytes,
                        target.features)
              .str(),
          getToolchain(), protocol.str()};
}

static double getNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct TuningStore::Impl {
  ~Impl() { sqlite3_close_v2(connection); }

  Error locate(const llvm::Twine &what) const {
    return createStringError("tuning database '" + path + "': " + what);
  }
  Error locate(Error error) const {
    return error ? locate(llvm::toString(std::move(error))) : Error::success();
  }
  Error checkFile() const;
  Error connect();
  Error checkKind() const;
  Error addEnvironment(const TuningEnvironment &given);
  Expected<std::vector<StoredMeasurement>>
  readMeasurements(SqliteStatement &rows) const;

  std::string path;
  sqlite3 *connection = nullptr;
  int64_t environment = 0;
};

/// SQLite would take a short file of another kind for an empty one.
Error TuningStore::Impl::checkFile() const {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) || status.getSize() == 0)
    return Error::success();
  if (!llvm::sys::fs::is_regular_file(status))
    return locate("requires a regular file");
  auto header = llvm::MemoryBuffer::getFileSlice(
      path, std::min<uint64_t>(status.getSize(), 100), 0);
  if (!header)
    return locate(header.getError().message());
  StringRef bytes = (*header)->getBuffer();
  StringRef magic("SQLite format 3", 16);
  if (!bytes.starts_with(magic.take_front(bytes.size())))
    return locate("requires a database, got a file of another kind");
  // Without a log, all pages of the header are there (file format of SQLite,
  // sections 1.3.2 and 1.3.8).
  auto at = [&](size_t place) { return static_cast<uint8_t>(bytes[place]); };
  bool isWhole = bytes.size() == 100;
  if (isWhole && !llvm::sys::fs::exists(path + "-wal")) {
    uint64_t page = at(16) * 256u + at(17), pages = 0;
    for (size_t place = 28; place < 32; ++place)
      pages = pages * 256 + at(place);
    isWhole = status.getSize() >= pages * (page == 1 ? 65536 : page);
  }
  if (!isWhole)
    return locate("the file is damaged: it was truncated");
  if (!(status.permissions() & llvm::sys::fs::all_write))
    return locate("the file is read-only");
  return Error::success();
}

Error TuningStore::Impl::connect() {
  int code = sqlite3_open_v2(path.c_str(), &connection,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                             nullptr);
  if (code != SQLITE_OK)
    return locate(getSqliteMessage(connection, code));
  // Others write one row at a time.
  sqlite3_busy_timeout(connection, 30000);
  return Error::success();
}

/// The file is new, and gets its tables, or it is a sound one of this kind.
Error TuningStore::Impl::checkKind() const {
  Expected<int64_t> kind =
      querySqliteInteger(connection, "PRAGMA application_id");
  if (!kind)
    return kind.takeError();
  Expected<int64_t> tables =
      querySqliteInteger(connection, "SELECT count(*) FROM sqlite_schema");
  if (!tables)
    return tables.takeError();
  if (*kind == 0 && *tables == 0) {
    if (Error error = executeSqlite(connection, schema))
      return error;
    std::string pragmas =
        llvm::formatv("PRAGMA application_id = {0}; PRAGMA user_version = {1}",
                      applicationId, schemaVersion);
    return executeSqlite(connection, pragmas.c_str());
  }
  if (*kind != applicationId)
    return createStringError("requires a database of kas-tune, got one of "
                             "another program");
  Expected<int64_t> version =
      querySqliteInteger(connection, "PRAGMA user_version");
  if (!version)
    return version.takeError();
  if (*version != schemaVersion)
    return createStringError("requires schema version " +
                             llvm::Twine(schemaVersion) + ", got " +
                             llvm::Twine(*version));
  return Error::success();
}

Error TuningStore::Impl::addEnvironment(const TuningEnvironment &given) {
  auto bind = [&](SqliteStatement &statement) -> SqliteStatement & {
    return statement.bind(StringRef(given.target))
        .bind(StringRef(given.toolchain))
        .bind(StringRef(given.protocol));
  };
  SqliteStatement insert(connection,
                         "INSERT OR IGNORE INTO environment(target, toolchain, "
                         "protocol) VALUES (?, ?, ?)");
  if (Error error = bind(insert).run())
    return error;
  SqliteStatement select(connection,
                         "SELECT id FROM environment WHERE target = ? AND "
                         "toolchain = ? AND protocol = ?");
  if (bind(select).step())
    environment = select.getInteger(0);
  return select.takeError();
}

TuningStore::TuningStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
TuningStore::~TuningStore() = default;

Expected<std::unique_ptr<TuningStore>>
TuningStore::open(StringRef path, const TuningEnvironment &environment) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  if (Error error = impl->checkFile())
    return error;
  if (Error error = impl->connect())
    return error;
  auto prepare = [&]() -> Error {
    // Whoever comes first makes the tables.
    if (Error error =
            runTransaction(impl->connection, [&] { return impl->checkKind(); }))
      return error;
    if (Error error =
            executeSqlite(impl->connection, "PRAGMA journal_mode = WAL; "
                                            "PRAGMA synchronous = NORMAL; "
                                            "PRAGMA foreign_keys = ON"))
      return error;
    SqliteStatement check(impl->connection, "PRAGMA quick_check(1)");
    std::string result = check.step() ? check.getText(0) : "";
    if (Error error = check.takeError())
      return error;
    if (result != "ok")
      return createStringError("the file is damaged: " + result);
    return runTransaction(impl->connection,
                          [&] { return impl->addEnvironment(environment); });
  };
  if (Error error = prepare())
    return impl->locate(std::move(error));
  return std::unique_ptr<TuningStore>(new TuningStore(std::move(impl)));
}

Expected<int64_t> TuningStore::addKernel(const StoredKernel &kernel) {
  SqliteStatement insert(impl->connection,
                         "INSERT OR IGNORE INTO kernel(class, shape, "
                         "class_text) VALUES (?, ?, ?)");
  if (Error error = insert.bind(StringRef(kernel.classKey))
                        .bind(StringRef(kernel.shape))
                        .bind(StringRef(kernel.classText))
                        .run())
    return impl->locate(std::move(error));
  SqliteStatement select(
      impl->connection,
      "SELECT id, class_text FROM kernel WHERE class = ? AND shape = ?");
  select.bind(StringRef(kernel.classKey)).bind(StringRef(kernel.shape));
  int64_t id = select.step() ? select.getInteger(0) : 0;
  bool isSame = id && select.getText(1) == kernel.classText;
  if (Error error = select.takeError())
    return impl->locate(std::move(error));
  if (!isSame)
    return impl->locate("two classes have the key " + kernel.classKey);
  return id;
}

Expected<bool> TuningStore::claim(int64_t kernel, StringRef schedule,
                                  double seconds) {
  bool isMine = false;
  Error error = runTransaction(impl->connection, [&]() -> Error {
    double now = getNow();
    SqliteStatement known(impl->connection,
                          "SELECT 0 FROM measurement WHERE kernel = ?1 AND "
                          "environment = ?2 AND schedule = ?3 UNION ALL "
                          "SELECT process FROM claim WHERE kernel = ?1 AND "
                          "environment = ?2 AND schedule = ?3 AND until > ?4");
    known.bind(kernel).bind(impl->environment).bind(schedule).bind(now);
    isMine = true;
    while (known.step()) {
      // The claim of a process that was killed is none.
      auto process = static_cast<pid_t>(known.getInteger(0));
      isMine &= process != 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    }
    if (Error error = known.takeError())
      return error;
    if (!isMine)
      return Error::success();
    SqliteStatement insert(
        impl->connection,
        "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?)");
    return insert.bind(kernel)
        .bind(impl->environment)
        .bind(schedule)
        .bind(static_cast<int64_t>(::getpid()))
        .bind(now + seconds)
        .run();
  });
  if (error)
    return impl->locate(std::move(error));
  return isMine;
}

/// Binds a number, or nothing where the measurement failed.
static void bindTime(SqliteStatement &statement, bool isThere, double value) {
  if (isThere)
    statement.bind(value);
  else
    statement.bind(std::optional<int64_t>());
}

Error TuningStore::record(int64_t kernel, const StoredMeasurement &given) {
  return impl->locate(runTransaction(impl->connection, [&]() -> Error {
    SqliteStatement insert(
        impl->connection,
        "INSERT OR REPLACE INTO measurement(kernel, environment, schedule, "
        "failure, ms, default_ms, ratio, compile_ms, error, features, "
        "provenance, measured_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bool isThere = given.failure.empty();
    insert.bind(kernel).bind(impl->environment).bind(StringRef(given.schedule));
    if (isThere)
      insert.bind(std::optional<int64_t>());
    else
      insert.bind(StringRef(given.failure));
    for (double value :
         {given.ms, given.defaultMs, given.ratio, given.compileMs, given.error})
      bindTime(insert, isThere, value);
    std::string features;
    llvm::raw_string_ostream stream(features);
    llvm::interleave(
        given.features, stream,
        [&](float value) { stream << llvm::formatv("{0:e6}", value); }, ",");
    if (Error error = insert.bind(StringRef(features))
                          .bind(StringRef(given.provenance))
                          .bind(getNow())
                          .run())
      return error;
    SqliteStatement remove(impl->connection,
                           "DELETE FROM claim WHERE kernel = ? AND "
                           "environment = ? AND schedule = ?");
    return remove.bind(kernel)
        .bind(impl->environment)
        .bind(StringRef(given.schedule))
        .run();
  }));
}

static constexpr const char *measurementColumns =
    "m.schedule, m.failure, m.ms, m.default_ms, m.ratio, m.compile_ms, "
    "m.error, m.provenance, m.features";

static StoredMeasurement getMeasurement(const SqliteStatement &row) {
  StoredMeasurement result;
  result.schedule = row.getText(0);
  if (!row.isNull(1))
    result.failure = row.getText(1);
  result.ms = row.getReal(2);
  result.defaultMs = row.getReal(3);
  result.ratio = row.getReal(4);
  result.compileMs = row.getReal(5);
  result.error = row.getReal(6);
  result.provenance = row.getText(7);
  std::string features = row.getText(8);
  llvm::SmallVector<StringRef> words;
  StringRef(features).split(words, ',', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    double value = 0;
    word.getAsDouble(value);
    result.features.push_back(static_cast<float>(value));
  }
  return result;
}

Expected<std::vector<StoredMeasurement>>
TuningStore::Impl::readMeasurements(SqliteStatement &rows) const {
  std::vector<StoredMeasurement> result;
  while (rows.step())
    result.push_back(getMeasurement(rows));
  if (Error error = rows.takeError())
    return locate(std::move(error));
  return result;
}

Expected<std::vector<StoredMeasurement>>
TuningStore::read(int64_t kernel) const {
  std::string text = std::string("SELECT ") + measurementColumns +
                     " FROM measurement m WHERE kernel = ? AND environment = ? "
                     "ORDER BY id";
  SqliteStatement rows(impl->connection, text.c_str());
  rows.bind(kernel).bind(impl->environment);
  return impl->readMeasurements(rows);
}

Expected<std::vector<StoredMeasurement>>
TuningStore::readClass(StringRef classKey) const {
  std::string text = std::string("SELECT ") + measurementColumns +
                     " FROM measurement m JOIN kernel k ON k.id = m.kernel "
                     "WHERE k.class = ? AND m.environment = ? ORDER BY m.id";
  SqliteStatement rows(impl->connection, text.c_str());
  rows.bind(classKey).bind(impl->environment);
  return impl->readMeasurements(rows);
}

Expected<int64_t> TuningStore::countForeign(StringRef classKey) const {
  SqliteStatement row(impl->connection,
                      "SELECT count(*) FROM measurement m JOIN kernel k ON "
                      "k.id = m.kernel WHERE k.class = ? AND m.environment "
                      "<> ?");
  row.bind(classKey).bind(impl->environment);
  int64_t count = row.step() ? row.getInteger(0) : 0;
  if (Error error = row.takeError())
    return impl->locate(std::move(error));
  return count;
}

Error TuningStore::recordUse(StringRef network, int64_t kernel, int64_t uses) {
  SqliteStatement insert(impl->connection,
                         "INSERT OR REPLACE INTO network VALUES (?, ?, ?)");
  return impl->locate(insert.bind(network).bind(kernel).bind(uses).run());
}

Expected<std::map<std::string, std::map<std::string, int64_t>>>
TuningStore::readNetworks() const {
  SqliteStatement rows(
      impl->connection,
      "SELECT n.name, k.class, count(*) FROM network n JOIN kernel k ON k.id = "
      "n.kernel WHERE EXISTS (SELECT 1 FROM choice c WHERE c.kernel = k.id AND "
      "c.environment = ?) GROUP BY n.name, k.class");
  rows.bind(impl->environment);
  std::map<std::string, std::map<std::string, int64_t>> result;
  while (rows.step())
    result[rows.getText(0)][rows.getText(1)] = rows.getInteger(2);
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  return result;
}

Error TuningStore::recordChoice(int64_t kernel, StringRef schedule,
                                StringRef provenance) {
  SqliteStatement insert(impl->connection,
                         "INSERT OR REPLACE INTO choice VALUES (?, ?, ?, ?)");
  return impl->locate(insert.bind(kernel)
                          .bind(impl->environment)
                          .bind(schedule)
                          .bind(provenance)
                          .run());
}

Expected<std::vector<std::pair<std::string, std::string>>>
TuningStore::readChoices(StringRef classKey, StringRef network) const {
  SqliteStatement rows(
      impl->connection,
      "SELECT k.shape, c.schedule FROM choice c JOIN kernel k ON k.id = "
      "c.kernel WHERE k.class = ?1 AND c.environment = ?2 AND (?3 = '' OR "
      "EXISTS (SELECT 1 FROM network n WHERE n.kernel = k.id AND n.name = ?3)) "
      "ORDER BY k.id");
  rows.bind(classKey).bind(impl->environment).bind(network);
  std::vector<std::pair<std::string, std::string>> result;
  while (rows.step())
    result.emplace_back(rows.getText(0), rows.getText(1));
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  return result;
}

Expected<std::vector<std::pair<std::string, StoredMeasurement>>>
TuningStore::readBest(StringRef classKey, StringRef network) const {
  // With min(), SQLite takes the other columns of the same row.
  std::string text = std::string("SELECT ") + measurementColumns +
                     ", k.shape, min(m.ratio) FROM measurement m JOIN kernel k "
                     "ON k.id = m.kernel WHERE k.class = ?1 AND m.environment "
                     "= ?2 AND m.failure IS NULL AND (?3 = '' OR EXISTS "
                     "(SELECT 1 FROM network n WHERE n.kernel = k.id AND "
                     "n.name = ?3)) GROUP BY k.id ORDER BY k.id";
  SqliteStatement rows(impl->connection, text.c_str());
  rows.bind(classKey).bind(impl->environment).bind(network);
  std::vector<std::pair<std::string, StoredMeasurement>> result;
  while (rows.step())
    result.emplace_back(rows.getText(9), getMeasurement(rows));
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  return result;
}

Error TuningStore::checkIntegrity() const {
  SqliteStatement rows(impl->connection, "PRAGMA integrity_check");
  std::string problems;
  while (rows.step())
    if (std::string row = rows.getText(0); row != "ok")
      problems += (problems.empty() ? "" : "; ") + row;
  if (Error error = rows.takeError())
    return impl->locate(std::move(error));
  SqliteStatement dangling(impl->connection, "PRAGMA foreign_key_check");
  if (dangling.step())
    problems += "a row of " + dangling.getText(0) + " refers to nothing";
  if (Error error = dangling.takeError())
    return impl->locate(std::move(error));
  if (!problems.empty())
    return impl->locate("the file is damaged: " + problems);
  return Error::success();
}
