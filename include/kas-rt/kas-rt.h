/*===-- kas-rt.h - Launching kernels on devices -------------------*- C -*-===*\
|*                                                                            *|
|* Part of the kas project, under the Apache License v2.0 with LLVM           *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Opens a device, keeps buffers on it, loads kernels and launches them.      *|
|* Back ends: the driver API of CUDA, and Vulkan's compute queues. Both are   *|
|* loaded when the first device is requested; nothing is linked.              *|
|*                                                                            *|
|* Every call that can fail returns a status and, when it fails, leaves a     *|
|* text of one line that kasRtErrorText gives. After an error nothing is half *|
|* made: what a call would have created does not exist.                       *|
|*                                                                            *|
|* Work on a device runs in the order of the calls. Launches, fills and event *|
|* records return before they are done; an error on the device is reported by *|
|* a later call, at the latest by kasRtSynchronize. Different threads may use *|
|* different devices at the same time; a device and all that belongs to it is *|
|* used by one thread at a time.                                              *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef KAS_RT_H
#define KAS_RT_H

#include <stddef.h>
#include <stdint.h>

#define KAS_RT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. The text of the error says more. */
typedef enum KasRtStatus {
  KAS_RT_SUCCESS = 0,
  /* No driver, no device, or none with the index that was requested. */
  KAS_RT_ERROR_NO_DEVICE = 1,
  /* An argument is outside of what its function says. */
  KAS_RT_ERROR_INVALID_ARGUMENT = 2,
  /* The device or the host has not enough memory left. */
  KAS_RT_ERROR_OUT_OF_MEMORY = 3,
  /* A kernel crashed or the device went away. All that is on the device is
     lost; each call but the ones that release something gives this again. */
  KAS_RT_ERROR_DEVICE_LOST = 4,
  /* The module is not one for this device. */
  KAS_RT_ERROR_INVALID_MODULE = 5,
  /* The module has no kernel of that name. */
  KAS_RT_ERROR_NOT_FOUND = 6,
  /* More than the device offers: threads, workgroups, memory of a workgroup,
     buffers of a kernel, bytes of a buffer. */
  KAS_RT_ERROR_LIMIT = 7,
  /* Vulkan's validation layer, where it is on, had something to say. */
  KAS_RT_ERROR_VALIDATION = 8,
  /* Any other error of the driver. */
  KAS_RT_ERROR_DRIVER = 9,
  /* No status: it makes the type 32 bits wide. */
  KAS_RT_STATUS_WIDTH = 0x7fffffff
} KasRtStatus;

typedef enum KasRtBackend {
  KAS_RT_CUDA = 0,
  KAS_RT_VULKAN = 1,
  /* No back end: it makes the type 32 bits wide. */
  KAS_RT_BACKEND_WIDTH = 0x7fffffff
} KasRtBackend;

typedef struct KasRtDeviceImpl *KasRtDevice;
typedef struct KasRtBufferImpl *KasRtBuffer;
typedef struct KasRtModuleImpl *KasRtModule;
typedef struct KasRtKernelImpl *KasRtKernel;
typedef struct KasRtEventImpl *KasRtEvent;
typedef struct KasRtSequenceImpl *KasRtSequence;

/* The text of the last error in this thread, one line without a dot or a line
   break; empty when there was none. Valid until the next call that fails. */
KAS_RT_API const char *kasRtErrorText(void);

/* The name of a status: `out of memory`. */
KAS_RT_API const char *kasRtStatusName(KasRtStatus status);

/*===- Devices ------------------------------------------------------------===*/

/* How many devices there are; none is no error, but a driver that cannot be
   loaded is: KAS_RT_ERROR_NO_DEVICE with a text of what was looked for. */
KAS_RT_API KasRtStatus kasRtDeviceCount(KasRtBackend backend, int32_t *count);

/* Opens `cuda`, `cuda:INDEX`, `vulkan` or `vulkan:INDEX`; without an index it
   is 0. Where the environment variable KAS_RT_VALIDATION is 1, Vulkan runs with
   its validation layer, and whatever the layer reports becomes the error of the
   call that caused it. The libraries are `libcuda.so.1` and `libvulkan.so.1`;
   KAS_RT_LIBCUDA and KAS_RT_LIBVULKAN name others. */
KAS_RT_API KasRtStatus kasRtDeviceOpen(const char *name, KasRtDevice *device);

