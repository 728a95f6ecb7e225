//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled functions on arrays.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_FUNCTIONS_H
#define KAS_PYTHON_EXTENSION_FUNCTIONS_H

#include "Calls.h"
#include "kas-c/Measure.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include <algorithm>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <optional>
#include <string>

namespace kas::python {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using OutputArray = nb::ndarray<nb::device::cpu>;

inline std::string shapeToString(const int64_t *shape, size_t rank) {
  std::string text = "(";
  for (size_t dim = 0; dim < rank; ++dim)
    text += (dim ? ", " : "") + std::to_string(shape[dim]);
  return text + (rank == 1 ? ",)" : ")");
}

/// A type of elements as NumPy calls it.
inline std::string getDtypeName(const std::string &type) {
  if (type == "i1")
    return "bool";
  if (type == "bf16")
    return "bfloat16";
  if (type[0] == 'u')
    return "uint" + type.substr(2);
  return (type[0] == 'f' ? "float" : "int") + type.substr(1);
}

/// What MLIR calls elements of `dtype`.
inline std::string getTypeName(nb::dlpack::dtype dtype) {
  using Code = nb::dlpack::dtype_code;
  if (dtype.code == uint8_t(Code::Bool))
    return "i1";
  if (dtype.code == uint8_t(Code::Bfloat))
    return "bf16";
  const char *kind = dtype.code == uint8_t(Code::Int)    ? "i"
                     : dtype.code == uint8_t(Code::UInt) ? "ui"
                                                         : "f";
  return kind + std::to_string(dtype.bits);
}

inline std::string getDtypeName(nb::dlpack::dtype dtype) {
  if (dtype.code == uint8_t(nb::dlpack::dtype_code::Complex))
    return "complex" + std::to_string(dtype.bits);
  return getDtypeName(getTypeName(dtype));
}

/// Whether elements of `dtype` are those of `type`: integers that nothing marks
/// as unsigned have no sign.
inline bool isOfType(nb::dlpack::dtype dtype, const std::string &type) {
  if (type == "i1")
    return dtype.code == uint8_t(nb::dlpack::dtype_code::Bool);
  if (type[0] == 'u')
    return getTypeName(dtype) == type && dtype.lanes == 1;
  bool isRight = false;
  if (type == "bf16")
    return dtype.code == uint8_t(nb::dlpack::dtype_code::Bfloat);
  if (type[0] == 'f')
    isRight = dtype.code == uint8_t(nb::dlpack::dtype_code::Float);
  else
    isRight = dtype.code == uint8_t(nb::dlpack::dtype_code::Int) ||
              dtype.code == uint8_t(nb::dlpack::dtype_code::UInt);
  return isRight && dtype.lanes == 1 &&
         std::to_string(dtype.bits) == type.substr(1);
}

/// Checks that `array` is dense, of the shape and of the type, and gives its
/// memory.
template <typename AnyArray>
float *getMemory(AnyArray &array, const std::string &name,
                 const std::vector<int64_t> &shape,
                 const std::string &type = "f32") {
  std::vector<int64_t> actual;
  for (size_t dim = 0; dim < array.ndim(); ++dim)
    actual.push_back(static_cast<int64_t>(array.shape(dim)));
  if (!isOfType(array.dtype(), type))
    throw nb::type_error(("'" + name + "' must have elements of type " +
                          getDtypeName(type) + ", got " +
                          getDtypeName(array.dtype()))
                             .c_str());
  if (actual != shape)
    throw nb::value_error(("'" + name + "' must have the shape " +
                           shapeToString(shape.data(), shape.size()) +
                           ", got " +
                           shapeToString(actual.data(), actual.size()))
                              .c_str());
  // Nothing says what the strides of nothing are.
  bool isEmpty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  int64_t stride = 1;
  for (size_t dim = isEmpty ? 0 : shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && array.stride(dim) != stride)
      throw nb::value_error(("'" + name +
                             "' must be contiguous; make it so by "
                             "numpy.ascontiguousarray or .contiguous()")
                                .c_str());
    stride *= shape[dim];
  }
  return static_cast<float *>(
      const_cast<void *>(static_cast<const void *>(array.data())));
}

/// A function and the memory of all its tensors, which were checked.
class BoundCall {
public:
  BoundCall(KasFunction *function, std::vector<Array> arguments,
            std::vector<OutputArray> results, std::vector<float *> pointers,
            int64_t samples)
      : function(function), arguments(std::move(arguments)),
        results(std::move(results)), pointers(std::move(pointers)),
        samples(samples) {}

  /// Returns what the assertion says that failed, if one did.
  std::optional<std::string> run() {
    nb::gil_scoped_release release;
    return toText(kasFunctionHasAnyBatch(function)
                      ? kasFunctionCallBatch(function, pointers.data(), samples)
                      : kasFunctionCall(function, pointers.data()));
  }
  /// Packs the weights among the arguments.
  std::optional<std::string> prepack() {
    nb::gil_scoped_release release;
    return toText(kasFunctionPrepack(function, pointers.data()));
  }

private:
  static std::optional<std::string> toText(const char *message) {
    return message ? std::optional<std::string>(message) : std::nullopt;
  }

  KasFunction *function;
  std::vector<Array> arguments;
  std::vector<OutputArray> results;
  std::vector<float *> pointers;
  /// Those of the data.
  int64_t samples;
};

class Function {
public:
  explicit Function(KasFunction *function)
      : function(function),
        tensors(getTensors(0, getNumArguments() + getNumResults())) {}

