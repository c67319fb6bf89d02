package s3faults

import (
	"crypto/md5" // #nosec G501 -- an ETag
	"encoding/hex"
	"io"
	"net/http"
)

// Accept takes every write as done without keeping it, for looking at requests whose features the server behind does not have.
func Accept() Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !Writes(r) {
			return false
		}
		hash := md5.New() // #nosec G401 -- an ETag
		_, _ = io.Copy(hash, r.Body)
		w.Header().Set("ETag", `"`+hex.EncodeToString(hash.Sum(nil))+`"`)
		return true
	}
}
