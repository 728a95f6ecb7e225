//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The database of schedules: environments, kernels, measurements, claims and
// choices, in SQLite (docs/guide/tuning.md).
// Several processes may tune with one file: claims keep two from measuring the
// same schedule, write-ahead logging lets readers go on while one writes, and
// every change is one transaction, so that a killed process leaves a sound
// file. Rows of other machines, toolchains or protocols stay but are not read
// (`environment`).
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/TuningStore.h"
#include "kas/Support/Sqlite.h"
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
using namespace kas::tuning;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

// The columns are described in docs/guide/tuning.md.
// environment: machine, toolchain and protocol of times. kernel: class and
// shape, with the text of the class. measurement: one schedule of one kernel in
// one environment, with its times or its failure. claim: a schedule that a
// process is measuring. network: how often a network uses a kernel. choice: the
// schedule that was chosen, empty for none.
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

// "kasT": other databases of kas have another number. Version 1 has the same
// tables, with keys that are hashes of printed IR and cannot be converted.
static constexpr int64_t applicationId = 0x6b617354, schemaVersion = 2;

/// The processor as the system names it: LLVM's `znver4` is a family, whose
/// members differ in clock and caches.
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
  // Another version of either may make other code from the same schedule.
  return llvm::formatv("kas {0}, LLVM {1}", getVersion(), LLVM_VERSION_STRING);
}

/// The target by everything that kernels or times depend on; a change of any of
/// these makes another environment.
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

/// Wall-clock time, since claims are compared between processes and after
/// restarts.
static double getNow() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The database and the environment that all statements are about.
struct TuningStore::Impl {
  explicit Impl(StringRef path) : database("tuning database", path) {}

  Error checkFile() const;
  Error checkKind() const;
  Error addEnvironment(const TuningEnvironment &given);

  SqliteDatabase database;
  /// The row of this machine, toolchain and protocol.
  int64_t environment = 0;
};

/// Checks the file before SQLite writes to it: a file of another kind stays
/// untouched.
Error TuningStore::Impl::checkFile() const {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(database.getPath(), status) ||
      status.getSize() == 0)
    return Error::success();
  if (!llvm::sys::fs::is_regular_file(status))
    return database.makeError("requires a regular file");
  if (Error error = database.checkHeader(/*countPages=*/true))
    return error;
  // SQLite would open it for reading, and fail at the first measurement.
  if (!(status.permissions() & llvm::sys::fs::all_write))
    return database.makeError("the file is read-only");
  return Error::success();
}

/// The file is new, and gets its tables, or it is a sound one of this kind.
Error TuningStore::Impl::checkKind() const {
  Expected<bool> isNew = database.isNew();
  if (!isNew)
    return isNew.takeError();
  if (!*isNew)
    return database.checkKind(
        applicationId, schemaVersion, "of kas-tune",
        ", whose kernels have keys that cannot be converted: remove the file "
        "or name another one, and tune again");
  if (Error error = database.execute(schema))
    return error;
  return database.execute(
      "PRAGMA application_id = " + llvm::Twine(applicationId) +
      "; PRAGMA user_version = " + llvm::Twine(schemaVersion));
}

