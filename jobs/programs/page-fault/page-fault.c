/*
 * page-fault: a fixed number of anonymous page faults, and their duration.
 *
 * usage: page-fault process|thread TASKS CYCLES BYTES
 *
 * Each task, CYCLES times, maps BYTES, touches every page and unmaps them. One cycle of a single task
 * before the clock starts is not counted: it fills per-cpu lists and warms the paths.
 * Fixed work, not fixed time: under an instruction-count clock the result then is exact.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

static unsigned long cycles, bytes;

static void die(const char *what)
{
	fprintf(stderr, "page-fault: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void touch(unsigned long times)
{
	while (times--) {
		char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			die("mmap");
		for (unsigned long at = 0; at < bytes; at += PAGE)
			((volatile char *)map)[at] = 1;
		if (munmap(map, bytes))
			die("munmap");
	}
}

static void *thread(void *unused)
{
	(void)unused;
	touch(cycles);
	return NULL;
}

static void run_threads(unsigned long tasks)
{
	pthread_t *threads = calloc(tasks, sizeof(*threads));

	if (!threads)
		die("calloc");
	for (unsigned long i = 0; i < tasks; i++)
		if ((errno = pthread_create(&threads[i], NULL, thread, NULL)))
			die("pthread_create");
	for (unsigned long i = 0; i < tasks; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static void run_processes(unsigned long tasks)
{
	int status, failed = 0;

	for (unsigned long i = 0; i < tasks; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (!child) {
			touch(cycles);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	if (failed) {
		fprintf(stderr, "page-fault: a task failed\n");
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		die("clock_gettime");
	return t.tv_sec + t.tv_nsec / 1e9;
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!value || *end || *text == '-') {
		fprintf(stderr, "page-fault: '%s' is not a number above 0\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	int threaded = argc > 1 && !strcmp(argv[1], "thread");
	unsigned long tasks, faults;
	double seconds;

	if (argc != 5 || (!threaded && strcmp(argv[1], "process"))) {
		fprintf(stderr, "usage: page-fault process|thread TASKS CYCLES BYTES\n");
		return 2;
	}
	tasks = number(argv[2]);
	cycles = number(argv[3]);
	bytes = number(argv[4]);
	if (bytes % PAGE) {
		fprintf(stderr, "page-fault: %lu bytes are not a multiple of %lu\n", bytes, PAGE);
		return 2;
	}
	touch(1);
	seconds = now();
	if (threaded)
		run_threads(tasks);
	else
		run_processes(tasks);
	seconds = now() - seconds;
	faults = tasks * cycles * (bytes / PAGE);
	printf("page-fault: mode=%s tasks=%lu cycles=%lu bytes=%lu faults=%lu seconds=%.9f faults_per_second=%.2f\n",
	       argv[1], tasks, cycles, bytes, faults, seconds, faults / seconds);
	return 0;
}
