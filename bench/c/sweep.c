/* The sweep of the reference problem as a C programmer would write it, for gcc -O3
 * -march=native -fopenmp: the peer of the kernels in Go.
 *
 *   sweep N check FILE [LOOP]  do LOOP (plain) 5 times, by 3 threads where it has
 *                              threads, and write the own points as float64 to FILE
 *   sweep N time               for each line "LOOP K" on stdin, do it K times and print
 *                              the nanoseconds; "LOOP:T" does it by T threads
 *
 * Loops: plain, tiled (one pass each), timetiled (several sweeps in one pass), redblack
 * (in place, omega 1.2), triad. The time is processor time of the thread, or by several
 * threads time of the clock. The layout is that of internal/kernel: padded rows, one ghost
 * layer. */
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t n, row, plane, origin;
static double diag, off, step, f;

static void lines(double *restrict dst, const double *restrict src, const double *restrict phi, size_t z, size_t lo,
                  size_t hi) {
	for (size_t y = lo; y < hi; y++) {
		size_t at = origin + y * row + z * plane;
		const double *restrict c = src + at;
		const double *restrict p = phi + n * (y + n * z);
		double *restrict d = dst + at;
		for (size_t x = 0; x < n; x++) {
			double s = ((c[x - 1] + c[x + 1]) + (c[x - row] + c[x + row])) + (c[x - plane] + c[x + plane]);
			double r = (diag * c[x] - off * s) - f;
			double v = c[x] - step * r;
			d[x] = p[x] > v ? p[x] : v;
		}
	}
}

static int threads = 1;

static void plain(double *dst, const double *src, const double *phi) {
#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t z = 0; z < n; z++)
		lines(dst, src, phi, z, 0, n);
}

/* Several sweeps in one pass over memory. A tile holds BLOCK rows of a plane, moved down
 * by a row a sweep, and goes up plane by plane, sweep t being t planes behind. Threads
 * take a piece of the planes each, a plane less per sweep where pieces meet; the gaps
 * between pieces are relaxed afterwards, sweep by sweep. */
enum { TOGETHER = 8, BLOCK = 16 };

static void rising(double *const u[2], const double *phi, long lo, long hi, int below, int above, int sweeps) {
	for (long y = 0; y < (long)n + sweeps - 1; y += BLOCK)
		for (long z = lo; z < hi + sweeps - 1; z++)
			for (int t = 0; t < sweeps; t++) {
				if (z - t < lo + below * t || z - t >= hi - above * t)
					continue;
				long first = y - t, end = y - t + BLOCK;
				if (first < 0)
					first = 0;
				if (end > (long)n)
					end = (long)n;
				if (first < end)
					lines(u[1 - t % 2], u[t % 2], phi, (size_t)(z - t), (size_t)first, (size_t)end);
			}
}

static void timetiled(double *a, double *b, const double *phi, int sweeps) {
	double *const u[2] = {a, b};
	long size = (long)n;
	int pieces = threads;
	while (pieces > 1 && size / pieces < 2 * sweeps)
		pieces--;
#pragma omp parallel for num_threads(pieces) schedule(static)
	for (int i = 0; i < pieces; i++)
		rising(u, phi, size * i / pieces, size * (i + 1) / pieces, i > 0, i < pieces - 1, sweeps);
	for (int t = 1; t < sweeps && pieces > 1; t++)
#pragma omp parallel for num_threads(threads) collapse(2) schedule(static)
		for (int i = 1; i < pieces; i++)
			for (long d = -t; d < t; d++)
				lines(u[1 - t % 2], u[t % 2], phi, (size_t)(size * i / pieces + d), 0, n);
}

/* colour relaxes every other point of a plane in place. All points of a row are computed,
 * into another row, and those of the colour copied back, so that both loops have vectors. */
static void colour(double *u, const double *phi, size_t z, size_t odd, double w) {
	double fresh[n];
	for (size_t y = 0; y < n; y++) {
		double *restrict c = u + origin + y * row + z * plane;
		const double *restrict p = phi + n * (y + n * z);
		double *restrict v = fresh;
		for (size_t x = 0; x < n; x++) {
			double s = ((c[x - 1] + c[x + 1]) + (c[x - row] + c[x + row])) + (c[x - plane] + c[x + plane]);
			double r = (diag * c[x] - off * s) - f;
			double t = c[x] - w * r;
			v[x] = p[x] > t ? p[x] : t;
		}
		size_t keep = (y + z + odd) & 1;
		for (size_t x = 0; x < n; x++)
			c[x] = (x & 1) == keep ? v[x] : c[x];
	}
}

