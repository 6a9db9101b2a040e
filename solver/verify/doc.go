// Package verify evaluates solutions of obstacle problems independently of the method that computed
// them.
//
// 1. Evaluate returns the VI residual, contact counts, forces and, where one can be proved, a bound
// of the error. It only reads the vector. Its result is bitwise independent of the number of
// threads.
// 2. Evaluation.ErrorBound includes rounding. It is NaN if no bound was proved, and Certificate.Why
// states the reason.
// 3. Enclose returns two vectors that contain the discrete solution.
// 4. EvaluateStep and StepBounds do the same for time steps.
package verify
