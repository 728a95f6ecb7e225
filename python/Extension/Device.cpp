//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "kas-c/Device.h"

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

namespace {
/// Checks the number of addresses alone: what these are of, the caller has
/// checked.
class DeviceFunction {
public:
  using Tensor = std::pair<std::string, std::vector<int64_t>>;

  DeviceFunction(Module &module, const std::string &name,
                 const std::string &device, const std::string &precision,
                 bool useLibraries) {
    run([&](KasDiagnostics sink) {
      function.reset(
          kasModuleCompileForDevice(module.get(), name.c_str(), device.c_str(),
                                    {precision.c_str(), useLibraries}, sink));
      return function != nullptr;
    });
  }

  std::vector<Tensor> getArguments() const {
    return getTensors(0, getNumArguments());
  }
  std::vector<Tensor> getResults() const {
    return getTensors(getNumArguments(), getNumTensors());
  }
  std::vector<std::string> getTypes() const {
    std::vector<std::string> types;
    for (size_t tensor = 0; tensor < getNumTensors(); ++tensor)
      types.push_back(getDtypeName(std::string(
          kasDeviceFunctionGetElementType(function.get(), tensor))));
    return types;
  }
  /// The positions of the arguments that are weights.
  std::vector<size_t> getWeights() const {
    std::vector<size_t> weights;
    for (size_t tensor = 0; tensor < getNumArguments(); ++tensor)
      if (kasDeviceFunctionIsWeight(function.get(), tensor))
        weights.push_back(tensor);
    return weights;
  }
  double getCompileMilliseconds() const {
    return kasDeviceFunctionGetCompileMilliseconds(function.get());
  }
  std::string getLibraries() const {
    Text text;
    kasDeviceFunctionGetLibraries(function.get(), text.stream());
    return text.take();
  }
  void call(const std::vector<uint64_t> &addresses, uintptr_t stream) {
    if (addresses.size() != getNumTensors())
      throw nb::type_error(("expected " + std::to_string(getNumTensors()) +
                            " tensors, got " + std::to_string(addresses.size()))
                               .c_str());
    run([&](KasDiagnostics sink) {
      return kasDeviceFunctionCall(function.get(), addresses.data(),
                                   reinterpret_cast<void *>(stream), sink);
    });
  }
  void forgetWeights() {
    // Waits for calls of other threads.
    nb::gil_scoped_release release;
    kasDeviceFunctionForgetWeights(function.get());
  }

private:
  size_t getNumArguments() const {
    return kasDeviceFunctionGetNumArguments(function.get());
  }
  size_t getNumTensors() const {
    return getNumArguments() + kasDeviceFunctionGetNumResults(function.get());
  }
  std::vector<Tensor> getTensors(size_t begin, size_t end) const {
    std::vector<Tensor> tensors;
    for (size_t tensor = begin; tensor < end; ++tensor) {
      const int64_t *shape = kasDeviceFunctionGetShape(function.get(), tensor);
      size_t rank = kasDeviceFunctionGetRank(function.get(), tensor);
      tensors.emplace_back(kasDeviceFunctionGetName(function.get(), tensor),
                           std::vector<int64_t>(shape, shape + rank));
    }
    return tensors;
  }

  struct Destroy {
    void operator()(KasDeviceFunction *function) const {
      kasDeviceFunctionDestroy(function);
    }
  };
  std::unique_ptr<KasDeviceFunction, Destroy> function;
};
} // namespace

void kas::python::addDevice(nb::module_ &m) {
  nb::class_<DeviceFunction>(m, "DeviceFunction")
      .def(nb::init<Module &, const std::string &, const std::string &,
                    const std::string &, bool>(),
           "module"_a, "name"_a, "device"_a, "precision"_a, "use_libraries"_a)
      .def_prop_ro("arguments", &DeviceFunction::getArguments)
      .def_prop_ro("results", &DeviceFunction::getResults)
      .def_prop_ro("types", &DeviceFunction::getTypes)
      .def_prop_ro("weights", &DeviceFunction::getWeights)
      .def_prop_ro("any_batch", [](const DeviceFunction &) { return false; })
      .def_prop_ro("compile_milliseconds",
                   &DeviceFunction::getCompileMilliseconds)
      .def_prop_ro("libraries", &DeviceFunction::getLibraries)
      .def("call", &DeviceFunction::call, "addresses"_a, "stream"_a)
      .def("forget_weights", &DeviceFunction::forgetWeights);
}
