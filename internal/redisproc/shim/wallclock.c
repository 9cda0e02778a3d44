/* Shifts the wall clock of a process, when preloaded, by the microseconds in the
 * file that REDISPROC_CLOCK names, at any time. What is not the wall clock, such as
 * CLOCK_MONOTONIC, stays. The system is asked by syscall: nothing of the C library
 * need be found for that. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *offset; /* us; null until init has run */

__attribute__((constructor)) static void init(void) {
  const char *path = getenv("REDISPROC_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *map = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) abort(); /* rather than a clock that is right */
  close(file);
  offset = map;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int result = syscall(SYS_clock_gettime, id, ts);
  if (result == 0 && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long off = *offset;
    long long ns = ts->tv_nsec + off % 1000000 * 1000;
    ts->tv_sec += off / 1000000;
    if (ns < 0) ns += 1000000000, ts->tv_sec--;
    if (ns >= 1000000000) ns -= 1000000000, ts->tv_sec++;
    ts->tv_nsec = ns;
  }
  return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  struct timespec ts;
  int result = clock_gettime(CLOCK_REALTIME, &ts);
  (void)zone;
  if (result == 0) {
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
  }
  return result;
}

time_t time(time_t *where) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (where) *where = ts.tv_sec;
  return ts.tv_sec;
}
