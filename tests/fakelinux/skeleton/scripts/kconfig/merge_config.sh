#!/bin/sh
# merge_config.sh -m -O DIR BASE FRAGMENT
set -e
out=$3
cat "$4" "$5" > "$out/.merged"
mv "$out/.merged" "$out/.config"
