# cmake -DOUTPUT=... -DNAME=... -DFILES=a;b;c -P source_hash.cmake: a header with the hash of the files' contents.
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  string(APPEND all ${hash})
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 32 hash)
file(WRITE ${OUTPUT} "#pragma once\n\nnamespace ${NAMESPACE} {\ninline constexpr char ${NAME}[] = \"${hash}\";\n}\n")