Error TuningStore::Impl::addEnvironment(const TuningEnvironment &given) {
  // The three columns of both statements.
  auto bind = [&](SqliteStatement &statement) -> SqliteStatement & {
    return statement.bind(StringRef(given.target))
        .bind(StringRef(given.toolchain))
        .bind(StringRef(given.protocol));
  };
  SqliteStatement insert(database,
                         "INSERT OR IGNORE INTO environment(target, toolchain, "
                         "protocol) VALUES (?, ?, ?)");
  if (Error error = bind(insert).run())
    return error;
  SqliteStatement select(database,
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
  auto impl = std::make_unique<Impl>(path);
  SqliteDatabase &database = impl->database;
  if (Error error = impl->checkFile())
    return error;
  // Others write one row at a time.
  if (Error error = database.open(
          // Writers hold the lock for milliseconds; a slow file system may take
          // seconds.
          {.access = SqliteOptions::Access::Create, .busyMilliseconds = 30000}))
    return error;
  // Whoever comes first makes the tables.
  if (Error error = database.runTransaction([&] { return impl->checkKind(); }))
    return error;
  // NORMAL: a power failure may lose the last measurements, not damage the
  // file.
  if (Error error = database.execute("PRAGMA journal_mode = WAL; "
                                     "PRAGMA synchronous = NORMAL; "
                                     "PRAGMA foreign_keys = ON"))
    return error;
  // A damaged file is found now and not after an hour of measuring.
  if (Error error = database.checkPages())
    return error;
  if (Error error = database.runTransaction(
          [&] { return impl->addEnvironment(environment); }))
    return error;
  return std::unique_ptr<TuningStore>(new TuningStore(std::move(impl)));
}

/// The row of the kernel, which may have been there.
Expected<int64_t> TuningStore::addKernel(const StoredKernel &kernel) {
  SqliteStatement insert(impl->database,
                         "INSERT OR IGNORE INTO kernel(class, shape, "
                         "class_text) VALUES (?, ?, ?)");
  if (Error error = insert.bind(StringRef(kernel.classKey))
                        .bind(StringRef(kernel.shape))
                        .bind(StringRef(kernel.classText))
                        .run())
    return error;
  SqliteStatement select(
      impl->database,
      "SELECT id, class_text FROM kernel WHERE class = ? AND shape = ?");
  select.bind(StringRef(kernel.classKey)).bind(StringRef(kernel.shape));
  int64_t id = select.step() ? select.getInteger(0) : 0;
  // The class key is a hash of 64 bits: two classes with one key are
  // distinguished by their text.
  bool isSame = id && select.getText(1) == kernel.classText;
  if (Error error = select.takeError())
    return error;
  if (!isSame)
    return impl->database.makeError("two classes have the key " +
                                    kernel.classKey);
  return id;
}

/// True if the schedule is neither measured nor claimed by a live process;
/// the claim is this process's for `seconds`.
Expected<bool> TuningStore::claim(int64_t kernel, StringRef schedule,
                                  double seconds) {
  bool isMine = false;
  // One transaction: of two processes that ask at once one gets the schedule.
  // A claim that has run out is replaced like none.
  Error error = impl->database.runTransaction([&]() -> Error {
    double now = getNow();
    SqliteStatement known(impl->database,
                          // Either it was measured (0) or somebody has claimed
                          // it (the process).
                          "SELECT 0 FROM measurement WHERE kernel = ?1 AND "
                          "environment = ?2 AND schedule = ?3 UNION ALL "
                          "SELECT process FROM claim WHERE kernel = ?1 AND "
                          "environment = ?2 AND schedule = ?3 AND until > ?4");
    known.bind(kernel).bind(impl->environment).bind(schedule).bind(now);
    isMine = true;
    while (known.step()) {
      // The claim of a process that was killed is none.
      auto process = static_cast<pid_t>(known.getInteger(0));
      // Signal 0 only asks whether the process exists. Processes of other
      // machines that share the file look dead here unless the number exists;
      // at worst both measure.
      isMine &= process != 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    }
    if (Error error = known.takeError())
      return error;
    if (!isMine)
      return Error::success();
    SqliteStatement insert(
        impl->database, "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?)");
    return insert.bind(kernel)
        .bind(impl->environment)
        .bind(schedule)
        .bind(static_cast<int64_t>(::getpid()))
        .bind(now + seconds)
        .run();
  });
  if (error)
    return error;
  return isMine;
}

/// Binds a number, or nothing where the measurement failed.
static void bindTime(SqliteStatement &statement, bool isThere, double value) {
  if (isThere)
    statement.bind(value);
  else
    statement.bind(std::optional<int64_t>());
}

/// Replaces the measurement of the same schedule, and ends the claim.
Error TuningStore::record(int64_t kernel, const StoredMeasurement &given) {
  return impl->database.runTransaction([&]() -> Error {
    SqliteStatement insert(
        impl->database,
        "INSERT OR REPLACE INTO measurement(kernel, environment, schedule, "
        "failure, ms, default_ms, ratio, compile_ms, error, features, "
        "provenance, measured_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    bool isThere = given.failure.empty();
    // A failure has no times: null, so that averages of other tools leave it
    // out.
    insert.bind(kernel).bind(impl->environment).bind(StringRef(given.schedule));
    if (isThere)
      insert.bind(std::optional<int64_t>());
    else
      insert.bind(StringRef(given.failure));
    for (double value :
         {given.ms, given.defaultMs, given.ratio, given.compileMs, given.error})
      bindTime(insert, isThere, value);
    // As text, so that the table can be read with any tool; 7 digits are those
    // of f32.
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
    SqliteStatement remove(impl->database,
                           "DELETE FROM claim WHERE kernel = ? AND "
                           "environment = ? AND schedule = ?");
    return remove.bind(kernel)
        .bind(impl->environment)
        .bind(StringRef(given.schedule))
        .run();
  });
}

/// In the order of `getMeasurement`.
static constexpr const char *measurementColumns =
    "m.schedule, m.failure, m.ms, m.default_ms, m.ratio, m.compile_ms, "
    "m.error, m.provenance, m.features";

/// From a row with the columns below.
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
    // A number that was damaged by hand becomes 0, which the model survives.
    word.getAsDouble(value);
    result.features.push_back(static_cast<float>(value));
  }
  return result;
}

