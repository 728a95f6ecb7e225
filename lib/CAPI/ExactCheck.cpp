//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to exact checks (docs/internals/testing.md, "Exact checks")
// of operators and of functions of a module.
// Inputs are drawn so that every sum is exact in f32, hence compiled code must
// give the same bits as the reference: no tolerance hides a wrong term.
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/ExactCheck.h"
#include "Handles.h"
#include "kas/Conversion/OperatorModule.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::reference;
using namespace mlir;
using llvm::Expected;

/// What is written about the function `name` of `module`.
/// `difference` is null, or says where the first one is.
/// The reference comes from `getExactProblem`, which knows the operators and
/// structured operations whose results are polynomials; others are an error.
static Expected<llvm::json::Object> checkExactly(ModuleOp module,
                                                 StringRef name,
                                                 KasCompileOptions compile,
                                                 KasExactOptions options) {
  auto problem = getExactProblem(module, name);
  if (!problem)
    return problem.takeError();
  // No format: inputs are as large as exactness in f32 allows.
  auto check = ExactCheck::create(
      *problem, {.format = {}, .seed = options.seed, .draws = options.draws});
  if (!check)
    return check.takeError();
  auto function = compileFunction(module, name, compile);
  if (!function)
    return function.takeError();
  // Each draw is computed by compiled code, into `results`.
  auto difference = check->findDifference(
      [&](const ExactCheck::Draw &draw, MutableArrayRef<TensorValues> results) {
        SmallVector<float *> pointers;
        // Compiled code takes all tensors alike and does not write to inputs.
        for (const TensorValues &input : draw.inputs)
          pointers.push_back(const_cast<float *>(input.data()));
        for (TensorValues &result : results)
          pointers.push_back(result.data());
        return (*function)(pointers);
      });
  if (!difference)
    return difference.takeError();
  llvm::json::Object object = check->toJSON();
  object["summary"] = check->describe();
  object["difference"] = nullptr;
  if (*difference)
    object["difference"] = **difference;
  return object;
}

/// Reports an error to `access`, or writes the object.
static bool writeCheck(ModuleAccess &access, ModuleOp module, StringRef name,
                       KasCompileOptions compile, KasExactOptions options,
                       KasStream json) {
  auto object = checkExactly(module, name, compile, options);
  if (!object) {
    access.report(object.takeError());
    return false;
  }
  CallbackStream stream(json);
  stream << llvm::json::Value(std::move(*object));
  return true;
}

/// The operator as a function, compiled as callers would compile it.
bool kasOperatorCheckExactly(KasModule *module, const char *name,
                             const char *binding, KasCompileOptions compile,
                             KasExactOptions options, KasStream json,
                             KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> program = access.makeProgram(name, binding);
  return program && writeCheck(access, *program, operatorFunctionName, compile,
                               options, json);
}

/// The module as it is: it must not be lowered yet.
bool kasModuleCheckExactly(KasModule *module, const char *function,
                           KasCompileOptions compile, KasExactOptions options,
                           KasStream json, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  return writeCheck(access, access.getModule(), function, compile, options,
                    json);
}
