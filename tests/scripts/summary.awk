# Prints operations a second and megabytes a second out of Filebench's report, of either generation.
/IO Summary:/ {
    sub(/^.*IO Summary: */, "")
    gsub(/,/, "")
    mb = ""
    for (i = 1; i <= NF; i++)
        if ($i ~ /mb\/s$/) { mb = $i; sub(/mb\/s$/, "", mb) }
    printf "%s ops %s/s %s MB/s\n", $1, $3, mb
}
