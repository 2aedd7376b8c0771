#!/bin/sh
# merge_config.sh -m -O DIR BASE FRAGMENT...
set -e
out=$3
shift 3
cat "$@" > "$out/.merged"
mv "$out/.merged" "$out/.config"