/* Waits for the device and closes it. Everything that was made on it must have
   been destroyed before, or the device stays open: INVALID_ARGUMENT. Any other
   error is reported after the device has been closed. Null does nothing. */
KAS_RT_API KasRtStatus kasRtDeviceClose(KasRtDevice device);

/* What a device offers. Limits hold for one kernel or one buffer. */
typedef struct KasRtDeviceInfo {
  KasRtBackend backend;
  /* The marketing name: `NVIDIA H200`. */
  char name[256];
  /* What kernels are compiled for: `sm_90`, or the version of Vulkan: `1.3`. */
  char architecture[32];
  uint32_t maxThreadsPerBlock;
  uint32_t maxBlock[3];
  uint32_t maxGrid[3];
  /* Bytes of workgroup memory. CUDA: with the opt-in above 48 KiB. */
  uint32_t maxSharedBytes;
  /* Storage buffers of one kernel. */
  uint32_t maxBuffers;
  /* Threads that run in step: the warp, the subgroup. */
  uint32_t warpSize;
  /* Bytes of one buffer. */
  uint64_t maxBufferBytes;
  /* Bytes of memory on the device. */
  uint64_t memoryBytes;
  /* Whether kernels may compute in 16-bit floats and keep them in buffers. */
  int32_t hasFloat16;
  /* Whether it is the host's processor: nothing is gained by workgroup memory
     there. */
  int32_t isHost;
} KasRtDeviceInfo;

KAS_RT_API KasRtStatus kasRtDeviceGetInfo(KasRtDevice device,
                                          KasRtDeviceInfo *info);

/* Waits until all that was started on the device is done. */
KAS_RT_API KasRtStatus kasRtSynchronize(KasRtDevice device);

/* The stream that a device has by itself. */
#define KAS_RT_OWN_STREAM ((void *)-1)

/* CUDA only: from now on all work runs in `stream`, a CUstream or cudaStream_t
   of the caller's in the primary context of the device, in order with what else
   is there; null is CUDA's default stream. Waits for what was started before.
   The stream must live until another one is set or the device is closed. */
KAS_RT_API KasRtStatus kasRtDeviceSetStream(KasRtDevice device, void *stream);

/*===- Buffers ------------------------------------------------------------===*/

/* A buffer of `bytes` bytes on the device, aligned for every element type and
   for vectors of 16 bytes. Its contents are undefined. `bytes` is not 0. */
KAS_RT_API KasRtStatus kasRtBufferCreate(KasRtDevice device, uint64_t bytes,
                                         KasRtBuffer *buffer);

/* CUDA only: `bytes` bytes of the caller's memory on the device, from `address`
   on, a multiple of 16. Destroying the buffer leaves the memory to the caller,
   who keeps it until then. */
KAS_RT_API KasRtStatus kasRtBufferBorrow(KasRtDevice device, uint64_t address,
                                         uint64_t bytes, KasRtBuffer *buffer);

/* Waits for what uses the buffer and frees it. Null does nothing. */
KAS_RT_API KasRtStatus kasRtBufferDestroy(KasRtBuffer buffer);

/* The bytes that the buffer was created with. */
KAS_RT_API uint64_t kasRtBufferGetSize(KasRtBuffer buffer);

/* Copies `bytes` bytes from the host to the buffer, from `offset` on. `source`
   can be changed when the call returns. */
KAS_RT_API KasRtStatus kasRtBufferWrite(KasRtBuffer buffer, uint64_t offset,
                                        const void *source, uint64_t bytes);

/* Waits for what was started before and copies `bytes` bytes to the host. */
KAS_RT_API KasRtStatus kasRtBufferRead(KasRtBuffer buffer, uint64_t offset,
                                       void *destination, uint64_t bytes);

/* Fills the buffer with a word of 32 bits; its size must be a multiple of 4. */
KAS_RT_API KasRtStatus kasRtBufferFill(KasRtBuffer buffer, uint32_t word);

/*===- Modules and kernels ------------------------------------------------===*/

/* Loads compiled kernels. CUDA: a cubin, a fatbin or the text of PTX, which the
   driver compiles. Vulkan: a SPIR-V module; of that only the structure is
   checked here, so it should be one that `spirv-val` accepts. `data` can be
   freed when the call returns. */
KAS_RT_API KasRtStatus kasRtModuleLoad(KasRtDevice device, const void *data,
                                       size_t bytes, KasRtModule *module);

