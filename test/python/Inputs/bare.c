/* Runs a network without a C library, and without an operating system but for the end: the status says whether the
 * results are right. */
#include "net_weights.h"

#include <stddef.h>

extern const unsigned char net_example[];

static _Alignas(64) float packed[NET_PREPACKED_ELEMENTS];
static _Alignas(64) char workspace[NET_WORKSPACE_BYTES + 64];
static float result[COUNT];

/* Compilers call these. */
void *memcpy(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}

void *memset(void *to, int value, size_t count) {
  for (size_t i = 0; i < count; ++i)
    ((volatile char *)to)[i] = (char)value;
  return to;
}

#ifdef __arm__
void __aeabi_memclr4(void *to, size_t count) { memset(to, 0, count); }
void __aeabi_memcpy4(void *to, const void *from, size_t count) { memcpy(to, from, count); }
#endif

static void leave(int status) {
#if defined(__riscv)
  register long a0 __asm__("a0") = status, a7 __asm__("a7") = 93;
  __asm__ volatile("ecall" : : "r"(a0), "r"(a7));
#elif defined(__aarch64__)
  register long x0 __asm__("x0") = status, x8 __asm__("x8") = 93;
  __asm__ volatile("svc #0" : : "r"(x0), "r"(x8));
#else
  register int r0 __asm__("r0") = status, r7 __asm__("r7") = 1;
  __asm__ volatile("svc #0" : : "r"(r0), "r"(r7));
#endif
}

void _start(void) {
  const float *expected = (const float *)(net_example + EXPECTED);
  if (net_setup(packed, workspace) || net_run((const void *)net_example, result, packed, workspace))
    leave(2);
  for (int i = 0; i < COUNT; ++i) {
    float difference = result[i] - expected[i];
    if (!(difference < 1e-4f && difference > -1e-4f))
      leave(1);
  }
  leave(0);
}
