//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by the modes of kas-train.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_KAS_TRAIN_KASTRAIN_H
#define TOOLS_KAS_TRAIN_KASTRAIN_H

#include "kas/Training/Trainer.h"

namespace kas::training {

struct TrainSettings {
  std::string file, function = "forward";
  SplitSpec data;
  ProgramOptions program;
  TrainerOptions trainer;
  /// .npz files: parameters to begin with, and where they go at the end.
  std::string weights, output;
  std::string checkpoint;
  /// Reports are JSON lines.
  bool json = false;
  /// The space whose operators a worker puts into the network.
  std::string space;
};

/// Parses `NAME=PIXELS` or `flip` with commas between them (crop, shift, flip),
/// or nothing at all.
llvm::Expected<Augmentation> parseAugmentation(llvm::StringRef text);

/// Trains the network of the file.
llvm::Error trainFile(const TrainSettings &settings);

/// Trains networks with the operators of requests, JSON lines on the standard
/// input, until it ends.
llvm::Error runWorker(const TrainSettings &settings);

} // namespace kas::training

#endif // TOOLS_KAS_TRAIN_KASTRAIN_H
