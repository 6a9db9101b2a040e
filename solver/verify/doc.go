// Package verify judges answers of obstacle problems, however they were found: residuals, contact
// sets and forces, certified bounds of the error, and enclosures of the solution.
package verify
