/*
 * anon-touch: write anonymous memory page by page, go over it again, free it; how long each takes.
 *
 * usage: anon-touch BYTES PASSES seq|random same|mixed
 *
 * Where the memory does not hold BYTES, the first pass makes the kernel reclaim and swap out, and the later ones
 * swap in as well. A page of `same` repeats one word, which zram stores without compressing it, so that the kernel's
 * own path is most of what is measured; one of `mixed` compresses to about a third.
 * The duration of every access is kept, in memory that is locked; percentiles are of all accesses of a kind.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#define PROGRAM "anon-touch"
#include "micro.h"

#define PAGE 4096UL
#define WORDS (PAGE / sizeof(uint64_t))

static uint64_t scrambled(uint64_t x)
{
	x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ULL;
	return x ^ (x >> 29);
}

/* the first access of a page writes all of it */
static void fill(volatile uint64_t *page, unsigned long index, int mixed)
{
	for (unsigned long i = 0; i < WORDS; i++)
		page[i] = mixed && i % 3 == 0 ? scrambled(index * WORDS + i) : index + 1;
}

static unsigned long common_divisor(unsigned long a, unsigned long b)
{
	return b ? common_divisor(b, a % b) : a;
}

/* a step near the golden section that visits each of `pages` once: the two have no common divisor */
static unsigned long step_of(unsigned long pages)
{
	unsigned long step = pages > 1 ? pages * 0.618 : 1;

	while (common_divisor(step, pages) != 1)
		step++;
	return step;
}

static uint32_t *locked(unsigned long entries)
{
	uint32_t *memory = mmap(NULL, entries * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	if (mlock(memory, entries * sizeof(uint32_t)))
		die("mlock");
	return memory;
}

static void print_latency(const char *what, uint32_t *took, unsigned long accesses)
{
	qsort(took, accesses, sizeof(*took), order);
	printf(" %s_p50_ns=%u %s_p99_ns=%u", what, took[accesses / 2], what, took[accesses - 1 - accesses / 100]);
}

int main(int argc, char **argv)
{
	unsigned long bytes, passes, pages, step, wrong = 0;
	uint64_t began, touched, again, freed, before, after;
	uint32_t *first, *later;
	volatile uint64_t *memory;
	struct rusage use;
	int mixed;

	if (argc != 5 || (strcmp(argv[3], "seq") && strcmp(argv[3], "random")) ||
	    (strcmp(argv[4], "same") && strcmp(argv[4], "mixed"))) {
		fprintf(stderr, "usage: anon-touch BYTES PASSES seq|random same|mixed\n");
		return 2;
	}
	bytes = number(argv[1]);
	passes = number(argv[2]);
	mixed = !strcmp(argv[4], "mixed");
	if (bytes % PAGE) {
		fprintf(stderr, "anon-touch: %lu bytes are not a multiple of %lu\n", bytes, PAGE);
		return 2;
	}
	pages = bytes / PAGE;
	step = strcmp(argv[3], "random") ? 1 : step_of(pages);
	first = locked(pages);
	later = locked(pages * passes);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	/* one size of page, whatever the machine's setting */
	if (madvise((void *)memory, bytes, MADV_NOHUGEPAGE) && errno != EINVAL)
		die("madvise");

	began = before = now();
	for (unsigned long i = 0; i < pages; i++, before = after) {
		fill(memory + i * WORDS, i, mixed);
		after = now();
		first[i] = between(before, after);
	}
	touched = before;
	for (unsigned long pass = 0; pass < passes; pass++)
		for (unsigned long i = 0, at = 0; i < pages; i++, before = after, at = (at + step) % pages) {
			volatile uint64_t *page = memory + at * WORDS;

			wrong += page[1] != at + 1;
			page[2]++;
			page[2]--;
			after = now();
			later[pass * pages + i] = between(before, after);
		}
	again = before;
	if (munmap((void *)memory, bytes))
		die("munmap");
	freed = now();
	if (wrong) {
		fprintf(stderr, "anon-touch: %lu pages came back with other contents\n", wrong);
		return 1;
	}
	if (getrusage(RUSAGE_SELF, &use))
		die("getrusage");
	printf("anon-touch: bytes=%lu passes=%lu access=%s content=%s touch_seconds=%.9f retouch_seconds=%.9f free_seconds=%.9f",
	       bytes, passes, argv[3], argv[4], (touched - began) / 1e9, (again - touched) / 1e9, (freed - again) / 1e9);
	print_latency("touch", first, pages);
	print_latency("retouch", later, pages * passes);
	printf(" system_seconds=%ld.%06ld major_faults=%ld\n", use.ru_stime.tv_sec, use.ru_stime.tv_usec, use.ru_majflt);
	return 0;
}
