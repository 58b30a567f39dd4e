# The first bandwidth of the output.
echo "first_bandwidth $(grep -oE '[0-9.]+ ?mb/s' | head -n 1 | sed 's/ *mb.s//')"
