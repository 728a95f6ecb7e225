//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measurements of schedules in an SQLite database.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TUNING_TUNINGSTORE_H
#define KAS_TUNING_TUNINGSTORE_H

#include "kas/Support/Target.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kas::tuning {

/// What a time depends on besides the kernel and its schedule. Times of one
/// environment are never taken for those of another.
struct TuningEnvironment {
  /// The processor with its features, vectors and caches.
  std::string target;
  /// Versions of kas and LLVM.
  std::string toolchain;
  /// How is measured: threads, weights prepared ahead, runs.
  std::string protocol;

  /// The versions of this program.
  static std::string getToolchain();
  /// That of code for `target` on this machine.
  static TuningEnvironment get(const Target &target, llvm::StringRef protocol);
};

struct StoredKernel {
  std::string classKey, classText, shape;
};

/// What became of one schedule of one kernel.
struct StoredMeasurement {
  /// The text of the attribute; empty for what the cost model chooses.
  std::string schedule;
  /// Why there is no time; empty if there is one.
  std::string failure;
  /// The least of all times, in milliseconds, and that of the kernel without a
  /// schedule.
  double ms = 0, defaultMs = 0;
  /// Their ratio: below 1, the schedule is faster than none.
  double ratio = 1;
  double compileMs = 0;
  /// The largest difference from plain loops, relative to the largest
  /// magnitude.
  double error = 0;
  /// Where it comes from: network, algorithm, seed, trial, or donor.
  std::string provenance;
  /// What a learned model sees of the schedule and the kernel.
  std::vector<float> features;
};

/// A file of measurements. Several processes may use one at a time; what one
/// has recorded the others see. A process that is killed loses at most what it
/// was measuring.
class TuningStore {
public:
  /// Opens the file `path`, which is made if there is none. Errors, which leave
  /// the file as it is: another kind of file, a damaged one, another version of
  /// the schema (there is no conversion of older ones), one that cannot be
  /// written.
  static llvm::Expected<std::unique_ptr<TuningStore>>
  open(llvm::StringRef path, const TuningEnvironment &environment);
  ~TuningStore();

  /// The number of a kernel; it is added if it is new.
  llvm::Expected<int64_t> addKernel(const StoredKernel &kernel);

  /// Says that this process measures a schedule now. False if it was measured
  /// in this environment, or if another process, which still runs, has said so
  /// less than `seconds` ago.
  llvm::Expected<bool> claim(int64_t kernel, llvm::StringRef schedule,
                             double seconds);

  /// Records a measurement of this environment; it takes the place of an older
  /// one.
  llvm::Error record(int64_t kernel, const StoredMeasurement &measurement);

  /// All measurements of a kernel, in the order of their record.
  llvm::Expected<std::vector<StoredMeasurement>> read(int64_t kernel) const;

  /// Those of all kernels of a class.
  llvm::Expected<std::vector<StoredMeasurement>>
  readClass(llvm::StringRef classKey) const;

  /// How many measurements of the kernels of a class other environments have:
  /// they are not used.
  llvm::Expected<int64_t> countForeign(llvm::StringRef classKey) const;

  /// Says that a network uses a kernel so many times.
  llvm::Error recordUse(llvm::StringRef network, int64_t kernel, int64_t uses);

  /// Distinct kernels by network and class, of the networks with a measurement
  /// in this environment.
  llvm::Expected<std::map<std::string, std::map<std::string, int64_t>>>
  readNetworks() const;

  /// The schedule that was chosen for a kernel in this environment. An empty
  /// text: the cost model's.
  llvm::Error recordChoice(int64_t kernel, llvm::StringRef schedule,
                           llvm::StringRef provenance);
  /// The choices of the kernels of a class by shape; only those of `network`
  /// unless that is empty.
  llvm::Expected<std::vector<std::pair<std::string, std::string>>>
  readChoices(llvm::StringRef classKey, llvm::StringRef network) const;

  /// The fastest measurement of each kernel of a class, chosen or not, by
  /// shape; only those of `network` unless that is empty.
  llvm::Expected<std::vector<std::pair<std::string, StoredMeasurement>>>
  readBest(llvm::StringRef classKey, llvm::StringRef network) const;

  /// Looks at every page and row.
  llvm::Error checkIntegrity() const;

private:
  struct Impl;
  explicit TuningStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace kas::tuning

#endif // KAS_TUNING_TUNINGSTORE_H
