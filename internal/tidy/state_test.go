package tidy

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// write records that an expression is assigned to, or that its address is taken.
func (w *walker) write(e ast.Expr) {
	if v := w.root(e); v != nil && v.Parent() == v.Pkg().Scope() {
		if _, known := w.written[v]; !known {
			w.written[v] = e.Pos()
		}
	}
}

// root returns the variable x of the expressions x, x.f, x[i], *x and (x).
func (w *walker) root(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			v, _ := w.pkg.TypesInfo.Uses[x].(*types.Var)
			return v
		case *ast.SelectorExpr:
			if v, is := w.pkg.TypesInfo.Uses[x.Sel].(*types.Var); is && !v.IsField() {
				return v // a variable of another package
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// variables checks the package variables. Events, errors and tables that no function
// writes are allowed. Others are state that two nodes of one process would share.
func (w *walker) variables() {
	scope := w.pkg.Types.Scope()
	for _, name := range scope.Names() {
		v, is := scope.Lookup(name).(*types.Var)
		if !is {
			continue
		}
		if at, written := w.written[v]; written {
			w.say(at, "package variable %s is written: keep state in a value with an owner", name)
			delete(w.written, v)
			continue
		}
		if holdsState(v.Type()) {
			kind := types.TypeString(v.Type(), types.RelativeTo(w.pkg.Types))
			w.say(v.Pos(), "package variable %s of type %s can hold state", name, kind)
		}
		if v.Exported() && !isEvent(v.Type()) && !isError(v.Type()) {
			w.say(v.Pos(), "package variable %s is exported: others could change it", name)
		}
	}
	for v, at := range w.written {
		if v.Pkg() != w.pkg.Types {
			w.say(at, "variable %s.%s of another package is written", v.Pkg().Name(), v.Name())
		}
	}
	slices.SortFunc(w.found, func(a, b Finding) int { return strings.Compare(a.String(), b.String()) })
}

// holdsState reports whether variables of a type are made to be changed: pointers,
// channels, and the types of package sync.
func holdsState(t types.Type) bool {
	if isError(t) || isEvent(t) {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Chan:
		return true
	case *types.Array:
		return holdsState(u.Elem())
	case *types.Struct:
		if n, is := t.(*types.Named); is && n.Obj().Pkg() != nil && strings.HasPrefix(n.Obj().Pkg().Path(), "sync") {
			return true
		}
		for i := range u.NumFields() {
			if holdsState(u.Field(i).Type()) {
				return true
			}
		}
	}
	return false
}

// isEvent reports whether t is microproto.Event. The identity of an event is its
// variable, so events are declared at package level; they are never changed.
func isEvent(t types.Type) bool {
	n, is := t.(*types.Named)
	return is && n.Obj().Name() == "Event" && n.Obj().Pkg() != nil && n.Obj().Pkg().Name() == "microproto"
}

func isError(t types.Type) bool {
	e, _ := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	return types.Implements(t, e)
}

func isPointer(t types.Type) bool {
	_, is := t.Underlying().(*types.Pointer)
	return is
}

func pointerReceiver(f *types.Func) bool {
	s, is := f.Type().(*types.Signature)
	return is && s.Recv() != nil && isPointer(s.Recv().Type())
}
