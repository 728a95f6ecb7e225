//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translations of kernels for kas-translate.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TARGET_GPU_DEVICETRANSLATIONS_H
#define KAS_TARGET_GPU_DEVICETRANSLATIONS_H

namespace kas::target {

/// Registers `-kas-gpu-to-binary` and `-kas-gpu-to-manifest`, for what
/// `-kas-nvvm-pipeline` and `-kas-spirv-pipeline` make.
void registerGPUTranslations();

} // namespace kas::target

#endif // KAS_TARGET_GPU_DEVICETRANSLATIONS_H
