package tidy

import (
	"cmp"
	"fmt"
	"slices"
)

// Finding is one violation of one rule.
type Finding struct {
	Rule string // "imports", "purity", "layout", "length", "docs", "text"
	File string // relative to the root
	Line int
	What string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.What)
}

// Check runs every rule over the module at root.
func Check(root string) ([]Finding, error) {
	tree, err := load(root)
	if err != nil {
		return nil, err
	}
	return check(tree)
}

func check(tree *tree) ([]Finding, error) {
	pure, err := checkPurity(tree)
	if err != nil {
		return nil, err
	}
	root, err := checkRoot(tree)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(
		checkImports(tree), pure, root, checkLayout(tree), checkTests(tree), checkLength(tree),
		checkDocs(tree), checkText(tree))
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.What, b.What))
	})
	return all, nil
}
