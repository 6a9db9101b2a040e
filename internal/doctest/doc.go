// Package doctest runs the fenced blocks of the Markdown files of this repository. It consists of tests.
//
// The language after a fence selects what is done:
//
//	sh         run, with the other blocks of the page, in a folder that holds docs and examples
//	text       compared with what the sh block before it printed; … stands for any text on a line, or for lines
//	yaml NAME  written to a file, by default of a name of its own; checked, and solved if it is a problem
//	go NAME    written to a file, which sh blocks build
//	go         compiled as the body of a function
//	python     run, all blocks of the page as one program, whose prints are compared with their comments
//	json       parsed; its keys are compared with what the command before it prints
//
// A table with a command before it has the numbers that the command prints, rounded. Other tests here and elsewhere compare
// the tables that are made from Go's.
//
// Comments in the lines before a fence change that. <!-- run: COMMAND --> runs a command that the page does not show:
// before the block, or on a file of YAML in place of checking it. <!-- given: NAME TYPE, … --> declares parameters of a
// Go function. A block is left out where the program of <!-- needs: PROGRAM --> is not installed, with <!-- long: REASON -->
// unless the test has -long, and always with <!-- not run: REASON -->. With -short, blocks are parsed only.
package doctest
