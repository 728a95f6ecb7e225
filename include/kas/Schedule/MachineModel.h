//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What work takes on a machine: learned from measured operators, kept in a
// file.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SCHEDULE_MACHINEMODEL_H
#define KAS_SCHEDULE_MACHINEMODEL_H

#include "kas/Schedule/StageWork.h"
#include "llvm/Support/Error.h"
#include <string>

namespace kas::schedule {

/// Predicted times are sums over the kinds of work: more of any kind takes more
/// time, and stages add up.
struct MachineModel {
  /// Of one count, by kind of work.
  std::array<double, numWorks> milliseconds = {};
  /// 99 of 100 operators that it was learned from took no less than their
  /// predicted time divided by this.
  double margin = 1;
  /// The processor, as LLVM calls it.
  std::string cpu;

  /// Milliseconds of an operator at one binding: all stages together.
  double predict(const StageWork &work) const;

  /// What a usual core takes, of a processor of that name.
  static MachineModel getUsual(llvm::StringRef cpu);
  /// The text of a file. An error says what it requires and what it got; one of
  /// another processor or another version of kas is an error as well.
  static llvm::Expected<MachineModel> parse(llvm::StringRef text,
                                            llvm::StringRef cpu);
  std::string print() const;

  /// `kas/machine-CPU.json` in the user's cache directory; empty when there is
  /// none.
  static std::string getPath(llvm::StringRef cpu);
};

/// An operator at one binding that was measured.
struct WorkSample {
  StageWork work;
  double milliseconds = 0;
};

/// The model with the least sum of absolute errors of the logarithms (squares
/// where they are small), drawn a little to the usual one, which decides where
/// there are few samples. Deterministic. All times must be positive.
MachineModel fitMachineModel(llvm::ArrayRef<WorkSample> samples,
                             llvm::StringRef cpu);

} // namespace kas::schedule

#endif // KAS_SCHEDULE_MACHINEMODEL_H
