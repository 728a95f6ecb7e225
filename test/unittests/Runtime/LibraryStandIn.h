//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stand-ins for libraries of kernels have in common: calls, objects,
// numbers of three types in memory, the stand-in for the driver, controls.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_LIBRARYSTANDIN_H
#define TEST_UNITTESTS_RUNTIME_LIBRARYSTANDIN_H

#include "StandIn.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <sstream>
#include <string>

namespace kas::rt {

/// What a stand-in records of its calls.
struct LibraryCalls : StandInCalls {
  std::ostringstream log, violations;
  /// What a control has returned.
  std::string text;
  uintptr_t nextHandle = 0x1000;

  void violate(const std::string &what) { violations << what << "\n"; }

  template <typename Handle>
  Handle makeHandle() {
    return reinterpret_cast<Handle>(nextHandle += 0x10);
  }
  /// Records a call; the error that it must return, or success.
  template <typename... Arguments>
  int enter(const char *function, Arguments... arguments) {
    log << function << "(";
    const char *separator = "";
    ((log << separator << arguments, separator = ", "), ...);
    log << ")\n";
    return count(function);
  }
  /// Null where there is no such object, which is a violation.
  template <typename Object, typename Handle>
  Object *find(std::map<Handle, Object> &objects, Handle handle) {
    auto found = objects.find(handle);
    if (found != objects.end())
      return &found->second;
    violate("an object of the library that does not exist");
    return nullptr;
  }
};

/// The stand-in that the library's driver is.
inline const StandInControls &getDriver() {
  const char *name = std::getenv("KAS_RT_LIBCUDA");
  void *library = dlopen(name ? name : "", RTLD_NOW | RTLD_NOLOAD);
  return **static_cast<const StandInControls *const *>(
      dlsym(library, "standInControls"));
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

enum class Element { F32, F16, BF16 };

inline size_t getBytes(Element type) { return type == Element::F32 ? 4 : 2; }

inline float getFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t getBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// To nearest, ties to even, with so many bits of fraction.
inline float roundTo(float value, int fraction) {
  uint32_t bits = getBits(value), drop = 23 - fraction;
  bits += (1u << (drop - 1)) - 1 + ((bits >> drop) & 1);
  return getFloat(bits >> drop << drop);
}

inline float load(uint64_t address, Element type, int64_t index) {
  const auto *bytes =
      reinterpret_cast<const char *>(address) + index * getBytes(type);
  if (type == Element::F32)
    return *reinterpret_cast<const float *>(bytes);
  if (type == Element::F16)
    return static_cast<float>(*reinterpret_cast<const _Float16 *>(bytes));
  return getFloat(uint32_t(*reinterpret_cast<const uint16_t *>(bytes)) << 16);
}

inline void store(uint64_t address, Element type, int64_t index, float value) {
  auto *bytes = reinterpret_cast<char *>(address) + index * getBytes(type);
  if (type == Element::F32)
    *reinterpret_cast<float *>(bytes) = value;
  else if (type == Element::F16)
    *reinterpret_cast<_Float16 *>(bytes) = static_cast<_Float16>(value);
  else
    *reinterpret_cast<uint16_t *>(bytes) = getBits(roundTo(value, 7)) >> 16;
}

/// An error unless so many elements are allocated, and aligned to 16 bytes.
inline void checkMemory(LibraryCalls &calls, uint64_t address, Element type,
                        size_t elements, const std::string &name) {
  if (address % 16)
    calls.violate(name + " is not aligned");
  if (!getDriver().isAllocated(address, elements * getBytes(type)))
    calls.violate(name + " is beyond an allocation");
}

/// An error unless at least `least` of so many bytes are allocated.
inline void checkWorkspace(LibraryCalls &calls, const void *workspace,
                           size_t bytes, size_t least) {
  auto address = reinterpret_cast<uint64_t>(workspace);
  if (bytes < least || address % 256 ||
      !getDriver().isAllocated(address, bytes))
    calls.violate("a workspace that is too small or not allocated");
}

//===----------------------------------------------------------------------===//
// Controls
//===----------------------------------------------------------------------===//

/// Those of a stand-in with the state `state`, which has `countLive`.
template <auto &state>
StandInControls getLibraryControls() {
  using State = std::remove_reference_t<decltype(state)>;
  StandInControls controls = {};
  controls.reset = [] { state = State(); };
  controls.fail = [](const char *function, int nth, int error) {
    state.fail(function, nth, error);
  };
  controls.hasFailed = [] { return state.hasFailed; };
  controls.countCalls = [](const char *function) {
    return state.calls[function];
  };
  controls.getLog = [] { return (state.text = state.log.str()).c_str(); };
  controls.getViolations = [] {
    return (state.text = state.violations.str()).c_str();
  };
  controls.countLive = [] { return state.countLive(); };
  return controls;
}

/// For programs that run on the stand-in, as that of the driver: what has been
/// called, at the end.
struct LibraryReport {
  ~LibraryReport() {
    const char *variable = std::getenv("KAS_STAND_IN_REPORT");
    if (!variable || std::strcmp(variable, "1") != 0)
      return;
    std::string violations = controls.getViolations();
    std::fprintf(stderr, "%s%s violations: %s\n%s left: %d objects\n",
                 controls.getLog(), name,
                 violations.empty() ? "none" : violations.c_str(), name,
                 controls.countLive());
  }

  const char *name;
  const StandInControls &controls;
};

} // namespace kas::rt

/// In a function of a library, named `state`: records the call, and returns the
/// error that is requested, if any.
#define KAS_ENTER(...)                                                         \
  if (int result = state.enter(__func__, __VA_ARGS__))                         \
  return result

#define KAS_API __attribute__((visibility("default")))

#endif // TEST_UNITTESTS_RUNTIME_LIBRARYSTANDIN_H
