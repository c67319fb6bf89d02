package mask

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	var w Words
	w.Add("s3cret word", "s3cret word and more", "abc", " from a file\n")
	w.AddURL("https://user:p%40ss@host:x/?token=in-the-query&n=1")
	w.AddURL("ftp://user:mal formed@h")
	r, err := http.NewRequest(http.MethodGet, "https://h", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("u", "basic-password")
	coded := strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
	w.AddHeader(r.Header)
	w.AddHeader(http.Header{"Authorization": {"Bearer bearer-token", "raw-value"}})
	for _, secret := range []string{"s3cret word", "s3cret word and more", url.QueryEscape("s3cret word"), "from a file", "p%40ss", "p@ss", "in-the-query", "mal formed", "basic-password", coded, "bearer-token", "raw-value"} {
		if got := w.Text("before " + secret + " after"); got != "before "+Redacted+" after" {
			t.Errorf("%q becomes %q", secret, got)
		}
	}
	if got := w.Text("abc, n=1, host:x"); got != "abc, n=1, host:x" {
		t.Errorf("what is no secret becomes %q", got)
	}
	var none Words
	if got := none.Text("text"); got != "text" {
		t.Errorf("no secrets make %q", got)
	}
}
