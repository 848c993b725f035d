/* Many processes with many maps each, as a desktop has them: maps COUNT MAPS FILE. Says "ready", and ends when its input does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "maps: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "maps COUNT MAPS FILE\n");
        return 2;
    }
    int count = atoi(argv[1]), maps = atoi(argv[2]);
    int file = open(argv[3], O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(argv[3]);
    for (int i = 0; i < maps; i++) {
        /* Neighbours that differ in what they allow stay maps of their own. */
        int allows = i % 2 ? PROT_READ : PROT_READ | PROT_EXEC;
        if (mmap(NULL, 4096, allows, MAP_PRIVATE, file, 0) == MAP_FAILED) fail("mmap");
    }
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0) fail("fork");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
