// Computes, sleeps, and waits for another thread, with a read after each: for recorders of the time between calls.
//
//     times FILE ROUNDS
//
// Prints the number of its thread and of the other one, and, in ns, the time that it ran, was ready without a processor by
// the kernel's count, and slept; then how many of the waits for the other thread ended the sleep of a millisecond or more.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L

static long rounds, other, woke_at;
static int go[2], back[2], word;

static long now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void rest(void) {
    nanosleep(&(struct timespec){0, 3 * MS}, 0);
}

// Wakes the first thread after a while: by a pipe, then by a futex.
static void *partner(void *arg) {
    char byte;
    other = gettid();
    prctl(PR_SET_TIMERSLACK, 1);
    for (long i = 0; i < 2 * rounds; i++) {
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        rest();
        __atomic_store_n(&woke_at, now(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
        if (i % 2) {
            __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
            syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
        } else if (write(back[1], &byte, 1) != 1) {
            _exit(1);
        }
    }
    return 0;
}

static long ready(void) {
    char text[128] = "";
    int fd = open("/proc/thread-self/schedstat", O_RDONLY);
    long run, wait;
    if (read(fd, text, sizeof text - 1) < 1 || sscanf(text, "%ld %ld", &run, &wait) != 2)
        _exit(1);
    close(fd);
    return wait;
}

int main(int argc, char **argv) {
    char byte = 0;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    long ran = 0, slept = 0, woken = 0;
    pthread_t thread;
    struct rusage before, after;
    rounds = atol(argv[2]);
    prctl(PR_SET_TIMERSLACK, 1);
    if (fd < 0 || pipe(go) || pipe(back) || pthread_create(&thread, 0, partner, 0))
        return 1;
    long was_ready = ready();
    pread(fd, &byte, 1, 1);
    for (long i = 0; i < rounds; i++) {
        long until = now(CLOCK_THREAD_CPUTIME_ID) + 6 * MS;
        while (now(CLOCK_THREAD_CPUTIME_ID) < until)
            ;
        ran += 6 * MS;
        pread(fd, &byte, 1, 2);
        rest();
        slept += 3 * MS;
        pread(fd, &byte, 1, 3);
        for (int by_futex = 0; by_futex < 2; by_futex++) {
            word = 0;
            if (write(go[1], &byte, 1) != 1)
                return 1;
            getrusage(RUSAGE_THREAD, &before);
            long from = now(CLOCK_MONOTONIC);
            if (!by_futex && read(back[0], &byte, 1) != 1)
                return 1;
            while (by_futex && !__atomic_load_n(&word, __ATOMIC_ACQUIRE))
                syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
            getrusage(RUSAGE_THREAD, &after);
            if (after.ru_nvcsw > before.ru_nvcsw && woke_at > from) {
                slept += woke_at - from;
                woken += woke_at - from > MS;
            }
            pread(fd, &byte, 1, 4);
        }
    }
    pread(fd, &byte, 1, 5);
    was_ready = ready() - was_ready;
    pthread_join(thread, 0);
    printf("%d %ld %ld %ld %ld %ld\n", gettid(), other, ran, was_ready, slept, woken);
    return 0;
}
