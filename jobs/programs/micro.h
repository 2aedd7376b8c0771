/*
 * What benchmarks of swingbot's own share: errors, the clock, numbers of the command line, durations.
 * PROGRAM is the name in front of errors; a program defines it before it includes this file.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void die(const char *what)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(errno));
	exit(1);
}

/* nanoseconds */
static inline uint64_t now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		die("clock_gettime");
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* nanoseconds from one time to another, at most UINT32_MAX (4.3 s) */
static inline uint32_t between(uint64_t before, uint64_t after)
{
	return after - before > UINT32_MAX ? UINT32_MAX : after - before;
}

static inline unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!value || *end || *text == '-') {
		fprintf(stderr, PROGRAM ": '%s' is not a number above 0\n", text);
		exit(2);
	}
	return value;
}

/* of durations, for qsort */
static inline int order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}
