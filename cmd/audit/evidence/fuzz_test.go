package evidence

import (
	"bytes"
	"testing"
)

// FuzzVerify: no bytes make verify panic, and none that unpack to other content
// than was packed verify.
func FuzzVerify(f *testing.F) {
	good := pack(f, map[string][]byte{"findings.json": []byte("[]\n"), "ticket.md": []byte("# ticket\n")}, chained(f), nil)
	packed, err := unpack(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(repack(f, good, ChainName, []byte("[]")))
	f.Add(repack(f, good, ManifestName, []byte(`{"schemaVersion":1,"files":[{"name":"../x"}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Verify(body, nil)
		if err != nil || len(v.Problems) > 0 {
			return
		}
		files, err := unpack(body)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range packed {
			if name != ManifestName && !bytes.Equal(files[name], want) && bytes.Equal(files[ManifestName], packed[ManifestName]) {
				t.Fatalf("%s is another and verifies", name)
			}
		}
	})
}
