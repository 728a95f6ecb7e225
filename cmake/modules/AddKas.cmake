# The one place that knows how kas targets are made: every library, tool, plug-in and generated page goes
# through these functions, so that flags, dependencies, install and export rules are in one place.

# kas_use_ccache(): compiles through ccache where it is installed. The cache is shared by all clones: paths below the
# source tree are taken relative to it, and precompiled headers count by what they hold, not by their bytes, which name
# the folder that they were made in.
function(kas_use_ccache)
  find_program(KAS_CCACHE ccache DOC "Keeps objects of earlier builds; OFF: not used")
  if(NOT KAS_CCACHE)
    return()
  endif()
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${KAS_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher} PARENT_SCOPE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher} PARENT_SCOPE)
endfunction()

# kas_add_precompiled_headers(TARGET NAME [DEPENDS targets...]): MLIR's headers are most of what a compilation reads; all
# targets that kas_set_target_flags gives TARGET share one precompiled copy of cmake/NAME. No source may rely on it: the
# preset `asan` and tools/lint.sh --plain-headers build without.
function(kas_add_precompiled_headers target name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Carries the precompiled headers.\n")
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  kas_set_target_flags(${target} PLAIN)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # By name: the same text in each clone.
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake)
  target_precompile_headers(${target} PRIVATE <${name}>)
  set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch)
  set_property(GLOBAL PROPERTY ${target} ${precompiled})
  # A library of objects is not waited for by objects of others; a file is.
  add_custom_target(${target}-file DEPENDS ${precompiled})
  if(ARG_DEPENDS)
    add_dependencies(${target} ${ARG_DEPENDS})
  endif()
  # What ccache takes for its contents; the headers that it holds are in the list of dependencies of each object.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/${name})
  file(SHA256 ${PROJECT_SOURCE_DIR}/cmake/${name} digest)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} --version OUTPUT_VARIABLE compiler)
  file(CONFIGURE OUTPUT ${precompiled}.sum CONTENT "${digest}\n${LLVM_PACKAGE_VERSION}\n${compiler}")
endfunction()

# kas_set_target_flags(NAME [PLAIN] [CORE]): PLAIN is for sources that use nothing of MLIR, CORE for those below the
# dialects, for which the larger precompiled headers would cost more than they save.
function(kas_set_target_flags name)
  llvm_update_compile_flags(${name})
  set(headers kas-precompiled)
  if("CORE" IN_LIST ARGN)
    set(headers kas-precompiled-core)
  endif()
  if(TARGET ${headers} AND NOT "PLAIN" IN_LIST ARGN)
    # One copy for libraries and programs: both are compiled with -fPIC, which HandleLLVMOptions gives.
    get_target_property(type ${name} TYPE)
    if(type STREQUAL EXECUTABLE)
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    endif()
    # Not by REUSE_FROM: that names the text of the headers as well, by a path that ccache does not take as relative.
    get_property(precompiled GLOBAL PROPERTY ${headers})
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Winvalid-pch> $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -include-pch -Xclang ${precompiled}>)
    add_dependencies(${name} ${headers}-file)
  endif()
  if(KAS_ENABLE_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(KAS_SANITIZERS)
    target_compile_options(${name} PRIVATE -fsanitize=${KAS_SANITIZERS} -fno-sanitize=vptr
      -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${name} PUBLIC -fsanitize=${KAS_SANITIZERS})
  endif()
endfunction()

# kas_describe_library(NAME summary libraries): notes what the library holds and which of ours it uses, for
# build/libraries.json.
function(kas_describe_library name summary libraries)
  if(NOT summary)
    message(FATAL_ERROR "${name} has no SUMMARY: one line that says what the library holds")
  endif()
  list(FILTER libraries INCLUDE REGEX "^KAS")
  string(REPLACE ";" "\", \"" uses "${libraries}")
  if(uses)
    set(uses "\"${uses}\"")
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL APPEND_STRING PROPERTY KAS_LIBRARIES
    "  {\"name\": \"${name}\", \"folder\": \"${folder}\", \"holds\": \"${summary}\", \"uses\": [${uses}]},\n")
