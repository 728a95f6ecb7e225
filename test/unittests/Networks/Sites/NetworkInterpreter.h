//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a network whose marked convolutions compute a kernel: slowly, in double
// precision but between operations.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_NETWORKS_SITES_NETWORKINTERPRETER_H
#define TEST_UNITTESTS_NETWORKS_SITES_NETWORKINTERPRETER_H

#include "SiteReference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kas::test {

/// The result of `function`, linalg and tensor ops on batches of one, with
/// `kernel` in its marked convolutions, of which there must be `numSites`; they
/// give their bias alone without a kernel. Empty, with a failure of the test,
/// when something is not known.
std::vector<float> interpretNetwork(
    mlir::func::FuncOp function, KernelOp kernel, const Arguments &arguments,
    unsigned numSites,
    reference::StepPrecision precision = reference::StepPrecision::Double);

} // namespace kas::test

#endif // TEST_UNITTESTS_NETWORKS_SITES_NETWORKINTERPRETER_H
