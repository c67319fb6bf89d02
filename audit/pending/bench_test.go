package pending

import "testing"

func BenchmarkParse(b *testing.B) {
	for _, m := range []struct{ name, reporter, message string }{
		{"scheduler", "default-scheduler", "0/15 nodes are available: 1 node(s) were unschedulable, 11 Insufficient nvidia.com/gpu, 3 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/15 nodes are available: 15 Preemption is not helpful for scheduling."},
		{"gang", "x-scheduler", "pod group is not ready, 1 Pending, 1 minAvailable, 108 Running, 4 Releasing; Pending: 1 InsufficientQuota"},
	} {
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Parse(m.reporter, "FailedScheduling", m.message)
			}
		})
	}
}