endfunction()

# Writes build/libraries.json: the libraries in the order in which they are added, with what each holds and uses. The
# table of CONTRIBUTING.md is made of it, and the tests check it for edges that must not be.
function(kas_write_libraries)
  get_property(libraries GLOBAL PROPERTY KAS_LIBRARIES)
  string(REGEX REPLACE ",\n$" "\n" libraries "${libraries}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libraries.json CONTENT "[\n${libraries}]\n" @ONLY)
endfunction()

# add_kas_library(NAME [CORE] sources... SUMMARY text [LINK_LIBS libraries...] [DEPENDS targets...])
# A static, position-independent library, exported as Kas::NAME. It links Debian's shared libMLIR and libLLVM:
# never a static MLIR archive beside them, which would register every option and TypeID twice.
function(add_kas_library name)
  cmake_parse_arguments(ARG "CORE" "SUMMARY" "LINK_LIBS;DEPENDS" ${ARGN})
  set(core)
  if(ARG_CORE)
    set(core CORE)
  endif()
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  add_library(Kas::${name} ALIAS ${name})
  kas_describe_library(${name} "${ARG_SUMMARY}" "${ARG_LINK_LIBS}")
  kas_set_target_flags(${name} ${core})
  add_dependencies(${name} kas-headers ${ARG_DEPENDS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS} MLIR LLVM)
  install(TARGETS ${name} EXPORT KasTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  kas_add_to_component(development ${name})
  set_property(GLOBAL APPEND PROPERTY KAS_EXPORTED_TARGETS ${name})
endfunction()

# add_kas_runtime_library(NAME ARCHIVE sources... SUMMARY text [INCLUDE_DIRS directories...])
# A shared library NAME for programs in any language, with the functions that its header marks, and a static library
# ARCHIVE of the same for our own tools, exported as Kas::ARCHIVE. Neither links MLIR or LLVM.
function(add_kas_runtime_library name archive)
  cmake_parse_arguments(ARG "" "SUMMARY" "INCLUDE_DIRS" ${ARGN})
  kas_describe_library(${archive} "${ARG_SUMMARY}" "")
  add_library(${name}-objects OBJECT ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name}-objects PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${name}-objects SYSTEM PRIVATE ${ARG_INCLUDE_DIRS})
  add_library(${name} SHARED $<TARGET_OBJECTS:${name}-objects>)
  add_library(${archive} STATIC $<TARGET_OBJECTS:${name}-objects>)
  add_library(Kas::${name} ALIAS ${name})
  add_library(Kas::${archive} ALIAS ${archive})
  foreach(target ${name}-objects ${name} ${archive})
    kas_set_target_flags(${target} PLAIN)
    target_include_directories(${target} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  foreach(target ${name} ${archive})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})
    # Apart from the libraries of the compiler: tools like kas-opt link all of those.
    set_property(GLOBAL APPEND PROPERTY KAS_RUNTIME_TARGETS ${target})
  endforeach()
  install(TARGETS ${archive} EXPORT KasTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(TARGETS ${name} EXPORT KasRuntimeTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT gpu)
  kas_add_to_component(development ${archive})
  kas_add_to_component(gpu ${name})
endfunction()

# add_kas_tool(NAME sources... [LINK_LIBS libraries...])
function(add_kas_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  kas_set_target_flags(${name})
  add_dependencies(${name} kas-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools OPTIONAL)
  kas_add_to_component(tools ${name})
  set_property(GLOBAL APPEND PROPERTY KAS_TOOLS ${name})
endfunction()

# add_kas_test_tool(NAME [PLAIN] sources... [LINK_LIBS libraries...]): a program that only tests use; not installed.
# PLAIN: without precompiled headers, for flags that those are not compiled with.
function(add_kas_test_tool name)
  cmake_parse_arguments(ARG "PLAIN" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  set(plain)
  if(ARG_PLAIN)
    set(plain PLAIN)
  endif()
  kas_set_target_flags(${name} ${plain})
  add_dependencies(${name} kas-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  set_property(GLOBAL APPEND PROPERTY KAS_UNITTESTS ${name})
endfunction()

# add_kas_plugin(NAME sources... [LINK_LIBS libraries...]): a module for stock mlir-opt.
function(add_kas_plugin name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  kas_set_target_flags(${name})
  set_target_properties(${name} PROPERTIES PREFIX "")
  add_dependencies(${name} kas-headers)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tools OPTIONAL)
  kas_add_to_component(tools ${name})
  set_property(GLOBAL APPEND PROPERTY KAS_TOOLS ${name})
endfunction()

# add_kas_test_library(NAME sources... [LINK_LIBS libraries...]): code that several tests share; not installed.
function(add_kas_test_library name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  kas_set_target_flags(${name})
  add_dependencies(${name} kas-headers)
  target_include_directories(${name} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS} MLIR LLVM)
endfunction()

# add_kas_unittest(NAME sources... [LINK_LIBS libraries...]): a GoogleTest program, built by check-kas.
function(add_kas_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  kas_set_target_flags(${name})
  add_dependencies(${name} kas-headers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest GTest::gtest_main MLIR LLVM)
  set_property(GLOBAL APPEND PROPERTY KAS_UNITTESTS ${name})
endfunction()

# add_kas_tablegen(TARGET FILE output generator-arguments... [-- output arguments...]...)
# Runs mlir-tblgen on FILE once per output; kas-headers depends on TARGET.
function(add_kas_tablegen target file)
  set(LLVM_TARGET_DEFINITIONS ${file})
  set(call)
  foreach(argument IN LISTS ARGN)
    if(argument STREQUAL "--")
      mlir_tablegen(${call})
      set(call)
    else()
      list(APPEND call ${argument})
    endif()
  endforeach()
  mlir_tablegen(${call})
  add_public_tablegen_target(${target})
  add_dependencies(kas-headers ${target})
endfunction()

# add_kas_doc(FILE output generator-arguments...): a page build/docs/output.md, made by the target kas-doc. Pages of
# passes (-gen-pass-doc) become the sections of build/docs/passes.md as well: KasXPasses.md gives the section X. Those of
# dialects and ops become sections of build/docs/ops.md.
function(add_kas_doc file output)
  set(LLVM_TARGET_DEFINITIONS ${file})
  tablegen(MLIR ${output}.md ${ARGN})
  set(page ${PROJECT_BINARY_DIR}/docs/${output}.md)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${output}.md ${page}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${output}.md)
  add_custom_target(kas-doc-${output} DEPENDS ${page})
  add_dependencies(kas-doc kas-doc-${output})
  if("-gen-pass-doc" IN_LIST ARGN)
    set_property(GLOBAL APPEND PROPERTY KAS_PASS_PAGES ${page})
  else()
    set_property(GLOBAL APPEND PROPERTY KAS_OP_PAGES ${page})
  endif()
endfunction()

# Adds build/docs/passes.md and build/docs/ops.md, all passes and all ops on one page each, to the target kas-doc.
function(kas_add_reference_pages)
  get_property(passes GLOBAL PROPERTY KAS_PASS_PAGES)
  get_property(ops GLOBAL PROPERTY KAS_OP_PAGES)
  _kas_add_joined_page(passes "Passes" "${passes}")
  _kas_add_joined_page(ops "Operations and attributes" "${ops}")
endfunction()

function(_kas_add_joined_page name title pages)
  set(page ${PROJECT_BINARY_DIR}/docs/${name}.md)
  set(script ${PROJECT_SOURCE_DIR}/cmake/modules/JoinPages.cmake)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${page} "-DTITLE=${title}" "-DPAGES=${pages}" -P ${script}
    DEPENDS ${pages} ${script} VERBATIM)
  add_custom_target(kas-doc-${name} DEPENDS ${page})
  add_dependencies(kas-doc kas-doc-${name})
endfunction()

# kas_add_to_component(COMPONENT target): what cmake --install --component COMPONENT installs needs `target`. The targets
# kas-tools, kas-development and so on build all that a component needs.
function(kas_add_to_component component target)
  if(NOT TARGET kas-${component})
    add_custom_target(kas-${component})
  endif()
  add_dependencies(kas-${component} ${target})
  set_property(GLOBAL APPEND PROPERTY KAS_COMPONENT_${component} ${target})
endfunction()

# Lets cmake --install say what was not built (see cmake/Install.cmake). Called before anything else adds install rules.
function(kas_check_installed_components)
  install(CODE "include(\"${PROJECT_BINARY_DIR}/components.cmake\")
include(\"${PROJECT_SOURCE_DIR}/cmake/Install.cmake\")
if(kas_is_installed)
  return()
endif()" ALL_COMPONENTS)
endfunction()

# Writes build/components.cmake for cmake/Install.cmake: the files of each component that a build makes.
function(kas_write_components)
  set(text "set(kas_build_directory \"${PROJECT_BINARY_DIR}\")\nset(kas_components)\n")
  foreach(component tools development gpu python)
    get_property(targets GLOBAL PROPERTY KAS_COMPONENT_${component})
    if(targets)
      set(files)
      foreach(target IN LISTS targets)
        list(APPEND files "$<TARGET_FILE:${target}>")
      endforeach()
      list(JOIN files "\" \"" files)
      string(APPEND text "list(APPEND kas_components ${component})\nset(kas_files_${component} \"${files}\")\n")
    endif()
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/components.cmake CONTENT "${text}")
endfunction()

# Makes find_package(Kas) work from the build tree and from an install tree.
function(kas_install_package)
  include(CMakePackageConfigHelpers)
  set(destination ${CMAKE_INSTALL_LIBDIR}/cmake/kas)
  get_property(targets GLOBAL PROPERTY KAS_EXPORTED_TARGETS)
  get_property(runtime GLOBAL PROPERTY KAS_RUNTIME_TARGETS)
  list(APPEND targets ${runtime})
  string(REPLACE ";" " " KAS_CONFIG_TARGETS "${targets}")
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/KasConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasConfig.cmake INSTALL_DESTINATION ${destination})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lib/cmake/kas/KasConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  export(EXPORT KasTargets NAMESPACE Kas:: FILE ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasTargets.cmake)
  install(EXPORT KasTargets NAMESPACE Kas:: DESTINATION ${destination} COMPONENT development)
  if(KAS_ENABLE_GPU)
    export(EXPORT KasRuntimeTargets NAMESPACE Kas:: FILE ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasRuntimeTargets.cmake)
    install(EXPORT KasRuntimeTargets NAMESPACE Kas:: DESTINATION ${destination} COMPONENT gpu)
    # The headers of the libraries need this one, too.
    foreach(component development gpu)
      install(FILES ${PROJECT_SOURCE_DIR}/include/kas-rt/kas-rt.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kas-rt COMPONENT ${component})
    endforeach()
  else()
    # Of an earlier configuration.
    file(REMOVE ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasRuntimeTargets.cmake)
    set(left_out PATTERN "GPU" EXCLUDE)
  endif()
  install(FILES ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasConfig.cmake
    ${PROJECT_BINARY_DIR}/lib/cmake/kas/KasConfigVersion.cmake DESTINATION ${destination} COMPONENT development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kas ${PROJECT_SOURCE_DIR}/include/kas-c ${PROJECT_BINARY_DIR}/include/kas
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING
    PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE ${left_out})
endfunction()
