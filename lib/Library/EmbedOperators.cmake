# Writes OUTPUT: for each DIRECTORY/*.mlir a line that makes a NamedOperator of its name and text. A raw string keeps
# the text as it is; one file is far below the limit of a literal.
file(GLOB files ${DIRECTORY}/*.mlir)
list(SORT files)
set(content "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(APPEND content "{\"${name}\", R\"kas(${text})kas\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "${content}")
