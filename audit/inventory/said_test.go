package inventory

import (
	"strings"
	"testing"
)

func TestSaid(t *testing.T) {
	for in, want := range map[string]string{
		`failed to pull https://robot:canary-1@registry.example.com/x: 401`:                            `failed to pull https://[masked]@registry.example.com/x: 401`,
		`Authorization: Bearer canary-token-1234`:                                                      `Authorization: Bearer [masked]`,
		`token eyJhbGciOiJSUzI1NiJ9.canaryCANARYcanary.c2ln expired`:                                   `token [masked] expired`,
		`post https://x/y?X-Amz-Signature=canary123&a=1 and PASSWORD=canary99, done`:                   `post https://x/y?X-Amz-Signature=[masked]&a=1 and PASSWORD=[masked], done`,
		`xoxb-canary-123456 ghp_canarycanarycanarycanary AKIACANARYCANARYCANA glpat-canarycanary12345`: `[masked] [masked] [masked] [masked]`,
		`0/3 nodes are available: 3 node(s) didn't match node_env=prod, token bucket is full`:          `0/3 nodes are available: 3 node(s) didn't match node_env=prod, token bucket is full`,
		`exceeded quota: q, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4`:     `exceeded quota: q, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4`,
	} {
		if got := Said(in); got != want || strings.Contains(strings.ToLower(got), "canary") {
			t.Errorf("Said(%q) = %q, want %q", in, got, want)
		}
	}
}
