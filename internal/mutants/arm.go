// Many mutants in one program, of which one is switched on as it starts: to build the
// tests again for each of them takes most of the time otherwise.

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// switchVariable is the environment variable by which a mutant is switched on: its number
// in the table that was armed, from 1.
const switchVariable = "REDLOCK_MUTANT"

// A variant is a function as a mutant has it, beside the one that calls it if the mutant
// is switched on.
type variant struct {
	file     string
	at       int    // offset in the file, behind the brace that opens the function
	dispatch string // to be put there
	text     string // of the variant, for the end of the file
}

// arm adds the variants of all mutants to the module at root, but for those whose numbers
// are bad. It returns which it has added: a mutant that changes anything but bodies of
// functions, or does not fit, has to be made by itself.
func arm(root string, all []mutant, bad map[int]bool) (armed map[string]int, err error) {
	armed = make(map[string]int)
	variants := make(map[string][]variant) // by file
	for i, m := range all {
		some, err := m.variants(root, i+1)
		if err != nil || bad[i+1] {
			continue
		}
		for _, v := range some {
			armed[m.name] = i + 1
			variants[v.file] = append(variants[v.file], v)
		}
	}
	for file, some := range variants {
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		text := string(b)
		slices.SortStableFunc(some, func(a, b variant) int { return b.at - a.at })
		for _, v := range some { // from the end, so that offsets hold good
			text = text[:v.at] + v.dispatch + text[v.at:]
		}
		for _, v := range some {
			text += "\n" + v.text + "\n"
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		theSwitch := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar mutantOn, _ = strconv.Atoi(os.Getenv(%q))\n", f.Name.Name, switchVariable)
		if _, err := write(root, map[string]string{file: text}); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(root, path.Dir(file), "mutant_on.go"), []byte(theSwitch), 0o644); err != nil {
			return nil, err
		}
	}
	return armed, nil
}

var (
	errorLike   = regexp.MustCompile(`(?m)^(?:\./)?([\w./]+\.go):(\d+):`)
	variantLike = regexp.MustCompile(`^func .*Mutant(\d+)[(\[]`)
)

// culprits returns the numbers of the mutants that a compiler complains about.
func (l *lab) culprits(complaint string) (numbers []int) {
	for _, m := range errorLike.FindAllStringSubmatch(complaint, -1) {
		text, err := os.ReadFile(filepath.Join(l.root, m[1]))
		if err != nil {
			continue
		}
		lines := strings.Split(string(text), "\n")
		at, _ := strconv.Atoi(m[2])
		for at = min(at, len(lines)) - 1; at >= 0; at-- {
			if v := variantLike.FindStringSubmatch(lines[at]); v != nil {
				number, _ := strconv.Atoi(v[1])
				numbers = append(numbers, number)
				break
			}
		}
	}
	return numbers
}

// variants returns the functions that a mutant changes, or none if it changes anything
// else.
func (m mutant) variants(root string, number int) ([]variant, error) {
	files, err := m.mutate(root)
	if err != nil {
		return nil, err
	}
	var all []variant
	for _, file := range slices.Sorted(maps.Keys(files)) {
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(file, ".go") {
			return nil, nil
		}
		before, err := split(string(b))
		if err != nil {
			return nil, err
		}
		after, err := split(files[file])
		if err != nil {
			return nil, err
		}
		if before.rest != after.rest {
			return nil, nil
		}
		for i, f := range before.functions {
			g := after.functions[i]
			if f.body == g.body {
				continue
			}
			name := fmt.Sprintf("%sMutant%d", g.decl.Name.Name, number)
			call, ok := callOf(g.decl, name)
			if !ok {
				return nil, nil
			}
			all = append(all, variant{
				file: file, at: f.at, text: g.head + name + g.tail + g.body,
				dispatch: fmt.Sprintf("\n\tif mutantOn == %d {\n\t\t%s\n\t}\n\t", number, call),
			})
		}
	}
	return all, nil
}

// A file is split into the bodies of its functions, and the rest.
type parts struct {
	functions []function
	rest      string
}

type function struct {
	decl             *ast.FuncDecl
	head, tail, body string // before and behind the name
	at               int    // offset of what is behind the brace that opens it
}

func split(text string) (p parts, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return p, err
	}
	offset := func(pos token.Pos) int { return fset.Position(pos).Offset }
	from := 0
	for _, d := range f.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		open, end := offset(d.Body.Lbrace), offset(d.Body.End())
		p.functions = append(p.functions, function{
			decl: d, at: open + 1, body: text[open:end],
			head: text[offset(d.Pos()):offset(d.Name.Pos())], tail: text[offset(d.Name.End()):open],
		})
		p.rest += text[from:open]
		from = end
	}
	p.rest += text[from:]
	return p, nil
}

// callOf returns the statements that call another function in the place of d, with what
// d was called with. It cannot if a parameter has no name.
func callOf(d *ast.FuncDecl, name string) (string, bool) {
	if d.Recv != nil {
		names := d.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return "", false
		}
		name = names[0].Name + "." + name
	}
	names := func(fields *ast.FieldList) (all []string, ok bool) {
		if fields == nil {
			return nil, true
		}
		for _, f := range fields.List {
			if len(f.Names) == 0 {
				return nil, false
			}
			_, variadic := f.Type.(*ast.Ellipsis)
			for _, n := range f.Names {
				if n.Name == "_" {
					return nil, false
				}
				if variadic {
					n = &ast.Ident{Name: n.Name + "..."}
				}
				all = append(all, n.Name)
			}
		}
		return all, true
	}
	types, _ := names(d.Type.TypeParams)
	if len(types) > 0 {
		name += "[" + strings.Join(types, ", ") + "]"
	}
	args, ok := names(d.Type.Params)
	if !ok {
		return "", false
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if d.Type.Results == nil {
		return call + "\n\t\treturn", true
	}
	return "return " + call, true
}
