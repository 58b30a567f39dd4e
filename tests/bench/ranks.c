/*
 * The work of the personalities ior_hard and mdtest_hard under MPI, with as few calls and as little else as possible.
 *
 * mpirun -n RANKS ranks ior_hard|mdtest_hard DIR COUNT
 *
 * COUNT records or files for each rank. Rank 0 prints the seconds of each phase, from the time at which all ranks have
 * come to its start until all have come to its end. A rank that waits for others sleeps, as those of wmlrun do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 47008, FILE_SIZE = 3901, LONGEST = 4096 };

static int rank, ranks;
static char buffer[RECORD];

static void check(int is_good, const char *what) {
  if (!is_good) {
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Waits until all ranks have come here, looking for their messages every half millisecond. */
static void meet(void) {
  MPI_Request request;
  int is_over = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (;;) {
    MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
    if (is_over)
      return;
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
}

static void phase(const char *name, void (*work)(int, long), int fd, long count) {
  meet();
  double start = MPI_Wtime();
  work(fd, count);
  meet();
  if (rank == 0)
    printf("%s %.6f\n", name, MPI_Wtime() - start);
}

static void write_records(int fd, long count) {
  for (long i = 0; i < count; i++)
    check(pwrite(fd, buffer, RECORD, (off_t)(i * ranks + rank) * RECORD) == RECORD, "pwrite");
}

static void flush(int fd, long count) {
  (void)count;
  check(fsync(fd) == 0, "fsync");
}

static void read_records(int fd, long count) {
  for (long i = 0; i < count; i++)
    check(pread(fd, buffer, RECORD, (off_t)(i * ranks + ranks - 1 - rank) * RECORD) == RECORD, "pread");
}

/* The name of a file of this rank. The files of all ranks are interleaved. */
static const char *name_of(long i) {
  static char name[24];
  snprintf(name, sizeof name, "%08ld", i * ranks + rank + 1);
  return name;
}

static void create_files(int dir, long count) {
  for (long i = 0; i < count; i++) {
    int fd = openat(dir, name_of(i), O_CREAT | O_EXCL | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    check(fd >= 0, "openat");
    check(write(fd, buffer, FILE_SIZE) == FILE_SIZE, "write");
    check(close(fd) == 0, "close");
  }
}

static void stat_files(int dir, long count) {
  struct stat found;
  for (long i = 0; i < count; i++)
    check(fstatat(dir, name_of(i), &found, AT_SYMLINK_NOFOLLOW) == 0, "fstatat");
}

static void read_files(int dir, long count) {
  for (long i = 0; i < count; i++) {
    int fd = openat(dir, name_of(i), O_RDWR | O_CLOEXEC);
    check(fd >= 0, "openat");
    check(read(fd, buffer, FILE_SIZE) == FILE_SIZE, "read");
    check(close(fd) == 0, "close");
  }
}

static void delete_files(int dir, long count) {
  for (long i = 0; i < count; i++)
    check(unlinkat(dir, name_of(i), 0) == 0, "unlinkat");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) {
    fprintf(stderr, "usage: ranks ior_hard|mdtest_hard DIR COUNT\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  long count = atol(argv[3]);
  memset(buffer, 'x' + rank, sizeof buffer);
  if (strcmp(argv[1], "ior_hard") == 0) {
    char path[LONGEST];
    snprintf(path, sizeof path, "%s/records", argv[2]);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    check(fd >= 0, "open");
    phase("write", write_records, fd, count);
    phase("flush", flush, fd, count);
    phase("read", read_records, fd, count);
    close(fd);
    if (rank == 0)
      check(unlink(path) == 0, "unlink");
  } else {
    int dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(dir >= 0, "open");
    phase("create", create_files, dir, count);
    phase("stat", stat_files, dir, count);
    phase("read", read_files, dir, count);
    phase("delete", delete_files, dir, count);
    close(dir);
  }
  MPI_Finalize();
  return 0;
}
