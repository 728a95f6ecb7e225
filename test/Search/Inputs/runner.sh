#!/bin/sh
# Stands for kas-run: behaves as the name of the link says.
case $(basename "$0") in
  crash) kill -SEGV $$ ;;
  hang) exec sleep 60 ;;
  nonsense) echo '{"median_ms": "soon"}' ;;
  fail) echo 'error: no such device' >&2; exit 3 ;;
  record) echo "$@" >&2; echo "$@" >>"$KAS_TEST_RECORD"; echo '{"median_ms": 1.5}' ;;
  slow-binding) case $* in *Cin=16*) echo '{"median_ms": 0.5}' ;; *) echo '{"median_ms": 2.0}' ;; esac ;;
  # By what the candidate is, so that the same ones always fail.
  some-fail) if grep -q kas.unfold "$1"; then exit 4; fi; echo '{"median_ms": 1.5}' ;;
esac