static Expected<std::vector<StoredMeasurement>>
readMeasurements(SqliteStatement &rows) {
  std::vector<StoredMeasurement> result;
  while (rows.step())
    result.push_back(getMeasurement(rows));
  if (Error error = rows.takeError())
    return error;
  return result;
}

/// In the order in which they were recorded, so that a search repeats itself.
Expected<std::vector<StoredMeasurement>>
TuningStore::read(int64_t kernel) const {
  std::string text = std::string("SELECT ") + measurementColumns +
                     " FROM measurement m WHERE kernel = ? AND environment = ? "
                     "ORDER BY id";
  SqliteStatement rows(impl->database, text);
  rows.bind(kernel).bind(impl->environment);
  return readMeasurements(rows);
}

Expected<std::vector<StoredMeasurement>>
TuningStore::readClass(StringRef classKey) const {
  std::string text = std::string("SELECT ") + measurementColumns +
                     " FROM measurement m JOIN kernel k ON k.id = m.kernel "
                     "WHERE k.class = ? AND m.environment = ? ORDER BY m.id";
  SqliteStatement rows(impl->database, text);
  rows.bind(classKey).bind(impl->environment);
  return readMeasurements(rows);
}

/// Measurements of the class that another environment has: the user is informed
/// that they are of no use here.
Expected<int64_t> TuningStore::countForeign(StringRef classKey) const {
  SqliteStatement row(impl->database,
                      "SELECT count(*) FROM measurement m JOIN kernel k ON "
                      "k.id = m.kernel WHERE k.class = ? AND m.environment "
                      "<> ?");
  row.bind(classKey).bind(impl->environment);
  int64_t count = row.step() ? row.getInteger(0) : 0;
  if (Error error = row.takeError())
    return error;
  return count;
}

/// Replaces the number of an earlier tuning of the network.
Error TuningStore::recordUse(StringRef network, int64_t kernel, int64_t uses) {
  SqliteStatement insert(impl->database,
                         "INSERT OR REPLACE INTO network VALUES (?, ?, ?)");
  return insert.bind(network).bind(kernel).bind(uses).run();
}

Expected<std::map<std::string, std::map<std::string, int64_t>>>
TuningStore::readNetworks() const {
  SqliteStatement rows(
      impl->database,
      // Only kernels with a choice count: a network that is being tuned has
      // fewer.
      "SELECT n.name, k.class, count(*) FROM network n JOIN kernel k ON k.id = "
      "n.kernel WHERE EXISTS (SELECT 1 FROM choice c WHERE c.kernel = k.id AND "
      "c.environment = ?) GROUP BY n.name, k.class");
  rows.bind(impl->environment);
  std::map<std::string, std::map<std::string, int64_t>> result;
  while (rows.step())
    result[rows.getText(0)][rows.getText(1)] = rows.getInteger(2);
  if (Error error = rows.takeError())
    return error;
  return result;
}

/// The last choice counts: a longer search replaces a shorter one's.
Error TuningStore::recordChoice(int64_t kernel, StringRef schedule,
                                StringRef provenance) {
  SqliteStatement insert(impl->database,
                         "INSERT OR REPLACE INTO choice VALUES (?, ?, ?, ?)");
  return insert.bind(kernel)
      .bind(impl->environment)
      .bind(schedule)
      .bind(provenance)
      .run();
}

Expected<std::vector<std::pair<std::string, std::string>>>
TuningStore::readChoices(StringRef classKey, StringRef network) const {
  SqliteStatement rows(
      impl->database,
      "SELECT k.shape, c.schedule FROM choice c JOIN kernel k ON k.id = "
      // An empty network means all.
      "c.kernel WHERE k.class = ?1 AND c.environment = ?2 AND (?3 = '' OR "
      "EXISTS (SELECT 1 FROM network n WHERE n.kernel = k.id AND n.name = ?3)) "
      "ORDER BY k.id");
  rows.bind(classKey).bind(impl->environment).bind(network);
  std::vector<std::pair<std::string, std::string>> result;
  while (rows.step())
    result.emplace_back(rows.getText(0), rows.getText(1));
  if (Error error = rows.takeError())
    return error;
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
  SqliteStatement rows(impl->database, text);
  rows.bind(classKey).bind(impl->environment).bind(network);
  std::vector<std::pair<std::string, StoredMeasurement>> result;
  while (rows.step())
    result.emplace_back(rows.getText(9), getMeasurement(rows));
  if (Error error = rows.takeError())
    return error;
  return result;
}

Error TuningStore::checkIntegrity() const {
  return impl->database.checkIntegrity("nothing");
}
