/* Preloaded into a process: counts its calls that change the file system, whatever in it makes them, and at the Nth
   one ends the process as SIGKILL does, or lets that one call fail for want of room. Processes that it forks, and
   pipes to them, are no part of it: they change no files. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long *counter, at;
static int fails;
static pid_t counted;

/* From here on, count into *into. At call number n (0: none), kill; or, with fail, let it fail. */
void kill_at(long *into, long n, int fail) {
    counter = into;
    at = n;
    fails = fail;
    counted = getpid();
}

static int is_file(int fd) {
    struct stat about;
    return fd > 2 && !fstat(fd, &about) && !S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode);
}

static int goes_wrong(void) {
    if (!counter || getpid() != counted || __sync_add_and_fetch(counter, 1) != at) return 0;
    if (!fails) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

#define WRAP(type, name, parameters, arguments, counts)                \
    type name parameters {                                             \
        static type(*real) parameters;                                 \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        return (counts) && goes_wrong() ? -1 : real arguments;         \
    }

WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), is_file(fd))
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t to), (fd, data, size, to), 1)
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t to), (fd, data, size, to), 1)
WRAP(ssize_t, writev, (int fd, const struct iovec *data, int num), (fd, data, num), is_file(fd))
WRAP(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size), 1)
WRAP(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size), 1)
WRAP(int, fsync, (int fd), (fd), 1)
WRAP(int, fdatasync, (int fd), (fd), 1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), 1)
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), 1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), 1)
WRAP(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), 1)
WRAP(int, rmdir, (const char *path), (path), 1)
WRAP(int, unlink, (const char *path), (path), 1)
WRAP(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), 1)
WRAP(int, symlink, (const char *target, const char *path), (target, path), 1)
WRAP(int, symlinkat, (const char *target, int folder, const char *path), (target, folder, path), 1)
WRAP(int, rename, (const char *from, const char *to), (from, to), 1)
WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), 1)
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), 1)
