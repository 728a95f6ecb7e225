//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Child processes: a command that answers lines with lines, and a function that
// may crash or hang.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_CHILDPROCESS_H
#define KAS_SUPPORT_CHILDPROCESS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace kas {

struct ChildCommand {
  /// A command of the shell.
  std::string command;
  /// MiB of address space; 0: no limit.
  uint64_t memoryLimit = 0;
  /// The value of KAS_WORKER in its environment.
  unsigned index = 0;
};

/// A process of a group of its own, all of which is killed with this object.
/// Errors call it "the worker".
class ChildProcess {
public:
  using Clock = std::chrono::steady_clock;

  /// Starts a command whose standard input and output are this object's.
  static llvm::Expected<std::unique_ptr<ChildProcess>>
  start(const ChildCommand &command);

  /// Forks this process to run `work`, which writes to the descriptor that it
  /// is given; the child ends with it. The child gets no input, and dies with
  /// this process. This process must not use threads that `work` needs.
  static llvm::Expected<std::unique_ptr<ChildProcess>>
  fork(llvm::function_ref<void(int)> work);

  ChildProcess(const ChildProcess &) = delete;
  ChildProcess &operator=(const ChildProcess &) = delete;
  ~ChildProcess();

  /// Writes `text` to its standard input. Fails when it has ended, or does not
  /// read, until `deadline`.
  llvm::Error write(llvm::StringRef text, Clock::time_point deadline);

  /// The next line of its standard output, without the end of line. Fails when
  /// it has ended (saying how), when there is no line until `deadline`, or when
  /// the line is longer than 16 MiB.
  llvm::Expected<std::string> readLine(Clock::time_point deadline);

  /// All that it writes until it closes its output; nothing when `deadline`
  /// comes first.
  llvm::Expected<std::optional<std::string>>
  readAll(Clock::time_point deadline);

  /// Whether it ends within a time.
  bool endsUntil(Clock::time_point deadline);

  /// How it ended; waits a little for one that is ending. Such as "died:
  /// Killed" or "ended with code 1".
  std::string describeEnd();

private:
  enum class Reading { Some, End, Late };

  ChildProcess() = default;
  /// Appends what it has written to `buffer`.
  llvm::Expected<Reading> read(Clock::time_point deadline);

  pid_t pid = -1;
  int input = -1, output = -1;
  std::string buffer;
};

struct ProcessLimits {
  /// Seconds until the process counts as one that hangs.
  double seconds = 20;
  /// Bytes of address space; 0: no limit.
  uint64_t memory = 0;
};

/// Runs `work` in a process that is forked for it and returns its bytes, or its
/// error. Other errors: the process died, ended without an answer, or did not
/// end in time. What it prints is lost. This process must not use threads that
/// `work` needs.
llvm::Expected<std::string>
runForked(llvm::function_ref<llvm::Expected<std::string>()> work,
          const ProcessLimits &limits = {});

} // namespace kas

#endif // KAS_SUPPORT_CHILDPROCESS_H
