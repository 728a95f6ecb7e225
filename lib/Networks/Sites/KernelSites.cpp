//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the layers and blocks of a network that a kernel of the tensor level
// can replace.
// `matchAttention` finds blocks, `matchSite` layers; each is checked here for
// what a kernel [C, positions] -> [C, positions] can stand for. A layer that
// changes the number of channels is several copies of a kernel on gcd(inputs,
// outputs) channels (docs/reference/tensor-level.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Networks/Sites/KernelSites.h"
#include "Matching.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace kas;
using namespace kas::networks;

int64_t KernelSite::getChannels() const { return std::gcd(inputs, outputs); }

/// How many kernels of gcd(inputs, outputs) channels are needed for the larger
/// side.
int64_t KernelSite::getCopies() const {
  return std::max(inputs, outputs) / getChannels();
}

/// A dense convolution that keeps the size but for its stride.
/// Fails without a reason for other kinds, which are no near misses.
static LogicalResult setConvolution(KernelSite &site) {
  static constexpr StringLiteral kinds[] = {"conv2d", "conv2d_strided",
                                            "conv1x1", "conv1x1_strided"};
  const Site &layer = site.layer;
  if (!llvm::is_contained(kinds, StringRef(layer.kind.name)))
    return failure();
  // A symbol that the kind does not have is 1.
  auto lookup = [&](StringRef name) {
    const auto *found = llvm::find_if(
        layer.binding, [&](const auto &entry) { return entry.first == name; });
    return found == layer.binding.end() ? int64_t(1) : found->second;
  };
  site.family = KernelFamily::Convolution;
  site.stride = lookup("s");
  site.inputs = lookup("Cin");
  site.outputs = lookup("Cout");
  site.samples = layer.dataShape[0];
  site.window = lookup("k");
  // Of the result: a stride is a mean of windows before the kernel.
  site.spatial = {layer.resultShape[2], layer.resultShape[3]};
  if (site.spatial[0] * site.stride != layer.dataShape[2] ||
      site.spatial[1] * site.stride != layer.dataShape[3])
    return failure();
  if (auto pad = layer.op->getOperand(0).getDefiningOp<tensor::PadOp>())
    // Replaced with the convolution.
    site.ops.push_back(pad);
  return success();
}

/// The number of samples, if the rows of `data` are tokens.
/// A reshape [samples, tokens..., C] -> [rows, C] before the layer says so;
/// without one rows are samples.
static std::optional<int64_t> getNumSamples(Value data) {
  auto collapse = data.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || collapse.getResultType().getRank() != 2 ||
      collapse.getReassociationIndices()[0].size() < 2)
    return std::nullopt;
  return collapse.getSrcType().getDimSize(0);
}

/// Of rows of tokens, or of samples.
static LogicalResult setLinear(KernelSite &site, std::string &reason) {
  // Copies are computed one after the other; more would be many small kernels.
  constexpr int64_t maxCopies = 8;
  const Site &layer = site.layer;
  site.inputs = layer.dataShape.back();
  site.outputs = layer.resultShape.back();
  site.samples = layer.dataShape[0];
  if (layer.kind.name == "batched_linear") {
    site.family = KernelFamily::TokenLinear;
    site.spatial = {layer.dataShape[1]};
  } else if (layer.kind.name != "linear") {
    return failure();
  } else if (std::optional<int64_t> samples = getNumSamples(layer.data)) {
    site.family = KernelFamily::TokenLinear;
    site.spatial = {site.samples / *samples};
    site.samples = *samples;
  } else {
    // One position: rows are samples.
    site.family = KernelFamily::Linear;
  }
  // Kernels on tokens may look at neighbours, though the layer does not.
  site.window = site.spatial.empty() ? 1 : 3;
  if (site.getChannels() != std::min(site.inputs, site.outputs) ||
      site.getCopies() > maxCopies)
    return miss(reason,
                "requires numbers of channels of which one divides the "
                "other, at most ",
                maxCopies, " times, got ", site.inputs, " and ", site.outputs);
  return success();
}

/// A layer by itself. `reason` is empty where it is no layer at all.
FailureOr<KernelSite> kas::networks::matchKernelSite(linalg::LinalgOp op,
                                                     std::string &reason,
                                                     int64_t stemChannels) {
  FailureOr<Site> layer = matchSite(op, reason, stemChannels);
  if (failed(layer))
    return failure();
  KernelSite site;
  site.layer = std::move(*layer);
  if (StringRef(site.layer.kind.name).starts_with("conv")
          ? failed(setConvolution(site))
          : failed(setLinear(site, reason)))
    return failure();
  site.ops.push_back(op);
  site.name = site.layer.name;
  site.data = site.layer.data;
  // Of one sample, as kernels count.
  site.flops = 2.0 * double(site.layer.macs / site.samples);
  site.parameters = site.layer.parameters;
  if (site.layer.weightArgument)
    site.weights.push_back(site.layer.weightArgument);
  return site;
}

/// Blocks first: their linear layers are no sites of their own.
std::vector<KernelSite> kas::networks::findKernelSites(ModuleOp module,
                                                       NearMissFn onNearMiss,
                                                       int64_t stemChannels) {
  std::vector<KernelSite> sites;
  // By the output projection.
  llvm::MapVector<Operation *, KernelSite> blocks;
  llvm::SmallSetVector<Operation *, 32> insideBlocks;
  std::string reason;
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) {
    if (op->getParentOfType<func::FuncOp>())
      ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops) {
    FailureOr<KernelSite> block = matchAttention(op, reason);
    if (failed(block)) {
      // A reason is given where it was almost a block.
      if (!reason.empty())
        onNearMiss(op, reason);
      continue;
    }
    // Their linear layers are replaced with the block.
    insideBlocks.insert(block->ops.begin(), block->ops.end());
    blocks.insert({op, std::move(*block)});
  }
  // In the order of the module, blocks at their output projections.
  for (linalg::LinalgOp op : ops) {
    if (auto *block = blocks.find(op); block != blocks.end()) {
      sites.push_back(std::move(block->second));
      continue;
    }
    if (insideBlocks.contains(op))
      continue;
    FailureOr<KernelSite> site = matchKernelSite(op, reason, stemChannels);
    if (succeeded(site))
      sites.push_back(std::move(*site));
    else if (!reason.empty())
      onNearMiss(op, reason);
  }
  return sites;
}