  size_t getNumArguments() const {
    return kasFunctionGetNumArguments(function.get());
  }
  size_t getNumResults() const {
    return kasFunctionGetNumResults(function.get());
  }
  std::vector<std::pair<std::string, std::vector<int64_t>>>
  getTensors(size_t begin, size_t end) const {
    std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
    for (size_t tensor = begin; tensor < end; ++tensor) {
      const int64_t *shape = kasFunctionGetShape(function.get(), tensor);
      tensors.emplace_back(
          kasFunctionGetName(function.get(), tensor),
          std::vector<int64_t>(
              shape, shape + kasFunctionGetRank(function.get(), tensor)));
    }
    return tensors;
  }
  /// The types of the elements of all arguments and results, as NumPy calls
  /// them.
  std::vector<std::string> getTypes() const {
    std::vector<std::string> types;
    for (size_t tensor = 0; tensor < tensors.size(); ++tensor)
      types.push_back(
          getDtypeName(kasFunctionGetElementType(function.get(), tensor)));
    return types;
  }
  double getCompileMilliseconds() const {
    return kasFunctionGetCompileMilliseconds(function.get());
  }

  /// Checks the tensors for any number of calls with them.
  std::unique_ptr<BoundCall> bind(std::vector<Array> arguments,
                                  std::vector<OutputArray> results) {
    checkCount("arguments", getNumArguments(), arguments.size());
    checkCount("results", getNumResults(), results.size());
    int64_t samples = -1;
    if (hasAnyBatch() && arguments.front().ndim() > 0)
      samples = static_cast<int64_t>(arguments.front().shape(0));
    std::vector<float *> pointers;
    for (Array &array : arguments)
      pointers.push_back(getPointer(array, pointers.size(), samples));
    for (OutputArray &array : results)
      pointers.push_back(getPointer(array, pointers.size(), samples));
    return std::make_unique<BoundCall>(function.get(), std::move(arguments),
                                       std::move(results), std::move(pointers),
                                       samples);
  }

  /// Writes the function, with its last arguments where `weights` are not none.
  void save(const std::string &path, std::vector<Array> weights) {
    if (weights.size() > getNumArguments())
      checkCount("weights, at most", getNumArguments(), weights.size());
    size_t begin = getNumArguments() - weights.size();
    std::vector<float *> pointers(begin, nullptr);
    for (Array &array : weights)
      pointers.push_back(getPointer(array, pointers.size(), /*samples=*/-1));
    kas::python::run([&](KasDiagnostics sink) {
      return kasFunctionSave(function.get(), path.c_str(), pointers.data(),
                             sink);
    });
  }

  bool hasAnyBatch() const { return kasFunctionHasAnyBatch(function.get()); }

private:
  /// `samples` are those that the data has where there may be any, else -1.
  template <typename AnyArray>
  float *getPointer(AnyArray &array, size_t tensor, int64_t samples) const {
    auto [name, shape] = tensors[tensor];
    if (samples >= 0 && (tensor == 0 || tensor >= getNumArguments()))
      shape.front() = samples;
    return getMemory(array, name, shape,
                     kasFunctionGetElementType(function.get(), tensor));
  }
  static void checkCount(const char *what, size_t expected, size_t actual) {
    if (expected != actual)
      throw nb::type_error(("expected " + std::to_string(expected) + " " +
                            what + ", got " + std::to_string(actual))
                               .c_str());
  }

  struct Destroy {
    void operator()(KasFunction *function) const {
      kasFunctionDestroy(function);
    }
  };
  std::unique_ptr<KasFunction, Destroy> function;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
};

/// A program on tensors of any type: nothing says their shapes any more, so
/// that only their number is checked.
class Program {
public:
  explicit Program(KasProgram *program) : program(program) {}

  int64_t getNumTensors(const std::string &name) const {
    return kasProgramGetNumTensors(program.get(), name.c_str());
  }
  int64_t getNumPrepackedElements(const std::string &name) const {
    return kasProgramGetNumPrepackedElements(program.get(), name.c_str());
  }
  double call(const std::string &name, std::vector<Array> tensors,
              uint64_t runs) {
    std::vector<void *> pointers;
    for (Array &array : tensors)
      pointers.push_back(const_cast<void *>(array.data()));
    return callOn(name, pointers, runs);
  }
  /// On the addresses of dense elements, which the caller has checked: what it
  /// costs to look at an array is more than many a function takes.
  void callAt(const std::string &name, const std::vector<size_t> &addresses) {
    std::vector<void *> pointers;
    for (size_t address : addresses)
      pointers.push_back(reinterpret_cast<void *>(address));
    callOn(name, pointers, /*runs=*/1);
  }

private:
  double callOn(const std::string &name, std::vector<void *> &pointers,
                uint64_t runs) {
    int64_t expected = getNumTensors(name);
    if (expected < 0)
      throw nb::key_error(("no function '" + name + "'").c_str());
    if (expected != static_cast<int64_t>(pointers.size()))
      throw nb::type_error(("expected " + std::to_string(expected) +
                            " tensors, got " + std::to_string(pointers.size()))
                               .c_str());
    double milliseconds = 0;
    nb::gil_scoped_release release;
    if (const char *message = kasProgramCall(
            program.get(), name.c_str(), pointers.data(), runs, &milliseconds))
      throw std::runtime_error(message);
    return milliseconds;
  }

  struct Destroy {
    void operator()(KasProgram *program) const { kasProgramDestroy(program); }
  };
  std::unique_ptr<KasProgram, Destroy> program;
};

/// Adds the classes.
void addFunctions(nb::module_ &m);

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_FUNCTIONS_H
