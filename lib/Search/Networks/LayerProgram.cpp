//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of transformations of one layer: the steps, their text, and their
// application to a convolution.
//
// Steps are applied by the functions of the transform dialect's ops
// (kas/Dialect/Kas/TransformOps/IteratorDomain.h), and printed as those ops, so
// a script reproduces what the search has made.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Networks/LayerProgram.h"
#include "kas/Codegen/CPU/Strategy/ScheduleSpace.h"
#include "kas/Dialect/Kas/TransformOps/IteratorDomain.h"
#include "kas/Support/Reason.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

using namespace kas;
using namespace kas::codegen;
using namespace kas::search;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// In the order of `StepKind`.
StringRef kas::search::getName(StepKind kind) {
  static constexpr llvm::StringLiteral names[numStepKinds] = {
      "split", "restrict",  "bottleneck", "slabs",
      "group", "depthwise", "schedule"};
  return names[static_cast<unsigned>(kind)];
}

/// A neural step changes the function that the layer computes; the weights of
/// the layer are then useless.
bool kas::search::isNeural(StepKind kind) {
  return kind != StepKind::Split && kind != StepKind::Schedule;
}

/// A split comes first or not at all, see `listSteps`.
static bool isSplit(ArrayRef<ProgramStep> program) {
  return !program.empty() && program.front().kind == StepKind::Split;
}

/// This text is also a key of programs: two programs with the same text must be
/// the same.
std::string kas::search::toString(ArrayRef<ProgramStep> program) {
  if (program.empty())
    return "keep";
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      program, stream,
      [&](const ProgramStep &step) {
        // The part matters only when there are two.
        if (isSplit(program) && step.kind != StepKind::Split)
          stream << step.part << ": ";
        stream << getName(step.kind);
        switch (step.kind) {
        case StepKind::Restrict:
          stream << " " << step.iterator << " from " << step.number;
          break;
        case StepKind::Bottleneck:
        case StepKind::Slabs:
          stream << " " << step.iterator << " by " << step.number;
          break;
        case StepKind::Split:
        case StepKind::Group:
          stream << " " << step.number;
          break;
        case StepKind::Schedule:
          stream << " "
                 << stringifyCPUStrategy(static_cast<CPUStrategy>(step.number));
          break;
        case StepKind::Depthwise:
          break;
        }
      },
      "; ");
  return text;
}

//===----------------------------------------------------------------------===//
// Application
//===----------------------------------------------------------------------===//

/// The output channels of a named convolution are its second iterator. N, F,
/// OH, OW, C, KH, KW are the iterators of `linalg.conv_2d_nchw_fchw`.
static constexpr unsigned channelIterator = 1;

/// Cuts after output channel `first`: the parts compute channels [0, first) and
/// [first, size) into one tensor.
static LogicalResult splitOutputs(RewriterBase &rewriter,
                                  SmallVectorImpl<linalg::LinalgOp> &parts,
                                  int64_t first, std::string &reason) {
  linalg::LinalgOp op = parts.front();
  auto tileable = dyn_cast<TilingInterface>(op.getOperation());
  // A program has one split at most, see `listSteps`.
  if (parts.size() != 1 || !tileable)
    return miss(reason, "requires an operation that is not split yet");
  int64_t size = op.getStaticLoopRanges()[channelIterator];
  if (first < 1 || first >= size)
    return miss(reason, "requires a part of 1 to ", size - 1, " of ", size,
                " outputs, got ", first);
  rewriter.setInsertionPoint(op);
  auto [head, tail] = linalg::splitOp(rewriter, tileable, channelIterator,
                                      rewriter.getIndexAttr(first));
  if (!head || !tail)
    return miss(reason, "requires an operation that can be split");
  // The handle of the caller now refers to the two new operations.
  parts.assign({cast<linalg::LinalgOp>(head.getOperation()),
                cast<linalg::LinalgOp>(tail.getOperation())});
  return success();
}

/// Only strategies that the schedule space of the operation has are legal. The
/// tile sizes stay 0: the strategy chooses them.
static LogicalResult setStrategy(linalg::LinalgOp op, int64_t number,
                                 std::string &reason) {
  auto strategy = symbolizeCPUStrategy(number);
  auto space = getScheduleSpace(op);
  if (!space)
    return miss(reason, llvm::toString(space.takeError()));
  if (!strategy ||
      llvm::none_of(space->points, [&](const SchedulePoint &point) {
        return cast<CPUScheduleAttr>(point.schedule).getStrategy() == *strategy;
      }))
    return miss(reason, "requires a strategy that suits the operation");
  op->setAttr(KasCPUDialect::scheduleName,
              CPUScheduleAttr::get(op->getContext(), *strategy, 0, 0, 0, 0, 0));
  return success();
}

