#!/bin/sh
# Stands for `kas-run --worker`: behaves as the name of the link says.
answer() { printf '{"id":%s,"metrics":{"latency_ms":%s}}\n' "$id" "$1"; }
kind=$(basename "$0")
while IFS= read -r request; do
  id=${request#*:} id=${id%%,*}
  case $kind in
    crash) kill -SEGV $$ ;;
    hang) exec sleep 60 ;;
    nonsense) answer '"soon"' ;;
    other) printf '{"id":%s,"metrics":{"speed":3}}\n' "$id" ;;
    fail) echo 'error: no such device' >&2; exit 3 ;;
    record) printf '%s %s\n' "$*" "$request" >>"$KAS_TEST_RECORD"; answer 6 ;;
    slow) answer 3.5 ;;
    # By what the candidate is, so that the same ones always fail.
    some-fail) case $request in *kas.unfold* | *kas.dag.fold*) exit 4 ;; *) answer 1.5 ;; esac ;;
  esac
done
