# Part of cmake --install: which components can be installed, by what was built. It knows from build/components.cmake the
# components (kas_components) and the files of each that a build makes (kas_files_COMPONENT).
#
# A component that is named must be built, else it is an error that names the target to build; of the tools those are
# installed that are there. Without a name all components are installed that can be, and the others are listed.

cmake_policy(SET CMP0057 NEW)

# Sets `missing` to the files of a component that are not there, without their folders, and `found` to how many are.
function(kas_find_missing component)
  set(missing)
  set(found 0)
  foreach(file IN LISTS kas_files_${component})
    if(EXISTS "${file}")
      math(EXPR found "${found} + 1")
    else()
      get_filename_component(name "${file}" NAME)
      list(APPEND missing ${name})
    endif()
  endforeach()
  list(JOIN missing ", " missing)
  set(missing "${missing}" PARENT_SCOPE)
  set(found ${found} PARENT_SCOPE)
endfunction()

set(kas_is_installed FALSE)
if(CMAKE_INSTALL_COMPONENT AND NOT CMAKE_INSTALL_COMPONENT IN_LIST kas_components)
  list(JOIN kas_components ", " kas_names)
  message(FATAL_ERROR "expected one of the components of this build (${kas_names}), got '${CMAKE_INSTALL_COMPONENT}' "
    "(gpu requires KAS_ENABLE_GPU=ON, python requires KAS_ENABLE_PYTHON=ON)")
elseif(CMAKE_INSTALL_COMPONENT)
  kas_find_missing(${CMAKE_INSTALL_COMPONENT})
  set(kas_how "cmake --build ${kas_build_directory} --target kas-${CMAKE_INSTALL_COMPONENT}")
  if(missing AND CMAKE_INSTALL_COMPONENT STREQUAL "tools" AND found)
    message(STATUS "Left out, not built: ${missing} (${kas_how})")
  elseif(missing)
    message(FATAL_ERROR "the component '${CMAKE_INSTALL_COMPONENT}' requires the target "
      "'kas-${CMAKE_INSTALL_COMPONENT}' (${kas_how}), got a build without ${missing}")
  endif()
else()
  # One by one: the script that includes this one installs the component that is named. That of the Python package is for
  # pip, which names it.
  list(REMOVE_ITEM kas_components python)
  foreach(kas_component IN LISTS kas_components)
    kas_find_missing(${kas_component})
    if(NOT missing OR (kas_component STREQUAL "tools" AND found))
      set(CMAKE_INSTALL_COMPONENT ${kas_component})
      include("${kas_build_directory}/cmake_install.cmake")
      set(CMAKE_INSTALL_COMPONENT)
      set(kas_is_installed TRUE)
    else()
      message(STATUS "Left out, not built: the component '${kas_component}' "
        "(cmake --build ${kas_build_directory} --target kas-${kas_component})")
    endif()
  endforeach()
  if(NOT kas_is_installed)
    message(FATAL_ERROR "an installation requires a target to be built (cmake --build ${kas_build_directory}), got none")
  endif()
endif()