/// `step` on one operation, which is replaced; the result is the new one.
/// Nothing is changed where the step does not qualify.
static FailureOr<linalg::LinalgOp> transform(RewriterBase &rewriter,
                                             linalg::LinalgOp op,
                                             const ProgramStep &step,
                                             std::string &reason) {
  // Grouping needs the iterators of the output and the input channels. They are
  // inferred, since earlier steps may have moved them.
  auto onChannels = [&](auto change) -> FailureOr<linalg::LinalgOp> {
    auto iterators = inferChannelIterators(op, reason);
    if (failed(iterators))
      return failure();
    return change(iterators->first, iterators->second);
  };
  switch (step.kind) {
  case StepKind::Restrict:
    return restrictReduction(rewriter, op, step.iterator, step.number, reason);
  case StepKind::Bottleneck:
    return bottleneckIterator(rewriter, op, step.iterator, step.number, reason);
  case StepKind::Slabs:
    return splitIntoSlabs(rewriter, op, step.iterator, step.number, reason);
  case StepKind::Group:
    return onChannels([&](int64_t first, int64_t second) {
      return groupIterators(rewriter, op, first, second, step.number, reason);
    });
  case StepKind::Depthwise:
    return onChannels([&](int64_t first, int64_t second) {
      return depthwiseIterators(rewriter, op, first, second, reason);
    });
  case StepKind::Schedule:
    if (failed(setStrategy(op, step.number, reason)))
      return failure();
    return op;
  case StepKind::Split:
    break;
  }
  // `applyStep` handles it.
  llvm_unreachable("a split makes two parts");
}

/// Keeps `parts` up to date: steps replace operations.
LogicalResult kas::search::applyStep(RewriterBase &rewriter,
                                     SmallVectorImpl<linalg::LinalgOp> &parts,
                                     const ProgramStep &step,
                                     std::string &reason) {
  if (step.kind == StepKind::Split)
    return splitOutputs(rewriter, parts, step.number, reason);
  if (step.part >= parts.size())
    return miss(reason, "requires a split for part ", step.part);
  auto changed = transform(rewriter, parts[step.part], step, reason);
  if (failed(changed))
    return failure();
  parts[step.part] = *changed;
  return success();
}

/// Steps before this one slice the old weights, which keeps the IR valid; now
/// every part gets a weight argument of the shape that it needs.
LogicalResult kas::search::finishProgram(RewriterBase &rewriter,
                                         ArrayRef<linalg::LinalgOp> parts,
                                         ArrayRef<ProgramStep> program,
                                         std::string &reason) {
  if (llvm::none_of(
          program, [](const ProgramStep &step) { return isNeural(step.kind); }))
    return success();
  for (linalg::LinalgOp part : parts)
    if (failed(renewWeights(rewriter, part, reason)))
      return failure();
  return success();
}

