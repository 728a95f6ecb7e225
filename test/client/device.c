/*===----------------------------------------------------------------------===*\
|*
|* Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* Uses the runtime for devices from C: asks for a device that no machine has.
|*
\*===----------------------------------------------------------------------===*/

#include "kas-rt/kas-rt.h"
#include <stdio.h>

int main(void) {
  KasRtDevice device = NULL;
  KasRtStatus status = kasRtDeviceOpen("vulkan:999", &device);
  printf("%s: %s\n", kasRtStatusName(status), kasRtErrorText());
  return device != NULL;
}