/* Waits for the module's kernels and frees them. Null does nothing. */
KAS_RT_API KasRtStatus kasRtModuleUnload(KasRtModule module);

/* The kernel `name` with `bufferCount` buffers as its arguments. It belongs to
   the module and goes with it.
   CUDA: the arguments are pointers to the buffers. Vulkan: the buffers are
   storage buffers in descriptor set 0, bound to 0, 1, ... */
KAS_RT_API KasRtStatus kasRtModuleGetKernel(KasRtModule module,
                                            const char *name,
                                            uint32_t bufferCount,
                                            KasRtKernel *kernel);

/* A part of a buffer as a tensor of 16-bit floats, for the copy engine of GPUs
   since Hopper. Dimensions are innermost first. A copy takes a box, as lines of
   128 bytes whose units of 16 bytes are exchanged. */
typedef struct KasRtTensorMap {
  /* Which of the kernel's buffers. */
  uint32_t argument;
  /* 1 to 5. */
  uint32_t rank;
  /* Whether elements are bf16, not f16. */
  int32_t isBFloat16;
  uint64_t sizes[5];
  /* Bytes from one element to the next along dimensions 1, 2, ...; multiples of
     16. */
  uint64_t strides[4];
  uint32_t box[5];
} KasRtTensorMap;

/* As kasRtModuleGetKernel, for a kernel that takes a descriptor of 128 bytes
   for each map after its buffers. CUDA only, with a driver that can make these
   (12.0 or later). */
KAS_RT_API KasRtStatus kasRtModuleGetKernelWithTensorMaps(
    KasRtModule module, const char *name, uint32_t bufferCount,
    const KasRtTensorMap *maps, uint32_t mapCount, KasRtKernel *kernel);

/* Types of elements, and what factors of products are rounded to. */
typedef enum KasRtElement {
  KAS_RT_F32 = 0,
  KAS_RT_TF32 = 1,
  KAS_RT_F16 = 2,
  KAS_RT_BF16 = 3,
  /* No type: it makes the enumeration 32 bits wide. */
  KAS_RT_ELEMENT_WIDTH = 0x7fffffff
} KasRtElement;

/* A matrix for each batch, in one of a kernel's buffers. */
typedef struct KasRtMatrix {
  uint32_t argument;
  /* Elements from one batch to the next, then from one row to the next (of the
     right matrix: column), then from one step to the next (of the result:
     column). One of the last two is 1. */
  uint64_t strides[3];
} KasRtMatrix;

/* A product of matrices that a kernel computes:
     result[batch, row, column] = f(
       sum over steps of left[batch, row, step] * right[batch, column, step]
       + bias[column] + residual[batch, row, column])
   with sums in f32. */
typedef struct KasRtMatmul {
  uint64_t batches, rows, columns, steps;
  KasRtMatrix left, right, result;
  /* F32, F16 or BF16: of both factors, and of result, bias and residual. */
  KasRtElement factorType, resultType;
  /* What factors may be rounded to; F32: nothing is rounded. */
  KasRtElement precision;
  /* Positions among the kernel's buffers; -1: there is none. The bias has no
     gaps, the residual lies as the result does. */
  int32_t bias, residual;
  /* Whether f is the larger one of its argument and 0, or nothing. */
  int32_t isRectified;
} KasRtMatmul;

/* A convolution that a kernel computes:
     result[n, k, y, x] = f(
       sum over c, i, j of image[n, c', y * strides[0] + i * dilations[0] -
         pads[0], x * strides[1] + j * dilations[1] - pads[1]]
         * filter[k, c, i, j]
       + bias[k] + residual[n, k, y, x])
   with sums in f32 and nothing beyond the ends of an image. Tensors have no
   gaps. */
typedef struct KasRtConvolution {
  /* Positions among the kernel's buffers. */
  uint32_t image, filter, result;
  /* Of n, channels, height and width; of k, c, i and j. The image has as many
     times the channels of the filter as there are groups, and c' is c of the
     group of k: each group has as many k, one after another. */
  uint64_t imageSizes[4], filterSizes[4];
  /* Along height and width. All results are computed whose windows fit with the
     same pad at both ends. */
  uint64_t strides[2], dilations[2], pads[2];
  /* Whether the dimensions are in memory as n, height, width, channels and k,
     i, j, c; otherwise in the order above. */
  int32_t areChannelsLast;
  /* F32, F16 or BF16: of all tensors. */
  KasRtElement elementType;
  /* What factors may be rounded to; F32: nothing is rounded. */
  KasRtElement precision;
  /* Positions among the kernel's buffers; -1: there is none. */
  int32_t bias, residual;
  /* Whether f is the larger one of its argument and 0, or nothing. */
  int32_t isRectified;
} KasRtConvolution;