/* redblack follows the first colour with the second, a plane behind. */
static void redblack(double *u, const double *phi) {
	double w = 1.2 / diag;
	int pieces = (size_t)threads < n / 2 + 1 ? threads : (int)(n / 2 + 1);
#pragma omp parallel for num_threads(pieces) schedule(static)
	for (int i = 0; i < pieces; i++) {
		size_t lo = n * (size_t)i / (size_t)pieces, hi = n * ((size_t)i + 1) / (size_t)pieces;
		for (size_t z = lo; z < hi; z++) {
			colour(u, phi, z, 0, w);
			if (z > lo + 1)
				colour(u, phi, z - 1, 1, w);
		}
	}
#pragma omp parallel for num_threads(pieces) schedule(static)
	for (int i = 0; i < pieces; i++) {
		size_t lo = n * (size_t)i / (size_t)pieces, hi = n * ((size_t)i + 1) / (size_t)pieces;
		if (lo < hi)
			colour(u, phi, lo, 1, w);
		if (lo + 1 < hi)
			colour(u, phi, hi - 1, 1, w);
	}
}

/* tiled keeps three planes of a tile of rows in the second-level cache, as the
 * kernels do. */
static void tiled(double *dst, const double *src, const double *phi) {
	size_t tile = 384 * 1024 / (5 * 8 * (n + 2));
	for (size_t lo = 0; lo < n; lo += tile)
		for (size_t z = 0; z < n; z++)
			lines(dst, src, phi, z, lo, lo + tile < n ? lo + tile : n);
}

static void triad(double *restrict a, const double *restrict b, const double *restrict c) {
#pragma omp parallel for num_threads(threads) schedule(static)
	for (size_t i = 0; i < n * n * n; i++)
		a[i] = b[i] + 3 * c[i];
}

static double *array(size_t len) {
	void *p = NULL;
	if (posix_memalign(&p, 4096, len * sizeof(double)) != 0) {
		fprintf(stderr, "no memory for %zu values\n", len);
		exit(1);
	}
	memset(p, 0, len * sizeof(double));
	return p;
}

/* repeat does a loop so often; the newest values are in *src then. */
static int repeat(const char *what, int times, double **src, double **dst, const double *phi) {
	if (strcmp(what, "redblack") == 0) {
		for (int k = 0; k < times; k++)
			redblack(*src, phi);
		return 1;
	}
	int tile = strcmp(what, "timetiled") == 0;
	if (!tile && strcmp(what, "plain") != 0 && strcmp(what, "tiled") != 0 && strcmp(what, "triad") != 0)
		return 0;
	for (int k = 0, done; k < times; k += done) {
		done = !tile ? 1 : times - k < TOGETHER ? times - k : TOGETHER;
		if (tile)
			timetiled(*src, *dst, phi, done);
		else if (strcmp(what, "triad") == 0)
			triad(*dst, *src, phi);
		else if (strcmp(what, "tiled") == 0)
			tiled(*dst, *src, phi);
		else
			plain(*dst, *src, phi);
		if (done % 2 == 1) {
			double *swap = *src;
			*src = *dst, *dst = swap;
		}
	}
	return 1;
}

int main(int argc, char **argv) {
	if (argc < 3 || (n = strtoul(argv[1], NULL, 10)) < 1) {
		fprintf(stderr, "usage: sweep N check FILE | sweep N time\n");
		return 2;
	}
	row = (n + 2 + 7) / 8 * 8;
	plane = row * (n + 2);
	origin = 8 + row + plane;
	double h = 1 / (double)(n + 1);
	diag = 6 / (h * h), off = 1 / (h * h), step = h * h / 6, f = 0;
	size_t len = origin + n + n * row + n * plane + 1;
	double *src = array(len), *dst = array(len), *phi = array(n * n * n);
	for (size_t z = 0; z < n; z++)
		for (size_t y = 0; y < n; y++)
			for (size_t x = 0; x < n; x++) {
				double a = (double)(x + 1) * h - 0.5, b = (double)(y + 1) * h - 0.5, c = (double)(z + 1) * h - 0.5;
				double p = 0.5 - 4 * (a * a + b * b + c * c);
				phi[x + n * (y + n * z)] = p;
				src[origin + x + y * row + z * plane] = p > 0 ? p : 0;
			}
	if (strcmp(argv[2], "check") == 0 && (argc == 4 || argc == 5)) {
		threads = 3;
		if (!repeat(argc == 5 ? argv[4] : "plain", 5, &src, &dst, phi))
			return 2;
		FILE *out = fopen(argv[3], "wb");
		if (out == NULL) {
			perror(argv[3]);
			return 1;
		}
		for (size_t z = 0; z < n; z++)
			for (size_t y = 0; y < n; y++)
				fwrite(src + origin + y * row + z * plane, sizeof(double), n, out);
		return fclose(out) != 0;
	}
	char what[32];
	int times;
	while (scanf("%31s %d", what, &times) == 2) {
		char *by = strchr(what, ':');
		threads = 1;
		if (by != NULL) {
			threads = atoi(by + 1);
			*by = 0;
		}
		clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
		struct timespec a, b;
		clock_gettime(clock, &a);
		if (threads < 1 || !repeat(what, times, &src, &dst, phi))
			return 2;
		clock_gettime(clock, &b);
		printf("%lld\n", (long long)(b.tv_sec - a.tv_sec) * 1000000000LL + (b.tv_nsec - a.tv_nsec));
		fflush(stdout);
	}
	return 0;
}
