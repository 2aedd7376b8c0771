/*
 * vma-storm: threads that map and unmap memory while others read /proc/self/maps of the same address space.
 *
 * usage: vma-storm AREAS WRITERS READERS SECONDS
 *
 * AREAS areas stand all the time, neighbours with other protections so that none merge. A writer maps and unmaps
 * four pages, which it does not touch; a reader reads the whole file, which has a line for each area.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRAM "vma-storm"
#include "micro.h"

#define PAGE 4096UL

static pthread_barrier_t ready;
static unsigned long areas;
static uint64_t begin, end;

struct worker {
	pthread_t thread;
	uint64_t done;
	uint64_t lines;
};

static unsigned long bounded(const char *text)
{
	unsigned long value = number(text);

	if (value > 10000000) {
		fprintf(stderr, PROGRAM ": '%s' is not a number up to 10000000\n", text);
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
	areas = bounded(argv[1]);
	unsigned long writers = bounded(argv[2]), readers = bounded(argv[3]), seconds = bounded(argv[4]);
	uint64_t maps = 0, reads = 0, lines = 0;

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
