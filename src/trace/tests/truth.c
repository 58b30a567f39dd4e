// Makes known calls on files, and says which: the ground truth for recorders.
//
//     truth DIRECTORY LOG COUNT [uring]
//
// Makes files in the directory, which is empty, and about COUNT calls. LOG, outside of it, gets a line a call: thread,
// kind, name below the directory, offset, result; - where there is none. The lines of a thread are in order.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NONE -1

static const char *dir, *log_path, *self;
static long count;
static __thread char *lines;
static __thread size_t used, room;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

// This call was made.
static long did(const char *kind, const char *name, long long offset, long result)
{
	if (result < 0)
		result = -errno;
	if (room - used < 512)
		lines = realloc(lines, room += 1 << 20);
	used += sprintf(lines + used, "%ld %s %s ", (long)syscall(SYS_gettid), kind, name);
	used += offset == NONE ? sprintf(lines + used, "-") : sprintf(lines + used, "%lld", offset);
	used += sprintf(lines + used, " %ld\n", result);
	return result;
}

// The thread makes no more.
static void over(void)
{
	int fd = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, lines, used) != (ssize_t)used)
		die("log");
	close(fd);
	used = 0;
}

static int make(const char *name, int flags)
{
	return did("openat", name, NONE, openat(AT_FDCWD, name, flags | O_CREAT, 0600));
}

#define OPEN(name, flags) (int)did("openat", name, NONE, openat(AT_FDCWD, name, flags))
#define CLOSE(fd, name) did("close", name, NONE, close(fd))
#define PREAD(fd, name, size, at) did("pread64", name, at, pread(fd, page, size, at))
#define PWRITE(fd, name, size, at) did("pwrite64", name, at, pwrite(fd, page, size, at))
// `at`: where the position is before the call.
#define READ(fd, name, size, at) did("read", name, at, read(fd, page, size))
#define WRITE(fd, name, size, at) did("write", name, at, write(fd, page, size))

static char page[65536] __attribute__((aligned(4096)));

static void *thread(void *arg)
{
	char name[32];
	long n = (long)arg;
	sprintf(name, "thread%ld", n);
	int fd = make(name, O_RDWR);
	for (long i = 0; i < count / 8; i++) {
		PWRITE(fd, name, 100, i % 1000 * 100);
		PREAD(fd, name, 50, i % 1000 * 100);
	}
	CLOSE(fd, name);
	over();
	return 0;
}

static void threads(void)
{
	pthread_t id[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&id[i], 0, thread, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], 0);
}

static void wait_for(pid_t child)
{
	int status;
	if (waitpid(child, &status, 0) != child || status)
		die("child");
}

// A child writes at the position that it shares with its parent; another program goes on there.
static void children(void)
{
	int fd = make("shared", O_RDWR);
	WRITE(fd, "shared", 10, 0);
	int twin = did("dup", "shared", NONE, dup(fd));
	pid_t child = fork();
	if (!child) {
		used = 0;
		WRITE(fd, "shared", 20, 10);
		WRITE(twin, "shared", 5, 30);
		over();
		char number[16];
		sprintf(number, "%d", fd);
		execl(self, self, dir, log_path, "exec", number, (char *)0);
		die("exec");
	}
	wait_for(child);
	WRITE(fd, "shared", 1, 42);
	CLOSE(fd, "shared");
	did("lseek", "shared", 43, lseek(twin, 3, SEEK_SET));
	READ(twin, "shared", 4, 3);
	CLOSE(twin, "shared");
}

// What the executed program does.
static void executed(int fd)
{
	WRITE(fd, "shared", 7, 35);
	did("newfstatat", "shared", NONE, syscall(SYS_newfstatat, AT_FDCWD, "shared", &(struct stat){}, 0));
	over();
}

