/* Two ranks that exchange messages as package twonode does. Rank 0 reads the commands from its
 * standard input and writes one line for each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { OUTSTANDING = 256, LINE = 128, BURST = 1 << 20, COMMAND = 1, DATA = 2, DONE = 3 };

static MPI_Request requests[OUTSTANDING];
static int outstanding;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double processor(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

static void flush(void) {
	MPI_Waitall(outstanding, requests, MPI_STATUSES_IGNORE);
	outstanding = 0;
}

static void put(char *b, int size, int to) {
	if (outstanding == OUTSTANDING)
		flush();
	MPI_Isend(b, size, MPI_BYTE, to, DATA, MPI_COMM_WORLD, &requests[outstanding++]);
}

static void get(char *b, int size, int from) {
	MPI_Recv(b, size, MPI_BYTE, from, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int smaller(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void wait_until(double t) {
	double left = t - now();
	if (left > 0) {
		struct timespec s = {left / 1e9, (long)left % 1000000000};
		nanosleep(&s, NULL);
	}
}

/* answer is {least, median, elapsed, processor}. */
static void execute(const char *line, int rank, double *answer) {
	char word[16];
	int size, count, rate = 0, other = 1 - rank, ahead = 0;
	if (sscanf(line, "%15s %d %d %d", word, &size, &count, &rate) < 3 || size < 1 || count < 1) {
		fprintf(stderr, "unknown command %s", line);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	char *b = calloc(1, size), end[8] = {0};
	double before = processor(), begin = now();
	if (!strcmp(word, "latency")) {
		double *times = malloc(count * sizeof *times);
		for (int i = 0; i < count; i++) {
			double t = now();
			if (rank == 0)
				put(b, size, other);
			get(b, size, other);
			if (rank == 1)
				put(b, size, other);
			flush();
			times[i] = (now() - t) / 2;
		}
		qsort(times, count, sizeof *times, smaller);
		answer[0] = times[0];
		answer[1] = times[count / 2];
		free(times);
	} else if (rank == 0) {
		for (long i = 1; i <= count; i++) {
			put(b, size, other);
			ahead += size;
			if (rate > 0 && ahead >= BURST) {
				ahead = 0;
				wait_until(begin + (double)i * size / rate * 1e9);
			}
		}
		flush();
		get(end, sizeof end, other);
		answer[2] = now() - begin;
	} else {
		for (int i = 0; i < count; i++)
			get(b, size, other);
		put(end, sizeof end, other);
		flush();
	}
	answer[3] = processor() - before;
	free(b);
}

static void print(const double *a) {
	printf("{\"Least\":%.0f,\"Median\":%.0f,\"Elapsed\":%.0f,\"Processor\":%.0f}\n", a[0], a[1], a[2], a[3]);
	fflush(stdout);
}

int main(int argc, char **argv) {
	int rank;
	char line[LINE];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (;;) {
		double mine[4] = {0}, theirs[4] = {0};
		memset(line, 0, sizeof line);
		if (rank == 0) {
			if (!fgets(line, sizeof line, stdin))
				line[0] = 0;
			MPI_Send(line, LINE, MPI_CHAR, 1, COMMAND, MPI_COMM_WORLD);
		} else {
			/* Waiting for a command must not disturb other measurements. */
			for (int there = 0; !there; there ? 0 : usleep(500))
				MPI_Iprobe(0, COMMAND, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
			MPI_Recv(line, LINE, MPI_CHAR, 0, COMMAND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		if (!line[0])
			break;
		MPI_Barrier(MPI_COMM_WORLD);
		execute(line, rank, mine);
		if (rank == 1) {
			MPI_Send(mine, 4, MPI_DOUBLE, 0, DONE, MPI_COMM_WORLD);
			continue;
		}
		MPI_Recv(theirs, 4, MPI_DOUBLE, 1, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		print(mine);
		print(theirs);
	}
	MPI_Finalize();
	return 0;
}
