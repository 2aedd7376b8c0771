/*
 * memcg: create memory cgroups, charge pages to each, remove them; how long each takes.
 *
 * usage: memcg DIRECTORY GROUPS PAGES
 *
 * DIRECTORY is a cgroup (version 2) whose children have the memory controller. A process is started in each of GROUPS
 * children of it, one after another, and touches PAGES pages of its own there; its group's memory.current is read before
 * it ends. The kernel frees a removed group later, but each processor may keep the one that it charged last: `release` is
 * how long until no more are left.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "memcg"
#include "micro.h"

#define PAGE 4096UL
#define RELEASE_SECONDS 10

static uint32_t *created, *removed;
static volatile uint64_t *spent; /* shared with the processes: ns that the last one took to touch its pages, bytes charged */

/* the number behind `key` in a file of a cgroup; the first of the file without a key */
static unsigned long value_of(int group, const char *file, const char *key)
{
	char text[4096], *at = text;
	int fd = openat(group, file, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		die(file);
	got = read(fd, text, sizeof(text) - 1);
	if (got < 0)
		die(file);
	close(fd);
	text[got] = '\0';
	if (*key && !(at = strstr(text, key)))
		return 0;
	return strtoul(at + strlen(key), NULL, 10);
}

static void charge(int group, unsigned long bytes)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = group };
	int status;
	pid_t child = syscall(SYS_clone3, &args, sizeof(args));

	if (child < 0)
		die("clone3 into the cgroup");
	if (!child) {
		volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t before;

		if (memory == MAP_FAILED)
			_exit(1);
		madvise((void *)memory, bytes, MADV_NOHUGEPAGE);
		before = now();
		for (unsigned long at = 0; at < bytes; at += PAGE)
			memory[at] = 1;
		spent[0] = now() - before;
		spent[1] = value_of(group, "memory.current", "");
		_exit(0);
	}
	if (waitpid(child, &status, 0) < 0)
		die("waitpid");
	if (status) {
		fprintf(stderr, "memcg: a process in a cgroup ended with status %d\n", status);
		exit(1);
	}
}

static void print_times(const char *what, uint32_t *took, unsigned long groups)
{
	uint64_t sum = 0;

	for (unsigned long i = 0; i < groups; i++)
		sum += took[i];
	qsort(took, groups, sizeof(*took), order);
	printf(" %s_seconds=%.9f %s_p99_ns=%u", what, sum / 1e9, what, took[groups - 1 - groups / 100]);
}

int main(int argc, char **argv)
{
	unsigned long groups, pages, dying, processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t before, charging = 0, charged = 0;
	char name[32];
	int top;

	if (argc != 4) {
		fprintf(stderr, "usage: memcg DIRECTORY GROUPS PAGES\n");
		return 2;
	}
	groups = number(argv[2]);
	pages = number(argv[3]);
	created = malloc(groups * sizeof(*created));
	removed = malloc(groups * sizeof(*removed));
	spent = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!created || !removed || spent == MAP_FAILED)
		die("memory");
	memset(created, 0xff, groups * sizeof(*created)); /* no page fault later */
	memset(removed, 0xff, groups * sizeof(*removed));
	top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		die(argv[1]);
	for (unsigned long i = 0; i < groups; i++) {
		snprintf(name, sizeof(name), "%lu", i);
		before = now();
		if (mkdirat(top, name, 0755))
			die("mkdir");
		created[i] = between(before, now());
	}
	for (unsigned long i = 0; i < groups; i++) {
		int group;

		snprintf(name, sizeof(name), "%lu", i);
		group = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (group < 0)
			die(name);
		charge(group, pages * PAGE);
		charging += spent[0];
		charged += spent[1];
		close(group);
	}
	for (unsigned long i = 0; i < groups; i++) {
		snprintf(name, sizeof(name), "%lu", i);
		before = now();
		if (unlinkat(top, name, AT_REMOVEDIR))
			die("rmdir");
		removed[i] = between(before, now());
	}
	before = now();
	while ((dying = value_of(top, "cgroup.stat", "nr_dying_descendants ")) > processors &&
	       now() - before < RELEASE_SECONDS * 1000000000ULL)
		usleep(1000);
	printf("memcg: groups=%lu pages=%lu charged_bytes=%lu charge_seconds=%.9f", groups, pages, charged, charging / 1e9);
	before = now() - before;
	print_times("create", created, groups);
	print_times("remove", removed, groups);
	printf(" release_seconds=%.9f left=%lu\n", before / 1e9, dying > processors ? dying : 0);
	return 0;
}
