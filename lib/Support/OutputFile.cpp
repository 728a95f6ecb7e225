//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes files through a temporary one and a rename, so that an old file stays
// whole on failure.
// A reader never sees half a file, and a full disk or a crash loses nothing.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/OutputFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

Error cannotWrite(StringRef path, std::error_code code) {
  return createStringError(code,
                           "cannot write '" + path + "': " + code.message());
}

/// Runs `write` on a stream and turns what the stream met into an error; a
/// stream that is destroyed with an error aborts the program.
Error writeToStream(StringRef path, raw_fd_ostream &stream,
                    function_ref<Error(raw_ostream &)> write) {
  Error failure = write(stream);
  stream.flush();
  if (std::error_code code = stream.error()) {
    stream.clear_error();
    // Both are reported: the writer's own error may be a consequence of the
    // disk's.
    return joinErrors(std::move(failure), cannotWrite(path, code));
  }
  return failure;
}

} // namespace

Error kas::writeFile(StringRef path, function_ref<Error(raw_ostream &)> write) {
  SmallString<128> target(path);
  sys::fs::file_status status;
  // A file that is not regular, such as /dev/stdout or a named pipe, cannot be
  // replaced by a rename: it is written directly. A symbolic link stays one,
  // and its target is replaced.
  if (!sys::fs::status(path, status)) {
    if (sys::fs::is_directory(status))
      return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
    if (!sys::fs::is_regular_file(status)) {
      std::error_code code;
      raw_fd_ostream stream(path, code, sys::fs::OF_Append);
      if (code)
        return cannotWrite(path, code);
      return writeToStream(path, stream, write);
    }
    if (sys::fs::real_path(path, target))
      target = path;
  }

  // In the same folder, because a rename within one file system is atomic. LLVM
  // removes the file when a signal ends the program.
  Expected<sys::fs::TempFile> temporary =
      sys::fs::TempFile::create(target + ".%%%%%%%%.tmp");
  if (!temporary)
    return cannotWrite(path, errorToErrorCode(temporary.takeError()));
  Error failure = Error::success();
  {
    // The stream must be gone, with all of it written, before the rename.
    raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    failure =
        joinErrors(std::move(failure), writeToStream(path, stream, write));
  }
  if (failure)
    return joinErrors(std::move(failure), temporary->discard());
  if (Error kept = temporary->keep(target))
    return cannotWrite(path, errorToErrorCode(std::move(kept)));
  return Error::success();
}