/* Lets a library compute what `kernel` does, from its next launch on: cuBLASLt
   a product (`libcublasLt.so.13`, `.12` or `.11`, or the file that
   KAS_RT_LIBCUBLASLT names), cuDNN a convolution (`libcudnn.so.9` or `.8`, or
   KAS_RT_LIBCUDNN), where it can be loaded and has a kernel for it, and unless
   the environment variable KAS_RT_LIBRARIES is 0. Otherwise, with Vulkan, and
   when a call of the library fails, `kernel` is launched, which is no error. To
   be called before the first launch; of several calls the first one counts. */
KAS_RT_API KasRtStatus kasRtKernelUseMatmul(KasRtKernel kernel,
                                            const KasRtMatmul *matmul);
KAS_RT_API KasRtStatus kasRtKernelUseConvolution(
    KasRtKernel kernel, const KasRtConvolution *convolution);

/* What computes the launches of `kernel`: the name and version of a library,
   `cuBLASLt 12.1.3`; `kernel`; or `kernel: ` and why no library does. Valid
   until the next call with this kernel. */
KAS_RT_API const char *kasRtKernelGetLibrary(KasRtKernel kernel);

typedef struct KasRtLaunchSize {
  /* Blocks (workgroups) along x, y and z; none is 0. */
  uint32_t grid[3];
  /* Threads of a block along x, y and z; none is 0. Vulkan: what the module
     says, as it is compiled in. */
  uint32_t block[3];
  /* Bytes of workgroup memory in addition to the static ones; CUDA only. */
  uint32_t dynamicSharedBytes;
} KasRtLaunchSize;

/* An argument of a kernel: `bytes` bytes of a buffer from `offset` on, which is
   a multiple of 256. 0 bytes stand for all to the end. */
typedef struct KasRtArgument {
  KasRtBuffer buffer;
  uint64_t offset;
  uint64_t bytes;
} KasRtArgument;

/* Starts a kernel; the arguments are as many as it was requested with, all of
   its device. Two of them may be the same bytes. */
KAS_RT_API KasRtStatus kasRtLaunch(KasRtKernel kernel,
                                   const KasRtLaunchSize *size,
                                   const KasRtArgument *arguments,
                                   uint32_t count);

/* A launch of a sequence, as kasRtLaunch takes it. */
typedef struct KasRtStep {
  KasRtKernel kernel;
  KasRtLaunchSize size;
  const KasRtArgument *arguments;
  uint32_t count;
} KasRtStep;

/* Prepares launches that are started together, one after another; nothing runs
   yet. CUDA: one graph, with a driver that has them (11.4 or later) and unless
   the environment variable KAS_RT_GRAPHS is 0. `steps` can be freed when the
   call returns; kernels and buffers must live as long as the sequence. */
KAS_RT_API KasRtStatus kasRtSequenceCreate(KasRtDevice device,
                                           const KasRtStep *steps,
                                           uint32_t count,
                                           KasRtSequence *sequence);

/* Waits for what was started and frees the sequence. Null does nothing. */
KAS_RT_API KasRtStatus kasRtSequenceDestroy(KasRtSequence sequence);

/* Starts all launches of the sequence. */
KAS_RT_API KasRtStatus kasRtSequenceLaunch(KasRtSequence sequence);

/*===- Timing -------------------------------------------------------------===*/

KAS_RT_API KasRtStatus kasRtEventCreate(KasRtDevice device, KasRtEvent *event);

/* Null does nothing. */
KAS_RT_API KasRtStatus kasRtEventDestroy(KasRtEvent event);

/* Marks the time on the device when all that was started before is done. */
KAS_RT_API KasRtStatus kasRtEventRecord(KasRtEvent event);

/* Waits for `stop` and gives the time between two events of one device in
   milliseconds, by the clock of the device. Both must have been recorded. */
KAS_RT_API KasRtStatus kasRtEventElapsed(KasRtEvent start, KasRtEvent stop,
                                         double *milliseconds);

#ifdef __cplusplus
}
#endif

#endif /* KAS_RT_H */
