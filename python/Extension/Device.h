//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled functions on CUDA devices, on addresses there.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_DEVICE_H
#define KAS_PYTHON_EXTENSION_DEVICE_H

#include "Module.h"

namespace kas::python {

/// Adds the class, and the function that makes it.
void addDevice(nb::module_ &m);

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_DEVICE_H
