#!/bin/sh
# Interesting (1) is a module with a shift.
if grep -q 'kas.shift' "$1"; then exit 1; fi
exit 0
