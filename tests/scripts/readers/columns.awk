# The result by the numbers of its columns; `at` is that of the operations.
/IO Summary/ {
    print "ops", $at
    print "rate", $(at + 2)
    print "latency", $(at + (at == 4 ? 7 : 9)) + 0
}
