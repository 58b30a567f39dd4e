// Known calls on files. `calls WHAT`: `all` makes one of each kind, `exec` goes on after it, `steady` writes until there is a file
// `stop`, `pauses` writes some and then waits for ever, `names COUNT` looks for so many names that do not exist, `fast COUNT` makes so many reads in two threads.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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

static char data[8192];

static void *reader(void *fd) {
    for (int i = 0; i < 50; i++)
        pread(*(int *)fd, data, 64, i * 64);
    return 0;
}

static void child(void (*work)(int), int fd) {
    if (!fork()) {
        work(fd);
        _exit(0);
    }
    wait(0);
}

static void inherits(int fd) {
    lseek(fd, 20, SEEK_SET);
    read(fd, data, 10);
}

static void executes(int fd) {
    dup2(fd, 7);
    execl("/proc/self/exe", "calls", "exec", (char *)0);
}

// Passes a descriptor to a child by a socket.
static void pass(int fd) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (!fork()) {
        close(fd);
        recvmsg(pair[1], &message, 0);
        int got;
        memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
        pread(got, data, 11, 33);
        _exit(0);
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(pair[0], &message, 0);
    wait(0);
}

static int steady(void) {
    int fd = open("steady", O_WRONLY | O_CREAT | O_TRUNC, 0644), count = 0;
    for (; access("stop", F_OK); count++) {
        if (write(fd, "x", 1) != 1)
            return errno;
        usleep(500);
    }
    printf("%d", count);
    return 0;
}

static void pauses(void) {
    signal(SIGTERM, SIG_IGN);
    int fd = open("steady", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 100; i++)
        write(fd, "x", 1);
    for (;;)
        pause();
}

// Looks for so many names that do not exist.
static void names(long count) {
    char name[200];
    unsigned long hash = 1;
    for (long i = 0; i < count; i++) {
        int length = sprintf(name, "%ld-", i);
        for (int part = 0; part < 8; part++) {
            hash ^= hash << 13, hash ^= hash >> 7, hash ^= hash << 17;
            length += sprintf(name + length, "%016lx", hash);
        }
        access(name, F_OK);
    }
    printf("%ld", count);
}

static void *fast_reader(void *count) {
    int fd = open("fast", O_RDONLY | O_CREAT, 0644);
    for (long i = 0; i < (long)count; i++)
        pread(fd, data, 16, i % 64);
    return 0;
}

static void fast(long count) {
    pthread_t other;
    pthread_create(&other, 0, fast_reader, (void *)(count / 2));
    fast_reader((void *)(count - count / 2));
    pthread_join(other, 0);
}

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "exec")) {
        write(7, data, 5);
        return 3;
    }
    if (!strcmp(argv[1], "steady"))
        return steady();
    if (!strcmp(argv[1], "pauses"))
        pauses();
    if (!strcmp(argv[1], "names")) {
        names(atol(argv[2]));
        return 0;
    }
    if (!strcmp(argv[1], "fast")) {
        fast(atol(argv[2]));
        return 0;
    }
    int fd = open("a", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 100; i++)
        write(fd, data, 4096);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, reader, &fd);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    fsync(fd);
    child(inherits, fd);
    read(fd, data, 10);
    child(executes, fd);
    read(fd, data, 1);
    pass(fd);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    read(copy, data, 2);
    mkdir("d", 0755);
    int dir = open("d", O_DIRECTORY | O_CLOEXEC);
    int log = openat(dir, "f", O_CREAT | O_WRONLY | O_APPEND, 0600);
    struct iovec vectors[2] = {{data, 100}, {data, 200}};
    writev(log, vectors, 2);
    writev(log, vectors, 2);
    fdatasync(log);
    fsync(dir);
    unsigned long how[3] = {O_RDONLY, 0, 0};
    int again = syscall(SYS_openat2, dir, "f", how, sizeof how);
    preadv2(again, vectors, 2, 40, 0);
    close(again);
    renameat(dir, "f", dir, "g");
    chdir("d");
    struct stat status;
    stat("g", &status);
    unlink("g");
    stat("g", &status);
    write(log, data, 1);
    close(log);
    lseek(fd, 0, SEEK_SET);
    int to = open("../b", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    sendfile(to, fd, 0, 10);
    loff_t from = 100;
    copy_file_range(fd, &from, to, 0, 50, 0);
    read(fd, data, 1);
    write(to, data, 1);
    int pipes[2];
    pipe(pipes);
    splice(fd, 0, pipes[1], 0, 30, 0);
    read(pipes[0], data, 30);
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memory[0] = 2;
    msync(memory, 4096, MS_SYNC);
    ftruncate(fd, 77);
    fstat(fd, &status);
    int direct = open("../b", O_RDONLY | O_DIRECT);
    close(direct);
    return 0;
}
