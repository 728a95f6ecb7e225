# Writes the file INPUT as a string literal to OUTPUT, in pieces that compilers take.
file(STRINGS ${INPUT} lines)
set(literal "")
foreach(line IN LISTS lines)
  string(APPEND literal "\"${line}\\n\"\n")
endforeach()
file(WRITE ${OUTPUT} "${literal}")