/// Not transactional: programs are made on copies.
FailureOr<SmallVector<linalg::LinalgOp, 2>>
kas::search::applyProgram(RewriterBase &rewriter, linalg::LinalgOp op,
                          ArrayRef<ProgramStep> program, std::string &reason) {
  SmallVector<linalg::LinalgOp, 2> parts{op};
  for (const ProgramStep &step : program)
    if (failed(applyStep(rewriter, parts, step, reason)))
      return failure();
  if (failed(finishProgram(rewriter, parts, program, reason)))
    return failure();
  return parts;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// All steps on one part, whether they qualify or not: trying them is the only
/// complete test. Powers of two only, as channel counts are.
static void listSteps(linalg::LinalgOp op, unsigned part, int64_t splitAt,
                      const StepChoices &choices,
                      std::vector<ProgramStep> &steps) {
  auto types = op.getIteratorTypesArray();
  // The first iterator is the batch, which is not a matter of the layer.
  // Restricting or splitting the batch would change what the network is for.
  auto forEach = [&](auto use) {
    for (unsigned iterator = 1; iterator < types.size(); ++iterator)
      use(iterator, types[iterator] == utils::IteratorType::parallel);
  };
  // The outputs of the first part are the inputs that the second one leaves
  // out, as in the paper. `Restrict` appears for the second part only: with
  // `split 16`, the second part reads the input channels from 16 on.
  if (part == 1)
    forEach([&](unsigned iterator, bool isParallel) {
      if (!isParallel)
        steps.push_back({StepKind::Restrict, part, iterator, splitAt});
    });
  forEach([&](unsigned iterator, bool) {
    for (int64_t factor = 2; factor <= choices.factor; factor *= 2)
      steps.push_back({StepKind::Bottleneck, part, iterator, factor});
  });
  forEach([&](unsigned iterator, bool isParallel) {
    for (int64_t slabs = 2; isParallel && slabs <= choices.slabs; slabs *= 2)
      steps.push_back({StepKind::Slabs, part, iterator, slabs});
  });
  for (int64_t groups = 2; groups <= choices.groups; groups *= 2)
    steps.push_back({StepKind::Group, part, 0, groups});
  steps.push_back({StepKind::Depthwise, part, 0, 0});
  // Strategies for the CPU's register tiles.
  if (choices.schedules)
    for (CPUStrategy strategy :
         {CPUStrategy::Panels, CPUStrategy::Direct, CPUStrategy::RowVectors})
      steps.push_back(
          {StepKind::Schedule, part, 0, static_cast<int64_t>(strategy)});
}

/// The grammar of programs: [split] (steps of part 0) [schedule] (steps of part
/// 1) [schedule]. The order of steps on different parts does not matter, so
/// only this one is offered.
std::vector<ProgramStep>
kas::search::listSteps(ArrayRef<linalg::LinalgOp> parts,
                       ArrayRef<ProgramStep> program,
                       const StepChoices &choices) {
  std::vector<ProgramStep> steps;
  // Two cuts: after 16 channels, and in half. For 32 channels they are the
  // same.
  if (program.empty()) {
    linalg::LinalgOp op = parts.front();
    int64_t outputs = op.getStaticLoopRanges()[channelIterator];
    steps.push_back({StepKind::Split, 0, 0, 16});
    if (outputs / 2 != 16)
      steps.push_back({StepKind::Split, 0, 0, outputs / 2});
  }
  // Parts are transformed one after the other, and scheduled last. After a step
  // on part 1, part 0 is not touched again.
  unsigned first = program.empty() ? 0 : program.back().part;
  int64_t splitAt = isSplit(program) ? program.front().number : 0;
  // After a schedule a part takes no more steps: they would drop the attribute.
  for (unsigned part = first; part < parts.size(); ++part)
    if (program.empty() || program.back().part != part ||
        program.back().kind != StepKind::Schedule)
      ::listSteps(parts[part], part, splitAt, choices, steps);
  // Canonical order: by kind, as moves are, then by the numbers.
  llvm::sort(steps, [](const ProgramStep &a, const ProgramStep &b) {
    return std::tie(a.kind, a.part, a.iterator, a.number) <
           std::tie(b.kind, b.part, b.iterator, b.number);
  });
  return steps;
}

//===----------------------------------------------------------------------===//
// Scripts
//===----------------------------------------------------------------------===//

/// One op of the transform dialect. `handle` is consumed, and `next` becomes
/// the handle of its result.
static void printStep(raw_ostream &stream, const ProgramStep &step,
                      std::string &handle, std::string next) {
  constexpr llvm::StringLiteral type =
      " : (!transform.any_op) -> !transform.any_op\n";
  stream << next << " = transform.kas." << getName(step.kind) << " " << handle;
  switch (step.kind) {
  case StepKind::Restrict:
    stream << " iterator " << step.iterator << " from " << step.number;
    break;
  case StepKind::Bottleneck:
  case StepKind::Slabs:
    stream << " iterator " << step.iterator << " by " << step.number;
    break;
  case StepKind::Group:
    stream << " by " << step.number;
    break;
  default:
    break;
  }
  stream << type;
  handle = std::move(next);
}

/// Handles are `%NAME`, `%NAME_0`, `%NAME_1`, ... Each op of the transform
/// dialect invalidates its operand, so every step continues with a new handle.
std::string kas::search::printTransforms(ArrayRef<ProgramStep> program,
                                         StringRef name, StringRef indent) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SmallVector<std::string, 2> handles{("%" + name).str()};
  unsigned count = 0;
  auto getNext = [&] { return ("%" + name + "_" + Twine(count++)).str(); };
  for (const ProgramStep &step : program) {
    stream << indent;
    // `transform.structured.split` gives one handle for both parts, which is
    // taken apart.
    if (step.kind == StepKind::Split) {
      std::string both = getNext();
      stream << both << " = transform.structured.split " << handles[0]
             << " after " << step.number << " {dimension = " << channelIterator
             << "} : !transform.any_op\n";
      handles = {getNext(), getNext()};
      stream << indent << handles[0] << ", " << handles[1]
             << " = transform.split_handle " << both
             << " : (!transform.any_op) -> (!transform.any_op, "
                "!transform.any_op)\n";
    } else if (step.kind == StepKind::Schedule) {
      // A strategy is an attribute on the operation: the handle stays valid.
      std::string strategy = getNext();
      stream << strategy
             << " = transform.param.constant #kas_cpu.schedule<strategy = "
             << stringifyCPUStrategy(static_cast<CPUStrategy>(step.number))
             << "> -> !transform.any_param\n"
             << indent << "transform.annotate " << handles[step.part] << " \""
             << KasCPUDialect::scheduleName << "\" = " << strategy
             << " : !transform.any_op, !transform.any_param\n";
    } else {
      printStep(stream, step, handles[step.part], getNext());
    }
  }
  // The counterpart of `finishProgram`.
  if (llvm::any_of(program,
                   [](const ProgramStep &step) { return isNeural(step.kind); }))
    for (const std::string &handle : handles)
      stream << indent << getNext() << " = transform.kas.new_weights " << handle
             << " : (!transform.any_op) -> !transform.any_op\n";
  return text;
}
