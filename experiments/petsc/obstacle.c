/* The reference problem (membrane) solved by PETSc: the unit cube, u = 0 on its
 * boundary, f = 0, above phi = 1/2 - 4|x - c|^2, 7-point Laplacian, n interior points
 * an axis. One line of JSON on rank 0.
 *
 *   mpirun -n P ./obstacle -n 63 -tol 1e-6 [-levels L] [PETSc's options]
 *
 * -levels L starts on a grid that is 2^(L-1) times as coarse and refines (grid
 * sequencing). -bound_solver tao solves the quadratic program by TAO instead of SNESVI.
 * A run stops on the norm that is reported: |r(u)| / |r(u0)|, r the residual of the
 * variational inequality, A with its 1/h^2, u0 = max(phi, 0). When the answer is
 * evaluated, values within 1e-8 of phi are set to phi first. */
#include <petscdmda.h>
#include <petscsnes.h>
#include <petsctao.h>
#include <petsctime.h>
#include <sys/resource.h>

typedef struct {
  PetscReal tol;
  PetscInt  points; /* of the grid that the norm below belongs to */
  PetscReal reference;
  PetscInt  linear, newton;
} Context;

static PetscReal phi(PetscReal x, PetscReal y, PetscReal z)
{
  x -= 0.5, y -= 0.5, z -= 0.5;
  return 0.5 - 4 * (x * x + y * y + z * z);
}

static PetscBool inside(const DMDALocalInfo *g, PetscInt i, PetscInt j, PetscInt k)
{
  return (PetscBool)(i > 0 && j > 0 && k > 0 && i < g->mx - 1 && j < g->my - 1 && k < g->mz - 1);
}

/* F = A u inside, u / h^2 on the boundary, so that rows are alike. */
static PetscErrorCode function(DMDALocalInfo *g, PetscReal ***u, PetscReal ***f, void *ctx)
{
  PetscReal s = (PetscReal)(g->mx - 1) * (g->mx - 1);
  PetscFunctionBeginUser;
  for (PetscInt k = g->zs; k < g->zs + g->zm; k++)
    for (PetscInt j = g->ys; j < g->ys + g->ym; j++)
      for (PetscInt i = g->xs; i < g->xs + g->xm; i++) {
        if (!inside(g, i, j, k)) { f[k][j][i] = s * u[k][j][i]; continue; }
        f[k][j][i] = s * (6 * u[k][j][i] - u[k][j][i - 1] - u[k][j][i + 1] - u[k][j - 1][i] - u[k][j + 1][i] - u[k - 1][j][i] - u[k + 1][j][i]);
      }
  PetscCall(PetscLogFlops(9.0 * g->xm * g->ym * g->zm));
  PetscFunctionReturn(0);
}

/* The boundary is not coupled: values there are 0 from the start and stay. */
static PetscErrorCode jacobian(DMDALocalInfo *g, PetscReal ***u, Mat J, Mat P, void *ctx)
{
  PetscReal s = (PetscReal)(g->mx - 1) * (g->mx - 1);
  PetscFunctionBeginUser;
  for (PetscInt k = g->zs; k < g->zs + g->zm; k++)
    for (PetscInt j = g->ys; j < g->ys + g->ym; j++)
      for (PetscInt i = g->xs; i < g->xs + g->xm; i++) {
        static const PetscInt d[6][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
        MatStencil  row = {.i = i, .j = j, .k = k}, col[7];
        PetscScalar v[7];
        PetscInt    n = 0;
        col[n] = row, v[n++] = inside(g, i, j, k) ? 6 * s : s;
        for (int q = 0; q < 6 && inside(g, i, j, k); q++) {
          MatStencil c = {.i = i + d[q][0], .j = j + d[q][1], .k = k + d[q][2]};
          if (inside(g, c.i, c.j, c.k)) col[n] = c, v[n++] = -s;
        }
        PetscCall(MatSetValuesStencil(P, 1, &row, n, col, v, INSERT_VALUES));
      }
  PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(P, MAT_SPD, PETSC_TRUE));
  if (J != P) {
    PetscCall(MatAssemblyBegin(J, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(J, MAT_FINAL_ASSEMBLY));
  }
  PetscFunctionReturn(0);
}

/* obstacle fills a vector with phi (no bound on the boundary), or with max(phi, 0). */
static PetscErrorCode obstacle(DM dm, Vec x, PetscBool start)
{
  DMDALocalInfo g;
  PetscReal  ***a, h;
  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(dm, &g));
  h = 1.0 / (g.mx - 1);
  PetscCall(DMDAVecGetArray(dm, x, &a));
  for (PetscInt k = g.zs; k < g.zs + g.zm; k++)
    for (PetscInt j = g.ys; j < g.ys + g.ym; j++)
      for (PetscInt i = g.xs; i < g.xs + g.xm; i++) {
        PetscReal v = phi(i * h, j * h, k * h);
        if (!inside(&g, i, j, k)) v = start ? 0 : PETSC_NINFINITY;
        a[k][j][i] = start ? PetscMax(v, 0) : v;
      }
  PetscCall(DMDAVecRestoreArray(dm, x, &a));
  PetscFunctionReturn(0);
}

