package s3

import (
	"errors"
	"strings"
	"testing"
)

// want fails unless err is of the kind (nil: any) and its text has all parts and not the secret.
func want(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %v is not %v", err, kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not have %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "planted") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q shows a secret or has several lines", err)
	}
}
