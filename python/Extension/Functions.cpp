//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "kas/ExecutionEngine/CPUFunction.h"

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

void kas::python::addFunctions(nb::module_ &m) {
  nb::class_<Function>(m, "Function")
      .def_prop_ro("arguments",
                   [](const Function &self) {
                     return self.getTensors(0, self.getNumArguments());
                   })
      .def_prop_ro("results",
                   [](const Function &self) {
                     size_t begin = self.getNumArguments();
                     return self.getTensors(begin,
                                            begin + self.getNumResults());
                   })
      .def_prop_ro("compile_milliseconds", &Function::getCompileMilliseconds)
      .def("call", &Function::call, "arguments"_a, "results"_a);

  nb::class_<Program>(m, "Program")
      .def("get_num_tensors", &Program::getNumTensors, "name"_a)
      .def("get_num_prepared_elements", &Program::getNumPreparedElements,
           "name"_a)
      .def("call", &Program::call, "name"_a, "tensors"_a, "runs"_a,
           "wall_clock"_a);
}