static PetscErrorCode bounds(SNES snes, Vec lower, Vec upper)
{
  DM dm;
  PetscFunctionBeginUser;
  PetscCall(SNESGetDM(snes, &dm));
  PetscCall(obstacle(dm, lower, PETSC_FALSE));
  PetscCall(VecSet(upper, PETSC_INFINITY));
  PetscFunctionReturn(0);
}

/* residual is the norm that is reported; snap sets u to phi where it is
 * within 1e-8 of it. */
static PetscErrorCode residual(DM dm, Vec x, PetscBool snap, PetscReal *norm, PetscReal *sum, PetscInt *contact)
{
  DMDALocalInfo g;
  Vec           local, lower, global;
  PetscReal  ***u, ***f, ***p, mine[3] = {0, 0, 0}, all[3], h;
  Vec           value;
  PetscFunctionBeginUser;
  PetscCall(DMDAGetLocalInfo(dm, &g));
  h = 1.0 / (g.mx - 1);
  PetscCall(DMGetLocalVector(dm, &local));
  PetscCall(DMGetGlobalVector(dm, &value));
  PetscCall(DMGetGlobalVector(dm, &lower));
  PetscCall(DMGetGlobalVector(dm, &global));
  PetscCall(obstacle(dm, lower, PETSC_FALSE));
  PetscCall(VecCopy(x, global));
  PetscCall(DMDAVecGetArray(dm, global, &u));
  PetscCall(DMDAVecGetArray(dm, lower, &p));
  for (PetscInt k = g.zs; snap && k < g.zs + g.zm; k++)
    for (PetscInt j = g.ys; j < g.ys + g.ym; j++)
      for (PetscInt i = g.xs; i < g.xs + g.xm; i++)
        if (u[k][j][i] <= p[k][j][i] + 1e-8) u[k][j][i] = p[k][j][i];
  PetscCall(DMDAVecRestoreArray(dm, global, &u));
  PetscCall(DMGlobalToLocalBegin(dm, global, INSERT_VALUES, local));
  PetscCall(DMGlobalToLocalEnd(dm, global, INSERT_VALUES, local));
  PetscCall(DMDAVecGetArray(dm, local, &u));
  PetscCall(DMDAVecGetArray(dm, value, &f));
  PetscCall(function(&g, u, f, NULL));
  for (PetscInt k = g.zs; k < g.zs + g.zm; k++)
    for (PetscInt j = g.ys; j < g.ys + g.ym; j++)
      for (PetscInt i = g.xs; i < g.xs + g.xm; i++) {
        PetscReal r = f[k][j][i];
        if (!inside(&g, i, j, k)) continue;
        if (u[k][j][i] <= p[k][j][i]) r = PetscMin(r, 0), mine[2]++;
        mine[0] += r * r, mine[1] += u[k][j][i];
      }
  PetscCall(DMDAVecRestoreArray(dm, local, &u));
  PetscCall(DMDAVecRestoreArray(dm, value, &f));
  PetscCall(DMDAVecRestoreArray(dm, lower, &p));
  PetscCallMPI(MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  *norm = PetscSqrtReal(all[0]);
  if (sum) *sum = all[1] * h * h * h;
  if (contact) *contact = (PetscInt)all[2];
  PetscCall(DMRestoreLocalVector(dm, &local));
  PetscCall(DMRestoreGlobalVector(dm, &value));
  PetscCall(DMRestoreGlobalVector(dm, &lower));
  PetscCall(DMRestoreGlobalVector(dm, &global));
  PetscFunctionReturn(0);
}

/* reference is the norm of the residual of u0 on the grid of dm. */
static PetscErrorCode reference(DM dm, Context *c)
{
  PetscInt n;
  Vec      start;
  PetscFunctionBeginUser;
  PetscCall(DMDAGetInfo(dm, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  if (c->points == n) PetscFunctionReturn(0);
  PetscCall(DMGetGlobalVector(dm, &start));
  PetscCall(obstacle(dm, start, PETSC_TRUE));
  PetscCall(residual(dm, start, PETSC_FALSE, &c->reference, NULL, NULL));
  PetscCall(DMRestoreGlobalVector(dm, &start));
  c->points = n;
  PetscFunctionReturn(0);
}

static PetscErrorCode enough(SNES snes, PetscInt it, PetscReal xnorm, PetscReal snorm, PetscReal fnorm, SNESConvergedReason *why, void *ctx)
{
  Context *c = ctx;
  DM       dm;
  PetscFunctionBeginUser;
  PetscCall(SNESGetDM(snes, &dm));
  PetscCall(reference(dm, c));
  *why = fnorm <= c->tol * c->reference ? SNES_CONVERGED_FNORM_ABS : SNES_CONVERGED_ITERATING;
  if (PetscIsInfOrNanReal(fnorm)) *why = SNES_DIVERGED_FNORM_NAN;
  PetscFunctionReturn(0);
}

static PetscErrorCode gradient(Tao tao, Vec x, PetscReal *value, Vec g, void *ctx)
{
  Mat H = ctx;
  PetscFunctionBeginUser;
  PetscCall(MatMult(H, x, g));
  PetscCall(VecDot(x, g, value));
  *value *= 0.5;
  PetscFunctionReturn(0);
}

static PetscErrorCode hessian(Tao tao, Vec x, Mat H, Mat P, void *ctx) { return 0; }

static PetscErrorCode viaTao(DM dm, Context *c, Vec x)
{
  Tao tao;
  Mat H;
  Vec lower, upper;
  DMDALocalInfo g;
  TaoConvergedReason why;
  PetscFunctionBeginUser;
  PetscCall(DMCreateMatrix(dm, &H));
  PetscCall(DMDAGetLocalInfo(dm, &g));
  PetscCall(jacobian(&g, NULL, H, H, NULL));
  PetscCall(VecDuplicate(x, &lower));
  PetscCall(VecDuplicate(x, &upper));
  PetscCall(obstacle(dm, lower, PETSC_FALSE));
  PetscCall(VecSet(upper, PETSC_INFINITY));
  PetscCall(reference(dm, c));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetType(tao, TAOGPCG));
  PetscCall(TaoSetSolution(tao, x));
  PetscCall(TaoSetVariableBounds(tao, lower, upper));
  PetscCall(TaoSetObjectiveAndGradient(tao, NULL, gradient, H));
  PetscCall(TaoSetHessian(tao, H, H, hessian, NULL));
  PetscCall(TaoSetTolerances(tao, c->tol * c->reference, 0, 0));
  PetscCall(TaoSetMaximumIterations(tao, 100000));
  PetscCall(TaoSetFromOptions(tao));
  PetscCall(TaoSolve(tao));
  PetscCall(TaoGetConvergedReason(tao, &why));
  PetscCall(TaoGetLinearSolveIterations(tao, &c->linear));
  PetscCall(TaoGetIterationNumber(tao, &c->newton));
  if (why < 0) PetscCall(PetscPrintf(PETSC_COMM_SELF, "TAO: %s\n", TaoConvergedReasons[why]));
  PetscCall(TaoDestroy(&tao));
  PetscCall(MatDestroy(&H));
  PetscCall(VecDestroy(&lower));
  PetscCall(VecDestroy(&upper));
  PetscFunctionReturn(0);
}

static PetscErrorCode report(DM dm, Context *c, Vec x, PetscInt n, double seconds)
{
  struct rusage use;
  PetscReal     norm, sum;
  PetscInt      contact;
  double        mine[2], all[2];
  int           ranks, rank;
  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  getrusage(RUSAGE_SELF, &use);
  mine[0] = use.ru_utime.tv_sec + use.ru_stime.tv_sec + 1e-6 * (use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  mine[1] = 1024.0 * use.ru_maxrss;
  PetscCallMPI(MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD));
  PetscCall(reference(dm, c));
  PetscCall(residual(dm, x, PETSC_TRUE, &norm, &sum, &contact));
  if (rank == 0)
    printf("{\"n\":%d,\"ranks\":%d,\"seconds\":%.6g,\"cpu_seconds\":%.6g,\"peak_bytes\":%.0f,\"relative_residual\":%.6g,\"sum\":%.15g,\"contact_points\":%d,\"newton\":%d,\"linear\":%d}\n",
           (int)n, ranks, seconds, all[0], all[1], (double)(norm / c->reference), (double)sum, (int)contact, (int)c->newton, (int)c->linear);
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Context   c = {.tol = 1e-6};
  PetscInt  n = 63, levels = 1;
  char      which[16] = "snes";
  DM        dm, fine;
  Vec       x;
  SNES      snes = NULL;
  double    begin, end;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-levels", &levels, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-tol", &c.tol, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-bound_solver", which, sizeof which, NULL));
  PetscCheck(levels >= 1 && levels < 16 && (n + 1) % (1 << (levels - 1)) == 0, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "n + 1 = %d cannot be halved %d times", (int)n + 1, (int)levels - 1);
  PetscInt m = (n + 1) / (1 << (levels - 1)) + 1;
  PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, m, m, m, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &dm));
  PetscCall(DMSetFromOptions(dm));
  PetscCall(DMSetUp(dm));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  begin = MPI_Wtime();
  if (which[0] == 't') {
    PetscCall(DMCreateGlobalVector(dm, &x));
    PetscCall(obstacle(dm, x, PETSC_TRUE));
    PetscCall(viaTao(dm, &c, x));
    fine = dm;
    PetscCall(PetscObjectReference((PetscObject)dm));
  } else {
    SNESConvergedReason why;
    Vec                 start;
    PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
    PetscCall(SNESSetDM(snes, dm));
    PetscCall(DMDASNESSetFunctionLocal(dm, INSERT_VALUES, (PetscErrorCode(*)(DMDALocalInfo *, void *, void *, void *))function, NULL));
    PetscCall(DMDASNESSetJacobianLocal(dm, (PetscErrorCode(*)(DMDALocalInfo *, void *, Mat, Mat, void *))jacobian, NULL));
    PetscCall(SNESSetType(snes, SNESVINEWTONRSLS));
    PetscCall(SNESVISetComputeVariableBounds(snes, bounds));
    PetscCall(SNESSetConvergenceTest(snes, enough, &c, NULL));
    PetscCall(SNESSetTolerances(snes, 0, 0, 0, 1000, 1000000));
    if (levels > 1) PetscCall(SNESSetGridSequence(snes, levels - 1));
    PetscCall(SNESSetFromOptions(snes));
    PetscCall(DMCreateGlobalVector(dm, &start));
    PetscCall(obstacle(dm, start, PETSC_TRUE));
    PetscCall(SNESSolve(snes, NULL, start));
    PetscCall(VecDestroy(&start));
    PetscCall(SNESGetConvergedReason(snes, &why));
    if (why < 0) PetscCall(PetscPrintf(PETSC_COMM_SELF, "SNES: %s\n", SNESConvergedReasons[why]));
    PetscCall(SNESGetIterationNumber(snes, &c.newton));
    PetscCall(SNESGetLinearSolveIterations(snes, &c.linear));
    PetscCall(SNESGetSolution(snes, &x));
    PetscCall(SNESGetDM(snes, &fine));
    PetscCall(PetscObjectReference((PetscObject)fine));
    PetscCall(PetscObjectReference((PetscObject)x));
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  end = MPI_Wtime();
  PetscCall(report(fine, &c, x, n, end - begin));
  PetscCall(VecDestroy(&x));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&fine));
  PetscCall(DMDestroy(&dm));
  PetscCall(PetscFinalize());
  return 0;
}
