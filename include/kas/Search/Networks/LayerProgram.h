//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is done to one convolution of a network: neural transformations, which
// change what it computes, mixed with those of loops, which do not (Turner et
// al., "Neural Architecture Search as Program Transformation Exploration",
// ASPLOS 2021, section 5).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_NETWORKS_LAYERPROGRAM_H
#define KAS_SEARCH_NETWORKS_LAYERPROGRAM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <string>

namespace kas::search {

/// Those of kas/TransformOps/IteratorDomain.h, and two that preserve values:
/// `Split` cuts the convolution in two along its output channels, which makes
/// parts of which each may be transformed by itself, and `Schedule` chooses the
/// strategy by which the CPU's register tiles read the data; tiles, the order
/// of loops and unrolling are the strategy's.
enum class StepKind : uint8_t {
  Split,
  Restrict,
  Bottleneck,
  Slabs,
  Group,
  Depthwise,
  Schedule
};
constexpr unsigned numStepKinds = 7;
/// As the operations of the transform dialect are called.
llvm::StringRef getName(StepKind kind);
/// Whether it changes what is computed.
bool isNeural(StepKind kind);

/// One transformation of a part of a layer.
struct ProgramStep {
  StepKind kind = StepKind::Group;
  /// 1: the part after a split; else 0.
  unsigned part = 0;
  /// Of `Restrict`, `Bottleneck` and `Slabs`.
  int64_t iterator = 0;
  /// The factor, the number of groups or slabs, the first point, the outputs of
  /// the first part, or the `CPUStrategy`.
  int64_t number = 0;

  bool operator==(const ProgramStep &) const = default;
};
using LayerProgram = llvm::SmallVector<ProgramStep, 4>;

/// Such as `split 16; 1: restrict 4 from 16; 1: group 2`; `keep` for no step.
std::string toString(llvm::ArrayRef<ProgramStep> program);

/// Applies `step` to the one or two `parts` of a layer; where it does not
/// qualify nothing changes and `reason` says why.
mlir::LogicalResult
applyStep(mlir::RewriterBase &rewriter,
          llvm::SmallVectorImpl<mlir::linalg::LinalgOp> &parts,
          const ProgramStep &step, std::string &reason);

/// Gives the parts weights of their own where `program` changes what is
/// computed (`renewWeights`).
mlir::LogicalResult finishProgram(mlir::RewriterBase &rewriter,
                                  llvm::ArrayRef<mlir::linalg::LinalgOp> parts,
                                  llvm::ArrayRef<ProgramStep> program,
                                  std::string &reason);

/// All steps of `program` on `op`, and `finishProgram`. When it fails, the
/// function around `op` may have been changed.
mlir::FailureOr<llvm::SmallVector<mlir::linalg::LinalgOp, 2>>
applyProgram(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
             llvm::ArrayRef<ProgramStep> program, std::string &reason);

/// The steps that might suit the parts: those that do are found by trying.
/// `steps` came before. In canonical order.
struct StepChoices {
  /// The most groups, slabs, and the largest factor of a bottleneck; powers of
  /// two.
  int64_t groups = 16, slabs = 4, factor = 4;
  /// Whether strategies are chosen.
  bool schedules = false;
};
std::vector<ProgramStep> listSteps(llvm::ArrayRef<mlir::linalg::LinalgOp> parts,
                                   llvm::ArrayRef<ProgramStep> program,
                                   const StepChoices &choices);

/// The program as operations of the transform dialect on the handle `%NAME` of
/// one convolution, each line indented by `indent`.
std::string printTransforms(llvm::ArrayRef<ProgramStep> program,
                            llvm::StringRef name, llvm::StringRef indent);

} // namespace kas::search

#endif // KAS_SEARCH_NETWORKS_LAYERPROGRAM_H
