# Prints, for each stream of a command that was ended, the mark that `spool.py` would have printed, and the tail.
# Set before it: `base`, the path of the files without their ends; `nonce`; `half`, the bytes passed on as head.

for stream in 1 2; do
    file=$base.stdout
    ((stream == 2)) && file=$base.stderr
    [[ -f $file ]] || continue
    size=$(wc -c < "$file")
    tail=$((size > 2 * half ? half : size > half ? size - half : 0))
    printf '\x1e%s %d %d %d 0\x1e' "$nonce" "$size" "$((size > half ? size - half - tail : 0))" "$size" >&$stream
    ((tail)) && tail -c "$tail" "$file" >&$stream
done
