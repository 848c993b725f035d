/* Looks once at each file whose path stands in the standard input, each ended by a NUL, with two threads, and prints the seconds it took.
 *
 * It opens each directory once and does nothing but that: what has to look at every file can take no less on two processors. The paths of
 * a directory stand together. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char **paths;
static size_t count;

static void fail(const char *what) {
    fprintf(stderr, "lstats: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void look(size_t from, size_t to) {
    struct stat found;
    const char *last = "";
    size_t length = 0;
    int directory = -1;
    for (size_t i = from; i < to; i++) {
        char *slash = strrchr(paths[i], '/');
        if ((size_t)(slash - paths[i]) != length || memcmp(last, paths[i], length) != 0) {
            if (directory >= 0) close(directory);
            last = paths[i], length = slash - paths[i];
            *slash = 0;
            directory = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            *slash = '/';
            if (directory < 0) fail(paths[i]);
        }
        if (fstatat(directory, slash + 1, &found, AT_SYMLINK_NOFOLLOW) != 0) fail(paths[i]);
    }
}

static void *second_half(void *none) {
    look(count / 2, count);
    return none;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getdelim(&line, &room, 0, stdin) > 0) {
        if (!(paths = realloc(paths, (count + 1) * sizeof *paths)) || !(paths[count++] = strdup(line))) fail("paths");
    }
    struct timespec begin, end;
    pthread_t other;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if ((errno = pthread_create(&other, NULL, second_half, NULL))) fail("a thread");
    look(0, count / 2);
    pthread_join(other, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f\n", (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9);
}