// A descriptor is passed to a child that has not opened the file.
static void passed(void)
{
	int pair[2];
	char space[CMSG_SPACE(sizeof(int))] = {};
	struct iovec byte = { page, 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		die("socketpair");
	pid_t child = fork();
	if (!child) {
		used = 0;
		if (recvmsg(pair[1], &message, 0) != 1)
			die("recvmsg");
		int fd;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		PREAD(fd, "passed", 9, 2);
		CLOSE(fd, "passed");
		over();
		_exit(0);
	}
	int fd = make("passed", O_RDWR);
	PWRITE(fd, "passed", 4096, 0);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (sendmsg(pair[0], &message, 0) != 1)
		die("sendmsg");
	wait_for(child);
	CLOSE(fd, "passed");
	close(pair[0]);
	close(pair[1]);
}

static void names(void)
{
	did("mkdir", "sub", NONE, mkdir("sub", 0700));
	int sub = OPEN("sub", O_RDONLY | O_DIRECTORY);
	int fd = did("openat", "sub/a", NONE, openat(sub, "a", O_RDWR | O_CREAT, 0600));
	CLOSE(fd, "sub/a");
	struct open_how how = { .flags = O_RDWR, .resolve = RESOLVE_BENEATH };
	fd = did("openat2", "sub/a", NONE, syscall(SYS_openat2, sub, "a", &how, sizeof(how)));
	WRITE(fd, "sub/a", 30, 0);
	CLOSE(fd, "sub/a");
	did("chdir", "sub", NONE, chdir("sub"));
	fd = did("openat", "sub/a", NONE, openat(AT_FDCWD, "a", O_RDONLY));
	READ(fd, "sub/a", 100, 0);
	CLOSE(fd, "sub/a");
	did("openat", "absent", NONE, openat(AT_FDCWD, "../absent", O_RDONLY));
	did("newfstatat", "sub/a", NONE, syscall(SYS_newfstatat, sub, "a", &(struct stat){}, 0));
	did("statx", "sub/a", NONE, syscall(SYS_statx, sub, "a", 0, STATX_ALL, &(struct statx){}));
	did("chdir", ".", NONE, chdir(dir));
	did("fchdir", "sub", NONE, fchdir(sub));
	did("unlinkat", "sub/a", NONE, unlinkat(sub, "a", 0));
	did("chdir", ".", NONE, chdir(".."));
	did("getdents64", "sub", NONE, syscall(SYS_getdents64, sub, page, sizeof(page)));
	did("fsync", "sub", NONE, fsync(sub));
	CLOSE(sub, "sub");
	did("rmdir", "sub", NONE, rmdir("sub"));
}

static void transfers(void)
{
	int fd = make("data", O_RDWR), to = make("copy", O_RDWR);
	PWRITE(fd, "data", 65536, 0);
	struct iovec two[2] = { { page, 100 }, { page + 100, 200 } };
	did("readv", "data", 0, readv(fd, two, 2));
	did("preadv", "data", 4096, preadv(fd, two, 2, 4096));
	did("preadv2", "data", 5000, preadv2(fd, two, 2, 5000, 0));
	did("preadv2", "data", 300, preadv2(fd, two, 2, -1, 0));
	did("pwritev", "data", 7000, pwritev(fd, two, 2, 7000));
	did("pwritev2", "data", 600, pwritev2(fd, two, 2, -1, 0));
	did("writev", "data", 900, writev(fd, two, 1));
	off_t at = 8192;
	did("sendfile", "data", 8192, sendfile(to, fd, &at, 4096));
	did("sendfile", "data", 1000, sendfile(to, fd, 0, 96));
	loff_t from = 100, into = 20000;
	did("copy_file_range", "data", 100, copy_file_range(fd, &from, to, &into, 5000, 0));
	did("copy_file_range", "data", 1096, copy_file_range(fd, 0, to, 0, 4, 0));
	int pipes[2];
	if (pipe(pipes))
		die("pipe");
	from = 300;
	did("splice", "data", 300, splice(fd, &from, pipes[1], 0, 4096, 0));
	into = 40000;
	did("splice", "copy", NONE, splice(pipes[0], 0, to, &into, 4096, 0));
	close(pipes[0]);
	close(pipes[1]);
	did("ftruncate", "copy", NONE, ftruncate(to, 50000));
	did("fallocate", "copy", 60000, fallocate(to, 0, 60000, 4096));
	did("fdatasync", "copy", NONE, fdatasync(to));
	did("sync_file_range", "copy", 4096, sync_file_range(to, 4096, 8192, SYNC_FILE_RANGE_WRITE));
	CLOSE(to, "copy");
	CLOSE(fd, "data");
	fd = make("appended", O_WRONLY | O_APPEND);
	WRITE(fd, "appended", 1000, 0);
	WRITE(fd, "appended", 1000, 1000);
	CLOSE(fd, "appended");
	fd = OPEN("data", O_RDONLY | O_DIRECT);
	if (fd >= 0) {
		PREAD(fd, "data", 4096, 8192);
		CLOSE(fd, "data");
	}
}

static void mapped(void)
{
	int fd = make("map", O_RDWR);
	did("ftruncate", "map", NONE, ftruncate(fd, 16 * 4096));
	char *at = mmap(0, 16 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	did("mmap", "map", 0, (long)at);
	CLOSE(fd, "map");
	for (int i = 0; i < 16; i++)
		at[i * 4096] = 1;
	did("msync", "map", NONE, msync(at, 16 * 4096, MS_SYNC));
	did("munmap", "map", NONE, munmap(at, 16 * 4096));
}

static void lifetimes(void)
{
	int fd = make("old", O_RDWR);
	WRITE(fd, "old", 100, 0);
	int other = make("new", O_RDWR);
	WRITE(other, "new", 200, 0);
	did("rename", "new", NONE, rename("new", "old"));
	PREAD(fd, "old", 100, 0);
	PREAD(other, "new", 200, 0);
	CLOSE(fd, "old");
	CLOSE(other, "new");
	fd = make("gone", O_RDWR);
	did("unlink", "gone", NONE, unlink("gone"));
	WRITE(fd, "gone", 50, 0);
	CLOSE(fd, "gone");
	// The file system may give the same inode each time.
	for (int i = 0; i < 50; i++) {
		fd = make("again", O_RDWR);
		WRITE(fd, "again", 10 + i, 0);
		CLOSE(fd, "again");
		did("unlink", "again", NONE, unlink("again"));
	}
	did("unlink", "again", NONE, unlink("again"));
}

#ifdef __NR_io_uring_setup
static int ring = -1;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;

static void submit(struct io_uring_sqe *all, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (*sq_tail + i) & *sq_mask;
		sqes[at] = all[i];
		sq_array[at] = at;
	}
	__atomic_store_n(sq_tail, *sq_tail + n, __ATOMIC_RELEASE);
	while (syscall(__NR_io_uring_enter, ring, n, n, IORING_ENTER_GETEVENTS, 0, 0) != n)
		if (errno != EINTR)
			die("io_uring_enter");
}

// The next one that has ended; `which` gets its number.
static long completed(unsigned *which)
{
	while (__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == *cq_head)
		;
	struct io_uring_cqe *cqe = &cqes[*cq_head & *cq_mask];
	long result = cqe->res;
	*which = cqe->user_data;
	__atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE);
	if (result < 0)
		errno = -result;
	return result;
}

