# Writes the file INPUT as a string literal, one piece per line, to OUTPUT.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE ${OUTPUT} "\"${text}\"\n")
