//go:build versitygw

package s3

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuaudit/store"
	"gpuaudit/store/archive"
	"gpuaudit/store/storetest"
	"gpuaudit/store/storetest/versitygw"
)

// statement of a policy, with the account that a bucket's policy needs and a user's does not.
type statement struct {
	Sid, Effect      string
	Action, Resource []string
	Principal        map[string][]string
}

// documented reads docs/stores/policy.json for a bucket and a prefix, without one of its actions.
func documented(t *testing.T, bucket, prefix, user, without string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(versitygw.Repository(), "docs", "stores", "policy.json"))
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Version   string
		Statement []statement
	}
	text := strings.ReplaceAll(strings.ReplaceAll(string(raw), "BUCKET", bucket), "PREFIX", prefix)
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		t.Fatal(err)
	}
	kept := policy.Statement[:0]
	for _, s := range policy.Statement {
		var actions []string
		for _, action := range s.Action {
			if action != without {
				actions = append(actions, action)
			}
		}
		if s.Action, s.Principal = actions, map[string][]string{"AWS": {user}}; len(actions) > 0 {
			kept = append(kept, s)
		}
	}
	policy.Statement = kept
	out, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// everything does all that the program does with a store.
func everything(ctx context.Context, s *Store) error {
	if _, err := store.Probe(ctx, s, "policy"); err != nil {
		return err
	}
	if err := audit(ctx, s); err != nil {
		return err
	}
	a := archive.New(s)
	if _, _, err := a.SaveReport(ctx, archive.Report{Run: "r1", Time: storetest.Day, Files: map[string][]byte{"report.json": []byte("{}")}}); err != nil {
		return err
	}
	if _, err := a.FindReport(ctx, archive.LatestRun); err != nil {
		return err
	}
	if err := a.UpdateAcks(ctx, "c", func([]byte) ([]byte, error) { return []byte("{}"), nil }); err != nil {
		return err
	}
	if _, err := a.ClaimSlot(ctx, "daily", []byte("{}")); err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	_, err := a.Prune(ctx, time.Nanosecond)
	return err
}

// TestDocumentedPolicy: with the policy of docs/stores a user can do everything, without any one action of it something
// fails and the error names the action, and nothing outside the prefix can be reached.
func TestDocumentedPolicy(t *testing.T) {
	versitygw.Environment(t)
	server := versitygw.Start(t)
	server.User(t, "AUDITUSER", "audit-user-secret")
	for _, without := range []string{"", "s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"} {
		t.Run("without "+without, func(t *testing.T) {
			admin, again := openReal(t, server, store.Options{}, false)
			server.Policy(t, admin.bucket, documented(t, admin.bucket, "team/a", "AUDITUSER", without))
			t.Setenv("AWS_ACCESS_KEY_ID", "AUDITUSER")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "audit-user-secret")
			user := again()
			err := everything(t.Context(), user)
			if without == "" {
				if err != nil {
					t.Errorf("with the whole policy: %v", err)
				}
			} else {
				want(t, err, nil, "HTTP 403", without)
			}
			outside := *user
			outside.prefix = "team/b/"
			_, err = outside.Put(t.Context(), "x", []byte("x"), store.Attributes{})
			want(t, err, nil, "HTTP 403")
		})
	}
}