// One request, until its end.
static long request(struct io_uring_sqe sqe)
{
	unsigned which;
	submit(&sqe, 1);
	return completed(&which);
}

// Two whose names must not be mixed up.
static void at_once(void)
{
	static char *names[2] = { "absent", "linked" };
	struct io_uring_sqe two[2];
	for (unsigned i = 0; i < 2; i++)
		two[i] = (struct io_uring_sqe){
			.opcode = IORING_OP_UNLINKAT, .fd = AT_FDCWD, .addr = (long)names[i], .user_data = i
		};
	submit(two, 2);
	for (int i = 0; i < 2; i++) {
		unsigned which;
		long result = completed(&which);
		did("uring_unlinkat", names[which], NONE, result);
	}
}

static void uring(void)
{
	struct io_uring_params p = {};
	ring = syscall(__NR_io_uring_setup, 8, &p);
	if (ring < 0)
		die("io_uring_setup");
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(*cqes), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
	                IORING_OFF_CQ_RING);
	sqes = mmap(0, p.sq_entries * sizeof(*sqes), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	sq_tail = (void *)(sq + p.sq_off.tail), sq_mask = (void *)(sq + p.sq_off.ring_mask);
	sq_array = (void *)(sq + p.sq_off.array);
	cq_head = (void *)(cq + p.cq_off.head), cq_tail = (void *)(cq + p.cq_off.tail);
	cq_mask = (void *)(cq + p.cq_off.ring_mask), cqes = (void *)(cq + p.cq_off.cqes);
	int fd = make("ring", O_RDWR), fixed = make("fixed", O_RDWR);
	if (syscall(__NR_io_uring_register, ring, IORING_REGISTER_FILES, &fixed, 1))
		die("io_uring_register");
	struct io_uring_sqe sqe = { .fd = fd, .addr = (long)page, .len = 4096 };
	for (long i = 0; i < count / 100 + 8; i++) {
		sqe.off = i % 64 * 4096;
		sqe.opcode = IORING_OP_WRITE;
		did("uring_write", "ring", sqe.off, request(sqe));
		sqe.opcode = IORING_OP_READ;
		did("uring_read", "ring", sqe.off, request(sqe));
	}
	did("uring_fsync", "ring", NONE, request((struct io_uring_sqe){ .opcode = IORING_OP_FSYNC, .fd = fd }));
	did("uring_fadvise", "ring", NONE,
	    request((struct io_uring_sqe){ .opcode = IORING_OP_FADVISE, .fd = fd, .len = 4096 }));
	// A kind without a row.
	did("other", "?", NONE,
	    request((struct io_uring_sqe){ .opcode = IORING_OP_LINKAT, .fd = AT_FDCWD, .addr = (long)"ring",
	                                   .len = AT_FDCWD, .addr2 = (long)"linked" }));
	at_once();
	did("uring_openat", "absent", NONE,
	    request((struct io_uring_sqe){ .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (long)"absent" }));
	sqe.flags = IOSQE_FIXED_FILE;
	sqe.fd = 0;
	for (long i = 0; i < 8; i++) {
		sqe.off = i * 512;
		sqe.len = 512;
		sqe.opcode = IORING_OP_WRITE;
		did("uring_write", "fixed", sqe.off, request(sqe));
	}
	CLOSE(fixed, "fixed");
	CLOSE(fd, "ring");
	close(ring);
}
#endif

int main(int argc, char **argv)
{
	static char exe[4096];
	if (argc < 4 || readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return 2;
	self = exe;
	dir = argv[1];
	log_path = argv[2];
	if (!strcmp(argv[3], "exec")) {
		executed(atoi(argv[4]));
		return 0;
	}
	count = atol(argv[3]);
	did("chdir", ".", NONE, chdir(dir));
	children();
	passed();
	names();
	transfers();
	mapped();
	lifetimes();
#ifdef __NR_io_uring_setup
	if (argc > 4)
		uring();
#endif
	threads();
	over();
	return 0;
}
