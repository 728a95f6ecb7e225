//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Formulas.h"

#include <cstdio>
#include <cstdlib>

using namespace formulas;

void formulas::require(bool condition, const char *message) {
  if (condition)
    return;
  std::fprintf(stderr, "formula: %s\n", message);
  std::abort();
}

const std::vector<std::pair<std::string, int64_t Sizes::*>> formulas::symbols =
    {{"N", &Sizes::N},     {"B", &Sizes::B},       {"L", &Sizes::L},
     {"M", &Sizes::M},     {"K", &Sizes::K},       {"C", &Sizes::C},
     {"Cin", &Sizes::Cin}, {"Cout", &Sizes::Cout}, {"H", &Sizes::H},
     {"W", &Sizes::W},     {"k", &Sizes::k},       {"s", &Sizes::s},
     {"d", &Sizes::d},     {"p", &Sizes::p},       {"g", &Sizes::g},
     {"r", &Sizes::r},     {"t", &Sizes::t},       {"b", &Sizes::b}};

Array::Array(std::vector<int64_t> shape) : shape(std::move(shape)) {
  int64_t count = 1;
  for (int64_t extent : this->shape)
    count *= extent;
  values.assign(count, 0.0);
}

bool Array::contains(const std::vector<int64_t> &index) const {
  require(index.size() == shape.size(),
          "an index of another rank than the array");
  for (size_t axis = 0; axis < index.size(); ++axis)
    if (index[axis] < 0 || index[axis] >= shape[axis])
      return false;
  return true;
}

int64_t Array::offset(const std::vector<int64_t> &index) const {
  require(contains(index), "an index outside of the array");
  int64_t result = 0;
  for (size_t axis = 0; axis < index.size(); ++axis)
    result = result * shape[axis] + index[axis];
  return result;
}

std::vector<Formula> formulas::getFormulas() {
  std::vector<Formula> all;
  for (const std::vector<Formula> &family :
       {getDenseFormulas(), getConvolutionFormulas(),
        getRearrangementFormulas(), getStructuredFormulas(),
        getSynthesizedFormulas(), getTransformationFormulas()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}
