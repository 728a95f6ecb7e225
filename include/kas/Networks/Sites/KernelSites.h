//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the tensor level and the places in a model that they can take:
// convolutions, linear layers, attention blocks.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_NETWORKS_SITES_KERNELSITES_H
#define KAS_NETWORKS_SITES_KERNELSITES_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Networks/Sites/Extract.h"
#include "kas/Networks/Sites/Substitute.h"

namespace kas::networks {

/// What a kernel can stand for, and what it reads: C channels of an image, of
/// a sequence of tokens, or of samples without neighbours.
enum class KernelFamily { Convolution, TokenLinear, Linear, Attention };

/// A layer or a block as copies of a kernel of C channels to C.
struct KernelSite {
  KernelFamily family = KernelFamily::Convolution;
  /// The layer whose result the kernel gives, less what it is added to: of a
  /// block of attention the last projection.
  Site layer;
  std::string name;
  /// `[samples, inputs, height * stride, width * stride]` for convolutions,
  /// else `[samples, tokens, inputs]` or `[samples, inputs]`, or a reshape.
  mlir::Value data;
  int64_t samples = 1, inputs = 0, outputs = 0;
  /// Height and width of the result, or the number of tokens.
  llvm::SmallVector<int64_t, 2> spatial;
  /// Of a convolution; 3 for tokens, whose neighbours a kernel may look at.
  int64_t window = 1;
  int64_t stride = 1;
  /// The heads of a block of attention; 0 elsewhere.
  int64_t heads = 0;
  /// Two operations per multiply-add of one sample.
  double flops = 0;
  int64_t parameters = 0;
  /// What the kernel takes the place of, as far as nothing else uses it.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Arguments that go with it.
  llvm::SmallVector<mlir::BlockArgument> weights;

  /// The channels that one copy of the kernel works on.
  int64_t getChannels() const;
  /// How many copies there are, each for a block of channels.
  int64_t getCopies() const;
};

/// The place of a kernel that `op` is the last layer of. Failure with an empty
/// `reason` means that it is nothing like that; else `reason` says why it is
/// only nearly one. A layer with c*p and c*q channels is max(p, q) copies of a
/// kernel of C = c, their greatest common divisor.
///  - Convolutions are dense, of any stride and numbers of channels, and keep
///    the size but for the stride; no more than `stemChannels` inputs is none.
///  - Of the channels of linear layers one number divides the other, at most
///    eight times. Where the rows of the data are collapsed dimensions, the
///    first is that of samples, the others are tokens.
mlir::FailureOr<KernelSite>
matchKernelSite(mlir::linalg::LinalgOp op, std::string &reason,
                int64_t stemChannels = defaultStemChannels);

/// The block of attention that the linear layer `op` is the output projection
/// of: of the same data and number of channels, projections to queries, keys
/// and values (three layers, or fewer with more outputs), which are split into
/// heads; the scores, divided by the root of the channels of a head; a softmax
/// over the keys; the product with the values. Reports as `matchKernelSite`.
/// Attention between other data, or with a mask, is none.
mlir::FailureOr<KernelSite> matchAttention(mlir::linalg::LinalgOp op,
                                           std::string &reason);

/// All places for kernels in `module`, in the order of its text. The layers of
/// a block of attention are none themselves.
std::vector<KernelSite>
findKernelSites(mlir::ModuleOp module, NearMissFn onNearMiss,
                int64_t stemChannels = defaultStemChannels);

struct ExtractKernelResult {
  /// One for each family of which there are sites.
  llvm::SmallVector<KernelOp> kernels;
  unsigned numSites = 0;
  unsigned numNearMisses = 0;
};

/// Writes one `kas.kernel` for all sites of a family that are not marked yet
/// and marks them: `@convolutions`, `@token_linears`, `@linears`,
/// `@attentions`. It computes a standard convolution, a linear layer or
/// attention with G heads, from C channels to C; its budget is that of what it
/// stands for.
ExtractKernelResult extractKernel(mlir::ModuleOp module,
                                  const ExtractOptions &options);

/// Replaces marked sites by `kernelName`, a kernel of the module whose
/// variables have values, with the bindings of the one that marked them. These
/// are the sites of `family`, a kernel, or, if that is empty, of the kernel
/// that the search for this one began with; where there is no such, all. A
/// stride becomes means of windows before the kernel. Each block of C channels
/// has a copy of the kernel with weights of its own; what has fewer blocks than
/// the other side is repeated, or is the mean of those at the same place (see
/// `kas.dag.amplify`).
mlir::FailureOr<SubstituteResult> substituteKernel(mlir::ModuleOp module,
                                                   llvm::StringRef kernelName,
                                                   llvm::StringRef family = {});

} // namespace kas::networks

#endif // KAS_NETWORKS_SITES_KERNELSITES_H
