package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// checkDocs requires a comment on every package, and on every exported identifier of
// a public package.
func checkDocs(t *tree) []Finding {
	var out []Finding
	documented, first := map[string]bool{}, map[string]*file{}
	var dirs []string
	for _, f := range t.goFiles(false) {
		if first[f.dir] == nil {
			first[f.dir] = f
			dirs = append(dirs, f.dir)
		}
		if f.syntax.Doc != nil && strings.TrimSpace(f.syntax.Doc.Text()) != "" {
			documented[f.dir] = true
		}
		if public(f) {
			out = append(out, undocumented(t, f)...)
		}
	}
	for _, d := range dirs {
		if !documented[d] {
			name := first[d].syntax.Name.Name
			out = append(out, Finding{"docs", first[d].name, 1, "package " + name + " has no package comment"})
		}
	}
	return out
}

// public reports whether other modules can import the file's package.
func public(f *file) bool {
	return f.syntax.Name.Name != "main" && !strings.Contains("/"+f.dir+"/", "/internal/")
}

func undocumented(t *tree, f *file) []Finding {
	var out []Finding
	say := func(p token.Pos, name string) {
		out = append(out, Finding{"docs", f.name, t.line(p), "exported " + name + " has no comment"})
	}
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !wellKnown(d) {
				say(d.Pos(), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if p, name := exportedSpec(s); name != "" && d.Doc == nil {
					say(p, name)
				}
			}
		}
	}
	return out
}

// exportedSpec returns the first exported name of a type, constant or variable that
// has no comment of its own.
func exportedSpec(s ast.Spec) (token.Pos, string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
			return s.Pos(), s.Name.Name
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil {
				return n.Pos(), n.Name
			}
		}
	}
	return token.NoPos, ""
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// wellKnown reports whether the standard library defines the meaning of a method.
func wellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{
		"String", "Error", "Unwrap", "Is", "As", "Len", "Less", "Swap",
	}, d.Name.Name)
}
