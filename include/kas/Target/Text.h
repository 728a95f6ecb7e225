//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators as text that people read: formulas, loops, graphs, PyTorch code.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TARGET_TEXT_H
#define KAS_TARGET_TEXT_H

#include "kas/Dialect/Kas/IR/KasDag.h"
#include <functional>

namespace kas::target {

/// Writes what `op` computes in one line, over its symbols: `Y[n,c,h] =
/// sum over i<k of X[n,c,h+i-floor(k/2)] * W[c,i]`. Data outside its shape
/// counts nothing; where a clipped coordinate is changed further, the condition
/// follows after a semicolon. Weights are W or W1, W2, ...
void writeFormula(OperatorOp op, llvm::raw_ostream &os);

/// Writes the primitives of `op` as a directed graph in Graphviz's language,
/// from the outputs to the data and the weights, with sizes at the edges.
void writeGraph(OperatorOp op, llvm::raw_ostream &os);

/// Writes the concrete operator `op` as a C function of its name, on dense
/// row-major arrays: `void NAME(const float *X, const float *W, float *Y)`. The
/// loops are named after the symbols of `source`, the operator that `op` was
/// made from, if it is given.
void writeLoopNest(OperatorOp op, llvm::raw_ostream &os,
                   OperatorOp source = {});

/// Writes a Python file with the concrete operator `op` as a function on
/// tensors, of its name, and as a `torch.nn.Module` with its weights. It needs
/// PyTorch alone, and is differentiable in any floating-point type. Where `op`
/// is a contraction of rearranged tensors, the code is views, pads and one
/// einsum; otherwise elements are gathered over the whole iteration space.
/// `description` is the first line of the documentation, by default the
/// formula.
void writePyTorch(OperatorOp op, llvm::raw_ostream &os,
                  llvm::StringRef description = "");

/// The formula of `op`, with the binding where there is one, as a description.
std::string describeForPyTorch(OperatorOp op, llvm::StringRef binding);

/// Writes a Python file with `kernel` (verified, in a module with the operators
/// that it applies) at `binding`, a value for each symbol, as a function on
/// tensors with a leading batch and as a `torch.nn.Module`. It needs PyTorch
/// alone, and is differentiable in any floating-point type. Fails with a
/// diagnostic, having written nothing, where a size is no integer.
llvm::LogicalResult writePyTorch(KernelOp kernel, const Binding &binding,
                                 llvm::raw_ostream &os);

/// Registers `-kas-to-formula`, `-kas-to-dot`, `-kas-to-c` and
/// `-kas-to-pytorch`, which write every operator of a module; the last one
/// writes its kernels, too, and no operators that those apply. `getBinding`
/// gives the text of the binding, such as `N=1,C=64`, at which operators and
/// kernels with symbols are made concrete where that is needed.
void registerTextTranslations(std::function<std::string()> getBinding);

} // namespace kas::target

#endif // KAS_TARGET_TEXT_H
