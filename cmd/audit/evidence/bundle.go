// Package evidence makes and verifies bundles for a vendor: one zip that shows
// what was seen, when, and that nothing of it was changed since.
package evidence

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"

	"gpuaudit/store/archive"
)

// Names of files with a meaning of their own.
const (
	ManifestName  = "manifest.json"
	SignatureName = "manifest.json.minisig"
	KeyName       = "signing-key.pub"
	ChainName     = "chain.json"
)

// Manifest lists every file with its hash.
type Manifest struct {
	SchemaVersion int       `json:"schemaVersion"`
	Cluster       string    `json:"cluster"`
	Run           string    `json:"run"`
	CreatedAt     time.Time `json:"createdAt"`
	Tool          string    `json:"tool"`
	Redacted      bool      `json:"redacted"`
	// ChainHead is the hash of the newest header in chain.json: to be compared
	// with one that was published at the time, in a Slack digest for one.
	ChainHead string         `json:"chainHead"`
	Files     []ManifestFile `json:"files"`
}

// ManifestFile is one file of a bundle.
type ManifestFile struct {
	Name   string `json:"name"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

// chainHeader is a header with its very bytes, which its hash is of.
type chainHeader struct {
	Key  string `json:"key"`
	Body string `json:"body"`
}

// Pack makes the zip: the files, the chain, the manifest, and a signature when
// there is a key. The same input gives the same bytes.
func Pack(m Manifest, files map[string][]byte, headers []archive.RawHeader, key *minisign.PrivateKey) ([]byte, error) {
	var chain []chainHeader
	for _, h := range headers {
		chain = append(chain, chainHeader{h.Key, string(h.Body)})
	}
	body, err := json.MarshalIndent(chain, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode chain: %w", err)
	}
	files[ChainName] = append(body, '\n')
	m.ChainHead = archive.Verify(headers, nil).HeadSHA256
	var names []string
	size := 0
	for name := range files {
		names = append(names, name)
		size += len(files[name])
	}
	if size > maxUnpacked/2 {
		return nil, fmt.Errorf("the bundle has %d bytes, at most %d can be verified again; narrow it with --finding or --node", size, maxUnpacked/2)
	}
	slices.Sort(names)
	for _, name := range names {
		m.Files = append(m.Files, ManifestFile{name, len(files[name]), archive.Hash(files[name])})
	}
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	manifest = append(manifest, '\n')
	extra := []struct {
		name string
		body []byte
	}{{ManifestName, manifest}}
	if key != nil {
		public, ok := key.Public().(minisign.PublicKey)
		if !ok {
			return nil, errors.New("the signing key has no public part")
		}
		text, err := public.MarshalText()
		if err != nil {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		extra = append(extra, struct {
			name string
			body []byte
		}{SignatureName, minisign.Sign(*key, manifest)}, struct {
			name string
			body []byte
		}{KeyName, append(text, '\n')})
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	add := func(name string, body []byte) error {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: m.CreatedAt})
		if err == nil {
			_, err = f.Write(body)
		}
		return err
	}
	for _, name := range names {
		if err := add(name, files[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	for _, e := range extra {
		if err := add(e.name, e.body); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return out.Bytes(), nil
}

// Verification is what Verify found.
type Verification struct {
	Manifest Manifest
	// Problems are exact: which file or header is wrong, and how.
	Problems []string
	// Signed says whose signature holds, "" when there is none.
	Signed string
	// Covers is true when a header is of the run that the bundle reports.
	Covers bool
	// Chain sums the chain up.
	Headers                 int
	First, Head, HeadSHA256 string
}

// What a bundle may unpack to, in bytes, and how many entries it may have:
// a small zip can claim to be a very large one.
const (
	maxUnpacked = 256 << 20
	maxEntries  = 1000
)

// Verify checks a bundle offline. want is the public key that must have signed
// it; nil takes any, and none. Errors: the file is no bundle at all.
func Verify(body []byte, want *minisign.PublicKey) (*Verification, error) {
	files, err := unpack(body)
	if err != nil {
		return nil, err
	}
	raw, ok := files[ManifestName]
	if !ok {
		return nil, fmt.Errorf("the zip has no %s: it is no evidence bundle", ManifestName)
	}
	v := &Verification{}
	if err := json.Unmarshal(raw, &v.Manifest); err != nil {
		return nil, fmt.Errorf("%s is broken: %w", ManifestName, err)
	}
	if v.Manifest.SchemaVersion < 1 {
		return nil, fmt.Errorf("%s has no schemaVersion: it is not the manifest of an evidence bundle", ManifestName)
	}
	if v.Manifest.SchemaVersion > 1 {
		return nil, fmt.Errorf("the bundle has schemaVersion %d and this program reads 1; use a newer one", v.Manifest.SchemaVersion)
	}
	v.files(files)
	v.signature(files, raw, want)
	v.chain(files[ChainName])
	slices.Sort(v.Problems)
	return v, nil
}

func unpack(body []byte) (map[string][]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, fmt.Errorf("the file is no zip, or was cut off: %w; get it again from who made it", err)
	}
	if len(r.File) > maxEntries {
		return nil, fmt.Errorf("the zip has %d entries, an evidence bundle at most %d: refused", len(r.File), maxEntries)
	}
	files := map[string][]byte{}
	left := int64(maxUnpacked)
	for _, f := range r.File {
		if _, twice := files[f.Name]; twice {
			return nil, fmt.Errorf("the zip holds %q twice", f.Name)
		}
		if !fs.ValidPath(f.Name) || strings.Contains(f.Name, `\`) {
			return nil, fmt.Errorf("zip entry %q is no plain path inside of the zip: refused", f.Name)
		}
		in, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("zip entry %q: %w", f.Name, err)
		}
		content, err := io.ReadAll(io.LimitReader(in, left+1))
		_ = in.Close()
		if err != nil {
			return nil, fmt.Errorf("zip entry %q is damaged: %w", f.Name, err)
		}
		if left -= int64(len(content)); left < 0 {
			return nil, fmt.Errorf("the zip unpacks to more than %d bytes: refused", int64(maxUnpacked))
		}
		files[f.Name] = content
	}
	return files, nil
}

func (v *Verification) bad(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *Verification) files(files map[string][]byte) {
	listed := map[string]bool{ManifestName: true, SignatureName: true, KeyName: true}
	for _, f := range v.Manifest.Files {
		listed[f.Name] = true
		content, ok := files[f.Name]
		sum := sha256.Sum256(content)
		switch {
		case !ok:
			v.bad("file %s is missing", f.Name)
		case hex.EncodeToString(sum[:]) != f.SHA256:
			v.bad("file %s was changed: its hash is %s, the manifest says %s", f.Name, hex.EncodeToString(sum[:]), f.SHA256)
		case len(content) != f.Size:
			v.bad("file %s has %d bytes, the manifest says %d", f.Name, len(content), f.Size)
		}
	}
	for name := range files {
		if !listed[name] {
			v.bad("file %s is not in the manifest: it was added", name)
		}
	}
}

func (v *Verification) signature(files map[string][]byte, manifest []byte, want *minisign.PublicKey) {
	signature, signed := files[SignatureName]
	if !signed {
		if want != nil {
			v.bad("the bundle is not signed, and a key was asked for")
		}
		if _, ok := files[KeyName]; ok {
			v.bad("file %s is missing although there is a key", SignatureName)
		}
		return
	}
	var key minisign.PublicKey
	if err := key.UnmarshalText(bytes.TrimSpace(files[KeyName])); err != nil {
		v.bad("file %s is no public key: %v", KeyName, err)
		return
	}
	if want != nil && !want.Equal(key) {
		v.bad("the bundle is signed with another key: %s, asked for was %s", key, *want)
		key = *want
	}
	if !minisign.Verify(key, manifest, signature) {
		v.bad("the signature does not fit the manifest: one of both was changed")
		return
	}
	v.Signed = key.String()
}

func (v *Verification) chain(body []byte) {
	var list []chainHeader
	if err := json.Unmarshal(body, &list); err != nil {
		v.bad("file %s is broken: %v", ChainName, err)
		return
	}
	var headers []archive.RawHeader
	for _, h := range list {
		raw := archive.RawHeader{Key: h.Key, Body: []byte(h.Body)}
		headers = append(headers, raw)
		if parsed, err := raw.Parse(); err == nil {
			v.Covers = v.Covers || parsed.Run == v.Manifest.Run
		}
	}
	if len(headers) == 0 {
		v.bad("chain: file %s holds no header, so nothing shows when any of this was seen", ChainName)
	}
	found := archive.Verify(headers, func(string) ([]byte, error) { return nil, archive.ErrNotIncluded })
	for _, f := range found.Faults {
		v.bad("chain: %s", f)
	}
	v.Headers, v.First, v.Head, v.HeadSHA256 = found.Headers, found.First, found.Head, found.HeadSHA256
	if found.HeadSHA256 != v.Manifest.ChainHead {
		v.bad("chain: its newest header has hash %s, the manifest says %s", orNone(found.HeadSHA256), orNone(v.Manifest.ChainHead))
	}
}

func orNone(s string) string {
	if strings.TrimSpace(s) == "" {
		return "none"
	}
	return s
}
