//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The state of a search database while it is open. Private to the library.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_CORE_SEARCHSTOREIMPL_H
#define LIB_SEARCH_CORE_SEARCHSTOREIMPL_H

#include "kas/Search/Core/SearchStore.h"
#include "kas/Support/Sqlite.h"
#include <chrono>

namespace kas::search {

/// One for each open file. The functions are called under the protocol of
/// `SearchStore`: by one thread at a time.
struct SearchStore::Impl {
  explicit Impl(llvm::StringRef path) : database("search database", path) {}
  ~Impl();

  /// Holds the lock against other searches; -1 when only reading. It is open
  /// as long as the connection: closing it would drop SQLite's own locks.
  int lock = -1;
  SqliteDatabase database;
  SearchSettings settings;
  /// The number of the next event: proposals and outcomes counted together.
  int64_t events = 0;
  /// When a transaction was last forced to the disk.
  std::chrono::steady_clock::time_point synchronized;

  /// See the definitions in OpenStore.cpp.
  llvm::Error lockFile();
  llvm::Error checkKind();
  llvm::Error readSettings();
  llvm::Error compareSettings(const SearchSettings &wanted);
  llvm::Error create(const SearchSettings &wanted,
                     const SearchSettings &information);
  /// Runs `change` as a transaction; its error rolls it back.
  llvm::Error write(llvm::function_ref<llvm::Error()> change);
  llvm::Error insertMetrics(const char *table, uint64_t id,
                            const Metrics &metrics);
  llvm::Error insertOutcome(uint64_t id, const Outcome &outcome, double seconds,
                            uint64_t event);
  llvm::Error insertTraining(llvm::ArrayRef<TrainingPoint> points);
  llvm::Expected<bool> hasTable(llvm::StringRef name) const;
  llvm::Error insertFinal(uint64_t id, const Outcome &outcome, double seconds);
  llvm::Expected<std::map<uint64_t, Metrics>>
  readMetrics(const char *table) const;
  llvm::Error readFinals(std::vector<StoredCandidate> &candidates) const;
};

} // namespace kas::search

#endif // LIB_SEARCH_CORE_SEARCHSTOREIMPL_H
