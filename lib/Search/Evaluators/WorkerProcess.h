//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A child process that answers lines with lines.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_SEARCH_EVALUATORS_WORKERPROCESS_H
#define LIB_SEARCH_EVALUATORS_WORKERPROCESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <memory>
#include <sys/types.h>

namespace kas::search {

struct WorkerSettings {
  /// A command of the shell.
  std::string command;
  /// MiB of address space; 0: no limit.
  uint64_t memoryLimit = 0;
  /// The value of KAS_WORKER in its environment.
  unsigned index = 0;
};

/// A process of a group of its own, all of which is killed with this object.
class WorkerProcess {
public:
  using Clock = std::chrono::steady_clock;

  static llvm::Expected<std::unique_ptr<WorkerProcess>>
  start(const WorkerSettings &settings);

  WorkerProcess(const WorkerProcess &) = delete;
  WorkerProcess &operator=(const WorkerProcess &) = delete;
  ~WorkerProcess();

  /// Writes `text` to its standard input. Fails when it has ended, or does not
  /// read, until `deadline`.
  llvm::Error write(llvm::StringRef text, Clock::time_point deadline);

  /// The next line of its standard output, without the end of line. Fails when
  /// it has ended (saying how), when there is no line until `deadline`, or when
  /// the line is longer than 16 MiB.
  llvm::Expected<std::string> readLine(Clock::time_point deadline);

  /// Whether it ends within a time.
  bool endsUntil(Clock::time_point deadline);

private:
  WorkerProcess() = default;
  /// How it ended; waits a little for one that is ending.
  std::string describeEnd();
  /// Waits until `descriptor` is ready; false when `deadline` comes first.
  static bool waitFor(int descriptor, short events, Clock::time_point deadline);

  pid_t pid = -1;
  int input = -1, output = -1;
  std::string buffer;
};

} // namespace kas::search

#endif // LIB_SEARCH_EVALUATORS_WORKERPROCESS_H
