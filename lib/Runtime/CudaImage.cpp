//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that an image for CUDA's driver is whole: cubin, fatbin, or PTX text.
// `cuModuleLoadDataEx` takes a pointer without a length and trusts the offsets
// in the image: a file that was cut off would make the driver read beyond it.
// Only the sizes are checked; what the sections hold is for the driver to
// refuse.
//
//===----------------------------------------------------------------------===//

#include "CudaImage.h"
#include <cstring>
#include <elf.h>

using namespace kas::rt;

/// The first bytes of a fatbin: magic number, version, the header's own length
/// and the length of what follows.
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t bytes;
};
static constexpr uint32_t fatbinMagic = 0xBA55ED50;
/// The ELF machine of CUDA.
static constexpr uint16_t elfCuda = 190;

static Status invalid(const std::string &got) {
  return {KAS_RT_ERROR_INVALID_MODULE,
          "expected a cubin, a fatbin or PTX, got " + got};
}

/// A cubin is an ELF file: the tables of sections and of segments, and each
/// section, must be within the image.
static Status checkElf(const std::string &image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof(header))
    return invalid("an ELF file of " + std::to_string(image.size()) + " bytes");
  std::memcpy(&header, image.data(), sizeof(header));
  // An object file of the host is an ELF file, too.
  if (header.e_machine != elfCuda || header.e_ident[EI_CLASS] != ELFCLASS64)
    return invalid("an ELF file for machine " +
                   std::to_string(header.e_machine));
  // Whether `count` entries of `size` bytes from `offset` on are in the image;
  // the products of fields of 16 bits do not overflow.
  auto fits = [&](uint64_t offset, uint64_t count, uint64_t size) {
    return offset <= image.size() && count * size <= image.size() - offset;
  };
  if (!fits(header.e_shoff, header.e_shnum, header.e_shentsize) ||
      !fits(header.e_phoff, header.e_phnum, header.e_phentsize))
    return invalid("a cubin that is cut off");
  if (header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr))
    return invalid("a cubin with section headers of " +
                   std::to_string(header.e_shentsize) + " bytes");
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof(section),
                sizeof(section));
    // Sections without bytes in the file, such as .bss, have a size only.
    if (section.sh_type != SHT_NOBITS &&
        !fits(section.sh_offset, 1, section.sh_size))
      return invalid("a cubin that is cut off");
  }
  return {};
}

/// A fatbin says in its header how many bytes follow.
static Status checkFatbin(const std::string &image) {
  FatbinHeader header;
  if (image.size() < sizeof(header))
    return invalid("a fatbin of " + std::to_string(image.size()) + " bytes");
  std::memcpy(&header, image.data(), sizeof(header));
  if (header.headerBytes < sizeof(header) ||
      header.headerBytes > image.size() ||
      header.bytes > image.size() - header.headerBytes)
    return invalid("a fatbin that is cut off");
  return {};
}

Status kas::rt::readCudaImage(const void *data, size_t bytes,
                              std::string &image) {
  image.assign(static_cast<const char *>(data), bytes);
  if (image.compare(0, 4, ELFMAG) == 0)
    return checkElf(image);
  uint32_t magic = 0;
  if (bytes >= sizeof(magic))
    std::memcpy(&magic, data, sizeof(magic));
  if (magic == fatbinMagic)
    return checkFatbin(image);

  // PTX; the compiler's output may or may not have the null at the end.
  while (!image.empty() && image.back() == '\0')
    image.pop_back();
  if (image.empty())
    return invalid("0 bytes");
  if (image.find('\0') != std::string::npos)
    return invalid("bytes of another format");
  // Each PTX module begins with a `.version` directive, after comments.
  if (image.find(".version") == std::string::npos)
    return invalid("a text without .version");
  return {};
}
