//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers between pages that cannot be touched, and calls that survive when
// somebody does.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_UNITTESTS_PROPERTIES_GUARDEDMEMORY_H
#define KAS_TEST_UNITTESTS_PROPERTIES_GUARDEDMEMORY_H

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kas::test {

/// Which end of a buffer touches its guard page: the other one has whatever is
/// left of a page between.
enum class Flush { Begin, End };

/// Memory for `size` bytes, all of them 0xff (a NaN as a float). Thread-safe.
void *allocateGuarded(size_t size, Flush flush);
void freeGuarded(void *pointer);
/// From now on the buffer can only be read.
void makeReadOnly(void *pointer);
/// The number of buffers that have not been freed.
size_t getNumGuarded();

/// The allocation functions of C under their names, on guarded memory, for code
/// that is made to call them instead. `flush` holds for all calls from now on.
std::vector<std::pair<std::string, void *>> getGuardedAllocators(Flush flush);

/// Takes the alignment off allocations in the pipeline for the CPU, or else
/// buffers could not be flush to the end of a page.
class RemoveAlignment : public mlir::PassInstrumentation {
public:
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
};

/// Calls `function`. If the calling thread touches a guard page, the call ends
/// there and the result says what was touched: `4 bytes past the end of a
/// buffer of 20 bytes`. Another thread that does ends the process.
std::optional<std::string> runGuarded(llvm::function_ref<void()> function);

} // namespace kas::test

#endif // KAS_TEST_UNITTESTS_PROPERTIES_GUARDEDMEMORY_H
