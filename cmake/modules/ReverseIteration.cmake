# KAS_REVERSE_ITERATION: hash containers of LLVM, as our code uses them, that go backwards in a process with the
# environment variable of that name. LLVM's own switch is a constant of its build and chooses the type of iterators; so
# copies of two headers are made in the build tree, with another type there. cmake/reverse-iteration has that type.

# _kas_patch_header(HEADER count text replacement [count text replacement]...): a copy of LLVM's header in the folder
# reverse-iteration of the build tree, with replacements. An error where a text does not occur exactly so often: another
# LLVM may have another header.
function(_kas_patch_header header)
  foreach(folder IN LISTS LLVM_INCLUDE_DIRS)
    if(EXISTS ${folder}/${header})
      set(original ${folder}/${header})
      break()
    endif()
  endforeach()
  if(NOT original)
    message(FATAL_ERROR "KAS_REVERSE_ITERATION needs '${header}' in one of: ${LLVM_INCLUDE_DIRS}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} text)
  math(EXPR last "${ARGC} - 1")
  foreach(index RANGE 1 ${last} 3)
    set(expected "${ARGV${index}}")
    math(EXPR index "${index} + 1")
    set(old "${ARGV${index}}")
    math(EXPR index "${index} + 1")
    set(new "${ARGV${index}}")
    string(LENGTH "${text}" before)
    string(LENGTH "${old}" length)
    string(REPLACE "${old}" "" without "${text}")
    string(LENGTH "${without}" after)
    math(EXPR count "(${before} - ${after}) / ${length}")
    if(NOT count EQUAL expected)
      message(FATAL_ERROR "KAS_REVERSE_ITERATION expects '${old}' ${expected} times in '${original}', got ${count}: "
        "it is made for LLVM 22; leave it off for another one")
    endif()
    string(REPLACE "${old}" "${new}" text "${text}")
  endforeach()
  # Only where it changes: everything depends on it.
  set(copy ${PROJECT_BINARY_DIR}/reverse-iteration/${header})
  set(present "")
  if(EXISTS ${copy})
    file(READ ${copy} present)
  endif()
  if(NOT present STREQUAL text)
    file(WRITE ${copy} "${text}")
  endif()
endfunction()

# Makes the headers and puts them before LLVM's own, for all targets of this and deeper folders.
function(kas_enable_reverse_iteration)
  _kas_patch_header(llvm/ADT/DenseMap.h
    1 "std::reverse_iterator<pointer>" "TwoWayPointer<pointer>"
    1 "constexpr int Offset = shouldReverseIterate<KeyT>() ? 1 : 0"
      "const ptrdiff_t Offset = shouldReverseIterate<KeyT>() ? -reverseIterationOffset : 0"
    1 "return reverse(Range)" "return getTwoWayRange(Range)"
    3 "shouldReverseIterate<KeyT>()" "shouldReverseIterate<KeyT>()")
  _kas_patch_header(llvm/ADT/SmallPtrSet.h
    1 "std::reverse_iterator<const void *const *>" "TwoWayPointer<const void *const *>"
    2 "if constexpr (shouldReverseIterate())" "if (reverseIterationOffset)"
    1 "shouldReverseIterate()" "shouldReverseIterate()")
  include_directories(BEFORE SYSTEM
    ${PROJECT_SOURCE_DIR}/cmake/reverse-iteration ${PROJECT_BINARY_DIR}/reverse-iteration)
endfunction()
