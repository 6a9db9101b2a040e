/* The sweep of the reference case as a C programmer would write it, for gcc -O3
 * -march=native: what the kernels in Go are measured against.
 *
 *   sweep N check FILE   relax 5 times, write the own points as float64 to FILE
 *   sweep N time         for each line "loop K" on stdin ("plain", "tiled" or
 *                        "triad"), do it K times and print the nanoseconds
 *                        that a core worked on it
 *
 * The layout is that of internal/kernel: padded rows, one ghost layer. */
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

static void plain(double *dst, const double *src, const double *phi) {
	for (size_t z = 0; z < n; z++)
		lines(dst, src, phi, z, 0, n);
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
	double *src = array(len), *dst = array(len), *phi = array(n * n * n), *swap;
	for (size_t z = 0; z < n; z++)
		for (size_t y = 0; y < n; y++)
			for (size_t x = 0; x < n; x++) {
				double a = (double)(x + 1) * h - 0.5, b = (double)(y + 1) * h - 0.5, c = (double)(z + 1) * h - 0.5;
				double p = 0.5 - 4 * (a * a + b * b + c * c);
				phi[x + n * (y + n * z)] = p;
				src[origin + x + y * row + z * plane] = p > 0 ? p : 0;
			}
	if (strcmp(argv[2], "check") == 0 && argc == 4) {
		for (int k = 0; k < 5; k++)
			plain(dst, src, phi), swap = src, src = dst, dst = swap;
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
	char what[16];
	int times;
	while (scanf("%15s %d", what, &times) == 2) {
		struct timespec a, b;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		for (int k = 0; k < times; k++) {
			if (strcmp(what, "triad") == 0)
				triad(dst, src, phi);
			else if (strcmp(what, "tiled") == 0)
				tiled(dst, src, phi);
			else
				plain(dst, src, phi);
			swap = src, src = dst, dst = swap;
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		printf("%lld\n", (long long)(b.tv_sec - a.tv_sec) * 1000000000LL + (b.tv_nsec - a.tv_nsec));
		fflush(stdout);
	}
	return 0;
}
