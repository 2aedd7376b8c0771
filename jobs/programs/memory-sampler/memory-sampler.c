/*
 * memory-sampler: run a command and note, while it runs, what the kernel's memory is used for.
 *
 * usage: memory-sampler FILE MILLISECONDS COMMAND [WORD ...]
 *
 * A snapshot is a line `time: SECONDS`, lines of /proc/meminfo and for each zram device `zram:` with its mm_stat. The first is taken before the command starts. Exits as the command does.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const wanted[] = {
	"MemTotal:", "MemFree:", "Cached:", "SwapTotal:", "SwapFree:", "Zswap:", "AnonPages:", "Shmem:", "Slab:",
	"SReclaimable:", "SUnreclaim:", "KernelStack:", "PageTables:", "VmallocUsed:", "Percpu:", "AnonHugePages:",
	"ShmemHugePages:", "FileHugePages:",
};

static char text[16384];
static glob_t zrams;
static volatile sig_atomic_t ended;

static void on_end(int number)
{
	(void)number;
	ended = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "memory-sampler: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* the whole text of a small file, "" if it cannot be read */
static void read_all(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t count;

	while (file >= 0 && have < sizeof(text) - 1 && (count = read(file, text + have, sizeof(text) - 1 - have)) > 0)
		have += count;
	text[have] = 0;
	if (file >= 0)
		close(file);
}

static void sample(FILE *out)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t))
		die("clock_gettime");
	fprintf(out, "time: %ld.%03ld\n", (long)t.tv_sec, t.tv_nsec / 1000000);
	read_all("/proc/meminfo");
	for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
			if (!strncmp(line, wanted[i], strlen(wanted[i])))
				fprintf(out, "%s\n", line);
	for (size_t i = 0; i < zrams.gl_pathc; i++) {
		read_all(zrams.gl_pathv[i]);
		if (*text)
			fprintf(out, "zram: %s", text);
	}
	if (fflush(out))
		die("writing");
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: memory-sampler FILE MILLISECONDS COMMAND [WORD ...]\n");
		return 125;
	}
	long every = atol(argv[2]);
	FILE *out = fopen(argv[1], "we");
	sigset_t child, before;
	int status;

	if (every < 1 || !out)
		die(argv[1]);
	/* The signal ends the wait between two samples. */
	signal(SIGCHLD, on_end);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	glob("/sys/block/zram*/mm_stat", 0, NULL, &zrams);
	sample(out);
	pid_t command = fork();

	if (command < 0)
		die("fork");
	if (!command) {
		signal(SIGCHLD, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[3], argv + 3);
		die(argv[3]);
	}
	struct timespec wait = { every / 1000, every % 1000 * 1000000 };

	while (pselect(0, NULL, NULL, NULL, &wait, &before), !ended)
		sample(out);
	if (waitpid(command, &status, 0) < 0)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
