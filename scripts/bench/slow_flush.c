/* Runs a program, delays each of its flushes by a number of microseconds, and prints the seconds from its start to its end.
 *
 *     slow_flush MICROSECONDS PROGRAM [ARGUMENT...]
 *
 * The kernel hands fsync, fdatasync and their like to this process (seccomp's user notification), which waits and lets them go on. So it
 * works for a program that is linked statically, which no preloaded library reaches. Exits as the program does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const unsigned SLOW[] = {SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs, SYS_msync};
enum { COUNT = sizeof SLOW / sizeof *SLOW };

static void fail(const char *what) {
    fprintf(stderr, "slow_flush: %s: %s\n", what, strerror(errno));
    exit(125);
}

/* Has the kernel report the slow calls of this process; returns where. */
static int report_flushes(void) {
    struct sock_filter filter[COUNT + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SLOW[i], COUNT - i, 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {COUNT + 3, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("no_new_privs");
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (fd < 0) fail("seccomp");
    return fd;
}

static void pass(int socket, int fd) {
    char room[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) < 0) fail("sendmsg");
}

static int take(int socket) {
    char room[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int fd;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message)) fail("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(int count, char **words) {
    if (count < 3) return fprintf(stderr, "usage: slow_flush MICROSECONDS PROGRAM [ARGUMENT...]\n"), 125;
    long delay = atol(words[1]);
    int ends[2], go[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || pipe2(go, O_CLOEXEC)) fail("pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (!child) {
        char byte;
        pass(ends[1], report_flushes());
        if (read(go[0], &byte, 1) != 1) fail("read");
        execv(words[2], words + 2);
        fail(words[2]);
    }
    int flushes = take(ends[0]), status;
    struct timespec begun, ended, pause = {delay / 1000000, delay % 1000000 * 1000};
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (write(go[1], "g", 1) != 1) fail("write");
    for (;;) {
        /* It hangs up when the last process that has the filter is gone. */
        struct pollfd waiting = {flushes, POLLIN, 0};
        if (poll(&waiting, 1, -1) < 0) fail("poll");
        if (!(waiting.revents & POLLIN)) break;
        struct seccomp_notif call = {0};
        if (ioctl(flushes, SECCOMP_IOCTL_NOTIF_RECV, &call)) continue;
        nanosleep(&pause, NULL);
        struct seccomp_notif_resp answer = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(flushes, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    clock_gettime(CLOCK_MONOTONIC, &ended);
    fprintf(stderr, "%.6f\n", (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
