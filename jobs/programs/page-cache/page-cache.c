/*
 * page-cache: read, truncate or map a file that is in the page cache, again and again; how long each takes.
 *
 * usage: page-cache read|truncate|mmap FILE BYTES LOOPS
 *
 * FILE is created, written to its disk and removed. `read` calls pread for each page in order. `truncate` shortens the file from its
 * end by 64 KiB at a time and then writes it again, which is not timed. `mmap` maps the file, reads a word of each page in
 * order and unmaps it; a page fault maps pages around it too, so most accesses cost none.
 * The duration of every operation is kept; percentiles are of all of a run.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRAM "page-cache"
#include "micro.h"

#define PAGE 4096UL
#define PIECE (16 * PAGE)
#define WORDS (PAGE / sizeof(uint64_t))

static uint32_t *took;
static unsigned long operations;

/* keep the time of one operation, and return when it ended */
static uint64_t ended(uint64_t before)
{
	uint64_t after = now();

	took[operations++] = between(before, after);
	return after;
}

/* each page begins with its number, from 1 */
static void fill(int file, unsigned long bytes)
{
	uint64_t page[WORDS];

	memset(page, 0x5a, sizeof(page));
	for (unsigned long at = 0; at < bytes; at += PAGE) {
		ssize_t wrote;

		page[0] = at / PAGE + 1;
		wrote = pwrite(file, page, PAGE, at);
		if (wrote != (ssize_t)PAGE) {
			if (wrote >= 0)
				errno = ENOSPC;
			die("write");
		}
		/* so little waits to be written that a limit on memory leaves clean pages to reclaim */
		if ((at + PAGE) % (1 << 20) == 0 && fdatasync(file))
			die("fdatasync");
	}
}

static void expect(uint64_t found, unsigned long at)
{
	if (found != at / PAGE + 1) {
		fprintf(stderr, "page-cache: byte %lu came back with other contents\n", at);
		exit(1);
	}
}

static void read_pages(int file, unsigned long bytes)
{
	uint64_t page[WORDS], before = now();

	for (unsigned long at = 0; at < bytes; at += PAGE) {
		if (pread(file, page, PAGE, at) != (ssize_t)PAGE)
			die("read");
		before = ended(before);
		expect(page[0], at);
	}
}

static void truncate_pieces(int file, unsigned long bytes)
{
	uint64_t before = now();

	for (unsigned long at = bytes; at; at -= PIECE) {
		if (ftruncate(file, at - PIECE))
			die("ftruncate");
		before = ended(before);
	}
}

static void map_pages(int file, unsigned long bytes)
{
	uint64_t before;
	volatile uint64_t *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);

	if (map == MAP_FAILED)
		die("mmap");
	before = now();
	for (unsigned long at = 0; at < bytes; at += PAGE) {
		uint64_t found = map[at / sizeof(*map)];

		before = ended(before);
		expect(found, at);
	}
	if (munmap((void *)map, bytes))
		die("munmap");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned long bytes; /* of one operation */
		void (*pass)(int file, unsigned long bytes);
	} tests[] = { { "read", PAGE, read_pages }, { "truncate", PIECE, truncate_pieces }, { "mmap", PAGE, map_pages } };
	unsigned long bytes, loops, size, test = 0;
	uint64_t spent = 0;
	int file;

	while (argc > 1 && test < 3 && strcmp(argv[1], tests[test].name))
		test++;
	if (argc != 5 || test == 3) {
		fprintf(stderr, "usage: page-cache read|truncate|mmap FILE BYTES LOOPS\n");
		return 2;
	}
	bytes = number(argv[3]);
	loops = number(argv[4]);
	if (bytes % PIECE) {
		fprintf(stderr, "page-cache: %lu bytes are not a multiple of %lu\n", bytes, PIECE);
		return 2;
	}
	size = bytes / tests[test].bytes * loops * sizeof(*took);
	took = malloc(size);
	if (!took)
		die("malloc");
	memset(took, 0xff, size); /* no page fault later */
	file = open(argv[2], O_RDWR | O_CREAT | O_EXCL, 0600);
	if (file < 0)
		die("open");
	if (unlink(argv[2]))
		die("unlink");
	fill(file, bytes);
	for (unsigned long loop = 0; loop < loops; loop++) {
		uint64_t before = now();

		tests[test].pass(file, bytes);
		spent += now() - before;
		if (tests[test].bytes == PIECE && loop + 1 < loops)
			fill(file, bytes);
	}
	qsort(took, operations, sizeof(*took), order);
	printf("page-cache: test=%s bytes=%lu loops=%lu operations=%lu seconds=%.9f p50_ns=%u p99_ns=%u\n", argv[1], bytes, loops,
	       operations, spent / 1e9, took[operations / 2], took[operations - 1 - operations / 100]);
	return 0;
}
