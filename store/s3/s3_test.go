package s3

import (
	"testing"

	"gpuaudit/store"
	"gpuaudit/store/storetest"
)

func TestSuite(t *testing.T) {
	for name, options := range map[string]store.Options{
		"plain":           {},
		"with checksums":  {Checksums: store.ChecksumsOn},
		"with md5":        {Checksums: store.ChecksumsMD5},
		"virtual hosted":  {Addressing: store.AddressingVirtual, Endpoint: "http://s3.example.internal"},
		"no SDK defaults": {Region: "eu-central-1"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (store.Store, func() store.Store) {
				f := newFake(t, options.Addressing == store.AddressingVirtual)
				return f.open(t, options), func() store.Store { return f.open(t, options) }
			})
		})
	}
}
