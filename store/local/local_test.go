package local_test

import (
	"testing"

	"gpuaudit/store"
	"gpuaudit/store/local"
	"gpuaudit/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store.Store, func() store.Store) {
		dir := t.TempDir()
		again := func() store.Store {
			s, err := local.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		return again(), again
	})
}
