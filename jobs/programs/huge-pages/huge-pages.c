/*
 * huge-pages: make huge pages of memory that has none, in four ways; how long it takes, and how much became huge.
 *
 * usage: huge-pages collapse|khugepaged|hugetlb|compact BYTES
 *
 * collapse, khugepaged: BYTES are touched as small pages; then the program asks for each huge page with
 *	madvise(MADV_COLLAPSE), or waits for khugepaged to make them, at most 20 s.
 * hugetlb, compact: BYTES are touched as small pages and every second one is freed, so that free memory is in pieces. Then
 *	vm.nr_hugepages is raised by one for each free block of 2 MiB and for three quarters of what was freed, and set back;
 *	or vm.compact_memory is written.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRAM "huge-pages"
#include "micro.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define WAIT_NS 20000000000ULL

enum { COLLAPSE, KHUGEPAGED, HUGETLB, COMPACT, TESTS };

static const char *const tests[TESTS] = { "collapse", "khugepaged", "hugetlb", "compact" };
static const char nr_hugepages[] = "/proc/sys/vm/nr_hugepages";
static const char collapsed[] = "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed";

static void put(const char *file, unsigned long value)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || dprintf(fd, "%lu\n", value) < 0)
		die(file);
	close(fd);
}

static unsigned long get(const char *file)
{
	char text[32] = "";
	int fd = open(file, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die(file);
	close(fd);
	return strtoul(text, NULL, 10);
}

/* free blocks of 2 MiB in all zones, those in larger blocks too; `pages` are all free pages */
static unsigned long free_huge(unsigned long *pages)
{
	char line[1024];
	unsigned long huge = 0;
	FILE *file = fopen("/proc/buddyinfo", "r");

	if (!file)
		die("/proc/buddyinfo");
	*pages = 0;
	while (fgets(line, sizeof(line), file)) {
		char *at = strstr(line, "zone");
		int skip = 0;

		if (!at || sscanf(at, "zone %*s%n", &skip) < 0 || !skip)
			continue;
		at += skip;
		for (int order = 0;; order++) {
			char *end;
			unsigned long blocks = strtoul(at, &end, 10);

			if (end == at)
				break;
			at = end;
			*pages += blocks << order;
			huge += order >= 9 ? blocks << (order - 9) : 0;
		}
	}
	fclose(file);
	return huge;
}

/* pages that were moved so far */
static unsigned long moved(void)
{
	char line[128];
	unsigned long pages = 0;
	FILE *file = fopen("/proc/vmstat", "r");

	if (!file)
		die("/proc/vmstat");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "pgmigrate_success %lu", &pages) == 1)
			break;
	fclose(file);
	return pages;
}

static uint32_t *times(unsigned long entries)
{
	uint32_t *took = malloc(entries * sizeof(*took));

	if (!took)
		die("malloc");
	return took;
}

static char *touched(unsigned long bytes)
{
	char *memory = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	memory = (char *)(((uintptr_t)memory + HUGE - 1) & ~(HUGE - 1));
	if (madvise(memory, bytes, MADV_NOHUGEPAGE))
		die("MADV_NOHUGEPAGE");
	for (unsigned long at = 0; at < bytes; at += PAGE)
		memory[at] = 1;
	return memory;
}

/* huge pages that the memory has */
static unsigned long mapped_huge(const char *memory)
{
	char line[256], start[32];
	unsigned long kilobytes = 0;
	int ours = 0;
	FILE *file = fopen("/proc/self/smaps", "r");

	if (!file)
		die("/proc/self/smaps");
	snprintf(start, sizeof(start), "%lx-", (unsigned long)memory);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, start, strlen(start)))
			ours = 1;
		if (ours && sscanf(line, "AnonHugePages: %lu", &kilobytes) == 1)
			break;
	}
	fclose(file);
	return kilobytes * 1024 / HUGE;
}

int main(int argc, char **argv)
{
	unsigned long bytes, asked, done = 0, timed = 0, blocks, pages, migrated, before = 0;
	uint64_t began = 0, spent = 0;
	uint32_t *took = NULL;
	char *memory;
	int test = 0;

	while (argc > 1 && test < TESTS && strcmp(argv[1], tests[test]))
		test++;
	if (argc != 3 || test == TESTS) {
		fprintf(stderr, "usage: huge-pages collapse|khugepaged|hugetlb|compact BYTES\n");
		return 2;
	}
	bytes = number(argv[2]) / HUGE * HUGE;
	asked = bytes / HUGE;
	if (asked < 4) {
		fprintf(stderr, "huge-pages: %s bytes are less than 4 huge pages of %lu\n", argv[2], HUGE);
		return 2;
	}
	memory = touched(bytes);
	if (test == HUGETLB || test == COMPACT) {
		for (unsigned long at = 0; at < bytes; at += 2 * PAGE)
			if (madvise(memory + at, PAGE, MADV_DONTNEED))
				die("MADV_DONTNEED");
	} else {
		/* khugepaged may begin at once */
		if (test == KHUGEPAGED)
			before = get(collapsed);
		began = now();
		if (madvise(memory, bytes, MADV_HUGEPAGE))
			die("MADV_HUGEPAGE");
	}

	migrated = moved();
	if (test != KHUGEPAGED)
		began = now();
	if (test == COLLAPSE) {
		took = times(asked);
		for (unsigned long at = 0; at < bytes; at += HUGE) {
			uint64_t started = now();

			if (madvise(memory + at, HUGE, MADV_COLLAPSE) && errno != EAGAIN && errno != ENOMEM && errno != EBUSY)
				die("MADV_COLLAPSE");
			took[timed++] = between(started, now());
		}
		spent = now() - began;
		done = mapped_huge(memory);
	} else if (test == KHUGEPAGED) {
		while ((done = get(collapsed) - before) < asked && now() - began < WAIT_NS)
			usleep(500);
		spent = now() - began;
		done = mapped_huge(memory); /* it may have served others too */
	} else if (test == HUGETLB) {
		unsigned long first = get(nr_hugepages);

		asked = free_huge(&pages) + asked / 2 * 3 / 4;
		took = times(asked);
		for (began = now(); timed < asked; done = get(nr_hugepages) - first) {
			uint64_t started = now();

			put(nr_hugepages, first + done + 1);
			took[timed++] = between(started, now());
		}
		spent = now() - began;
		put(nr_hugepages, first);
	} else {
		put("/proc/sys/vm/compact_memory", 1);
		spent = now() - began;
	}
	migrated = moved() - migrated;
	blocks = free_huge(&pages);
	if (test == COMPACT) {
		asked = pages / (HUGE / PAGE);
		done = blocks;
	}
	if (timed)
		qsort(took, timed, sizeof(*took), order);
	printf("huge-pages: test=%s bytes=%lu asked=%lu huge=%lu seconds=%.9f timed=%lu p50_ns=%u migrated=%lu order9_blocks=%lu\n",
	       tests[test], bytes, asked, done, spent / 1e9, timed, timed ? took[timed / 2] : 0, migrated, blocks);
	return 0;
}
