/*
 * vma-storm: threads that map and unmap memory while others read /proc/self/maps of the same address space.
 *
 * usage: vma-storm AREAS WRITERS READERS SECONDS
 *
 * AREAS areas stand all the time, neighbours with other protections so that none merge. A writer maps and unmaps
 * four pages, which it does not touch; a reader reads the whole file, which has a line for each area.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

static pthread_barrier_t ready;
static unsigned long areas;
static uint64_t begin, end;

struct worker {
	pthread_t thread;
	uint64_t done;
	uint64_t lines;
};

static void die(const char *what)
{
	fprintf(stderr, "vma-storm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		die("clock_gettime");
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static unsigned long number(const char *text)
{
	char *rest;
	unsigned long value = strtoul(text, &rest, 10);

	if (*rest || *text == '-' || rest == text || value > 10000000) {
		fprintf(stderr, "vma-storm: '%s' is not a number up to 10000000\n", text);
		exit(2);
	}
	return value;
}

static void *write_areas(void *argument)
{
	struct worker *self = argument;

	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	while (now() < end) {
		void *area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (area == MAP_FAILED)
			die("mmap");
		if (munmap(area, 4 * PAGE))
			die("munmap");
		self->done++;
	}
	return NULL;
}

static void *read_areas(void *argument)
{
	struct worker *self = argument;
	static __thread char text[64 * 1024];
	int maps = open("/proc/self/maps", O_RDONLY);

	if (maps < 0)
		die("/proc/self/maps");
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	while (now() < end) {
		uint64_t lines = 0;
		ssize_t count;

		if (lseek(maps, 0, SEEK_SET))
			die("lseek");
		while ((count = read(maps, text, sizeof(text))) > 0)
			for (char *at = text; (at = memchr(at, '\n', text + count - at)); at++)
				lines++;
		if (count < 0)
			die("read");
		if (lines < areas) {
			fprintf(stderr, "vma-storm: /proc/self/maps has %lu lines, fewer than areas\n", (unsigned long)lines);
			exit(1);
		}
		self->lines += lines;
		self->done++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: vma-storm AREAS WRITERS READERS SECONDS\n");
		return 2;
	}
	areas = number(argv[1]);
	unsigned long writers = number(argv[2]), readers = number(argv[3]), seconds = number(argv[4]);
	uint64_t maps = 0, reads = 0, lines = 0;

	if (!areas || !writers || !readers || !seconds) {
		fprintf(stderr, "vma-storm: all four are above 0\n");
		return 2;
	}
	char *ground = mmap(NULL, areas * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ground == MAP_FAILED)
		die("mmap");
	for (unsigned long i = 1; i < areas; i += 2)
		if (mprotect(ground + i * PAGE, PAGE, PROT_NONE))
			die("mprotect");
	struct worker *workers = calloc(writers + readers, sizeof(*workers));

	if (!workers || pthread_barrier_init(&ready, NULL, writers + readers + 1))
		die("threads");
	for (unsigned long i = 0; i < writers + readers; i++)
		if ((errno = pthread_create(&workers[i].thread, NULL, i < writers ? write_areas : read_areas, &workers[i])))
			die("pthread_create");
	pthread_barrier_wait(&ready);
	begin = now();
	end = begin + seconds * 1000000000ULL;
	pthread_barrier_wait(&ready);
	for (unsigned long i = 0; i < writers + readers; i++) {
		if ((errno = pthread_join(workers[i].thread, NULL)))
			die("pthread_join");
		*(i < writers ? &maps : &reads) += workers[i].done;
		lines += workers[i].lines;
	}
	printf("vma-storm: areas=%lu writers=%lu readers=%lu seconds=%.6f maps=%lu reads=%lu lines=%lu\n", areas, writers,
	       readers, (now() - begin) / 1e9, (unsigned long)maps, (unsigned long)reads, (unsigned long)lines);
	return 0;
}
