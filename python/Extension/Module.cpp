//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module.h"

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

void kas::python::addModule(nb::module_ &m) {
  nb::enum_<KasGradientStrategy>(m, "GradientStrategy")
      .value("AUTO", KasGradientStrategyAuto)
      .value("STRUCTURED", KasGradientStrategyStructured)
      .value("LOOPS", KasGradientStrategyLoops);
  nb::enum_<KasPrecision>(m, "Precision")
      .value("F32", KasPrecisionF32)
      .value("BF16", KasPrecisionBF16);
  nb::enum_<KasOperatorText>(m, "OperatorText")
      .value("MLIR", KasOperatorTextMLIR)
      .value("FORMULA", KasOperatorTextFormula)
      .value("GRAPH", KasOperatorTextGraph)
      .value("LOOP_NEST", KasOperatorTextLoopNest)
      .value("PYTORCH", KasOperatorTextPyTorch)
      .value("CANONICAL", KasOperatorTextCanonical);

  nb::class_<Module>(m, "Module")
      .def(nb::init<const std::string &, const std::string &>(), "text"_a,
           "name"_a)
      .def(
          "__init__",
          [](Module *self, const nb::bytes &bytecode, const std::string &name) {
            new (self)
                Module(std::string(bytecode.c_str(), bytecode.size()), name);
          },
          "bytecode"_a, "name"_a)
      .def("to_bytecode", &Module::toBytecode)
      .def("print", &Module::print, "generic"_a)
      .def("verify", &Module::verify)
      .def("run_passes", &Module::runPasses, "pipeline"_a, "verify_each"_a)
      .def("substitute", &Module::substitute, "text"_a, "space"_a, "layers"_a,
           "binding"_a)
      .def("get_symbol_text", &Module::getSymbolText, "name"_a)
      .def("list_symbols", &Module::listSymbols)
      .def("describe_space", &Module::describeSpace, "name"_a.none())
      .def("set_limit", &Module::setLimit, "space"_a.none(), "name"_a,
           "value"_a.none())
      .def("find_member", &Module::findMember, "space"_a.none(), "operators"_a,
           "name"_a)
      .def("describe", &Module::describe, "name"_a)
      .def("get_shapes", &Module::getShapes, "name"_a, "binding"_a)
      .def("get_effective_convolution", &Module::getEffectiveConvolution,
           "name"_a, "binding"_a, "limit"_a)
      .def("get_axes", &Module::getAxes, "name"_a, "binding"_a)
      .def("find_lookahead", &Module::findLookahead, "name"_a, "binding"_a,
           "output"_a, "input"_a, "stride"_a)
      .def("get_cost", &Module::getCost, "name"_a, "binding"_a)
      .def("get_existing_flops", &Module::getExistingFlops, "name"_a,
           "binding"_a)
      .def("get_fan_in", &Module::getFanIn, "name"_a, "binding"_a)
      .def("predict_time", &Module::predictTime, "name"_a, "binding"_a)
      .def("get_text", &Module::getText, "name"_a, "kind"_a, "binding"_a.none())
      .def("evaluate", &Module::evaluate, "name"_a, "binding"_a, "tensors"_a)
      .def("compile", &Module::compile, "name"_a, "binding"_a, "threads"_a,
           "opt_level"_a)
      .def("check_exactly", &Module::checkExactly, "name"_a, "binding"_a.none(),
           "threads"_a, "opt_level"_a, "seed"_a, "draws"_a)
      .def("compile_gradient", &Module::compileGradient, "name"_a, "binding"_a,
           "tensor"_a, "strategy"_a, "threads"_a, "opt_level"_a)
      .def("describe_kernel", &Module::describeKernel, "name"_a)
      .def("get_kernel_shapes", &Module::getKernelShapes, "name"_a, "binding"_a,
           "batch"_a)
      .def("kernel_to_pytorch", &Module::kernelToPyTorch, "name"_a, "binding"_a)
      .def("evaluate_kernel", &Module::evaluateKernel, "name"_a, "binding"_a,
           "tensors"_a)
      .def("compile_kernel", &Module::compileKernel, "name"_a, "binding"_a,
           "batch"_a, "gradient"_a, "threads"_a, "opt_level"_a)
      .def("compile_function", &Module::compileFunction, "name"_a, "threads"_a,
           "opt_level"_a, "prepack_weights"_a, "any_batch"_a, "precision"_a,
           "keep_code"_a)
      .def("load", &Module::load, "opt_level"_a, "key"_a = nb::none(),
           "note"_a = "")
      .def("tune", &Module::tune, "name"_a, "database"_a, "network"_a,
           "trials"_a, "runs"_a, "seed"_a, "threads"_a);

  m.def(
      "open_tuning_database",
      [](const std::string &path) {
        return read([&](KasStream stream, KasDiagnostics sink) {
          return kasTuningDatabaseOpen(path.c_str(), stream, sink);
        });
      },
      "path"_a);
}
