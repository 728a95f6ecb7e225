//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Resources.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

DenseElementsAttr kas::readSpecialResource(DenseResourceElementsAttr resource) {
  ShapedType type = resource.getType();
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  auto bools = dyn_cast<DenseBoolResourceElementsAttr>(resource);
  std::optional<ArrayRef<bool>> values =
      bools ? bools.tryGetAsArrayRef() : std::nullopt;
  if (!values || int64_t(values->size()) != type.getNumElements())
    return nullptr;
  return DenseElementsAttr::get(type, *values);
}
