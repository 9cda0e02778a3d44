// The guard in SQL, as far as it goes without a database: what it sends, and what
// it makes of the answers. The integration module asks real databases.

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/fence"
)

var dialects = []fence.Dialect{fence.Postgres, fence.MySQL, fence.SQLite}

func TestDialectVerdict(t *testing.T) {
	const token = 7
	rows := func(n ...int64) answer { return answer{rows: n} }
	result := func(affected, id int64) answer { return answer{affected: affected, insertID: id} }
	returning := []fence.Dialect{fence.Postgres, fence.SQLite}
	mysql := []fence.Dialect{fence.MySQL}
	for name, tt := range map[string]struct {
		dialects []fence.Dialect
		answer   answer
		highest  int64 // that refuses the token; 0: accepted; -1: no verdict
	}{
		"highest":       {returning, rows(7), 0},
		"higher stored": {returning, rows(8), 8},
		"lower stored":  {returning, rows(6), -1},
		"no row":        {returning, rows(), -1},

		"new row":            {mysql, result(1, 0), 0},
		"row with token":     {mysql, result(2, 7), 0},
		"row with higher":    {mysql, result(2, 8), 8},
		"row with lower":     {mysql, result(2, 6), -1},
		"row, ID lost":       {mysql, result(2, 0), -1},
		"unchanged row":      {mysql, result(0, 7), -1},
		"new row with an ID": {mysql, result(1, 7), -1},
		"nothing":            {mysql, result(0, 0), -1},
	} {
		for _, d := range tt.dialects {
			t.Run(d.String()+"/"+name, func(t *testing.T) {
				db := &fakeSQL{answers: []answer{tt.answer}}
				err := d.Check(t.Context(), db.begin(t), "r", token)
				if tt.highest >= 0 {
					checkVerdict(t, "check", err, "r", token, tt.highest)
				} else if err == nil || errors.Is(err, fence.ErrStale) {
					t.Errorf("%v, want an error that is not a verdict", err)
				}
				if len(db.seen) != 1 {
					t.Errorf("%d statements were sent, want one", len(db.seen))
				}
			})
		}
	}
}

func TestDialectArguments(t *testing.T) {
	const hash = "6074334fdebe0b32e81f219d3a04651572bf0c3f8329c37a3ad0b22086fbe621" // as sha256sum prints it
	const longHash = "1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3"
	for _, tt := range []struct{ resource, hash, label string }{
		{"customer-42", "", "customer-42"},
		{`a "b" \`, "", `a \"b\" \\`},
		{"\x00\xffé😀\n", "", `\x00\xff\u00e9\U0001f600\n`},
		{strings.Repeat("a", 200), "", strings.Repeat("a", 200)},
		{strings.Repeat("a", 201), "", strings.Repeat("a", 200) + "..."},
		{strings.Repeat("\xff", 199), "", strings.Repeat(`\xff`, 50) + "..."},
		{strings.Repeat("x", 1<<16), longHash, strings.Repeat("x", 200) + "..."},
		{"billing/42", hash, "billing/42"},
	} {
		for _, d := range dialects {
			db := &fakeSQL{answers: []answer{{rows: []int64{9}, affected: 1}}}
			if err := d.Check(t.Context(), db.begin(t), tt.resource, 9); err != nil {
				t.Errorf("%v, %.20q: %v", d, tt.resource, err)
				continue
			}
			got := db.seen[0].args
			want := []any{got[0], tt.label, int64(9)}
			if tt.hash != "" {
				want[0] = tt.hash
			}
			if d == fence.MySQL {
				want = append(want, int64(9))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %.20q: arguments %v, want %v", d, tt.resource, got, want)
			}
			if len(tt.label) > 255 {
				t.Errorf("the label of %.20q is too long for its column", tt.resource)
			}
		}
	}
}

// What cannot be checked does not reach the database.
func TestDialectRefuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		dialect  fence.Dialect
		resource string
		token    int64
		noTx     bool
		want     string
	}{
		{"token 0", fence.Postgres, "r", 0, false, fence.ErrNoToken.Error()},
		{"negative token", fence.MySQL, "r", -1, false, fence.ErrNoToken.Error()},
		{"no resource", fence.SQLite, "", 1, false, fence.ErrNoResource.Error()},
		{"no transaction", fence.Postgres, "r", 1, true, "no transaction"},
		{"no dialect", 0, "r", 1, false, "unknown dialect: Dialect(0)"},
		{"unknown dialect", 4, "r", 1, false, "unknown dialect: Dialect(4)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := &fakeSQL{answers: []answer{{rows: []int64{1}, affected: 1}}}
			var tx *sql.Tx
			if !tt.noTx {
				tx = db.begin(t)
			}
			err := tt.dialect.Check(t.Context(), tx, tt.resource, tt.token)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, fence.ErrStale) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if len(db.seen) != 0 {
				t.Errorf("sent %q", db.seen)
			}
		})
	}
}

func TestDialectWrapsErrors(t *testing.T) {
	broken := errors.New("connection reset")
	lost := errors.New("lease is lost")
	for _, d := range dialects {
		db := &fakeSQL{answers: []answer{{err: broken}}}
		if err := d.Check(t.Context(), db.begin(t), "r", 1); !errors.Is(err, broken) || errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: %v, want the driver's error", d, err)
		}

		ctx, cancel := context.WithCancelCause(t.Context())
		tx := db.begin(t)
		cancel(lost)
		if err := d.Check(ctx, tx, "r", 1); !errors.Is(err, context.Canceled) || !errors.Is(err, lost) {
			t.Errorf("%v: %v, want context.Canceled and its cause", d, err)
		}
	}
}

func TestCreateTable(t *testing.T) {
	schemas := map[fence.Dialect]string{
		fence.Postgres: fence.PostgresSchema, fence.MySQL: fence.MySQLSchema, fence.SQLite: fence.SQLiteSchema,
	}
	duplicate := errors.New("duplicate key value violates unique constraint")
	for d, schema := range schemas {
		db := &fakeSQL{answers: []answer{{}}}
		if err := d.CreateTable(t.Context(), db.open(t)); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if len(db.seen) != 1 || db.seen[0].text != schema || len(db.seen[0].args) != 0 {
			t.Errorf("%v: sent %q, want the schema", d, db.seen)
		}
		db = &fakeSQL{answers: []answer{{err: duplicate}}}
		if err := d.CreateTable(t.Context(), db.open(t)); !errors.Is(err, duplicate) {
			t.Errorf("%v: %v, want the driver's error", d, err)
		}
	}

	// A race between two sessions, lost.
	db := &fakeSQL{answers: []answer{{err: duplicate}, {}}}
	if err := fence.Postgres.CreateTable(t.Context(), db.open(t)); err != nil {
		t.Error(err)
	}
	if err := fence.Dialect(0).CreateTable(t.Context(), db.open(t)); err == nil {
		t.Error("an unknown dialect has a table")
	}
}

func TestDialectString(t *testing.T) {
	for d, want := range map[fence.Dialect]string{
		fence.Postgres: "PostgreSQL", fence.MySQL: "MySQL", fence.SQLite: "SQLite", 0: "Dialect(0)",
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
