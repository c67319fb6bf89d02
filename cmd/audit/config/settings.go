package config

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuaudit/audit/inventory"
	"gpuaudit/audit/report"
	"gpuaudit/audit/settings"
)

// DefaultTimeout of one cluster's read.
const DefaultTimeout = 5 * time.Minute

// DefaultParallelism is how many clusters are read side by side.
const DefaultParallelism = 8

// ParseDuration reads a Go duration, or a number of days such as 7d.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n > -36500 && n < 36500) {
			return 0, fmt.Errorf("%q is no number of days", s)
		}
		return time.Duration(n * 24 * float64(time.Hour)), nil
	}
	return time.ParseDuration(s)
}

// Or gives the duration, or another where none is written. The file was checked before.
func (d Duration) Or(other time.Duration) time.Duration {
	if d == "" {
		return other
	}
	v, err := ParseDuration(string(d))
	if err != nil {
		return other
	}
	return v
}

// Settings of one cluster's audit.
func (f *File) Settings(c *Cluster) settings.Settings {
	s := settings.Default()
	t, d := f.Thresholds, s.Thresholds
	s.Thresholds = settings.Thresholds{
		NotReady: t.NotReady.Or(d.NotReady), Silent: t.Silent.Or(d.Silent), SilentWithoutLease: max(d.SilentWithoutLease, t.Silent.Or(d.Silent)),
		Cordoned: t.Cordoned.Or(d.Cordoned), Ghost: t.Ghost.Or(d.Ghost), StuckStarting: t.StuckStarting.Or(d.StuckStarting),
		Terminating: t.Terminating.Or(d.Terminating), Pending: t.Pending.Or(d.Pending), Initialising: t.Initialising.Or(d.Initialising),
		AdmissionFailures: d.AdmissionFailures, AdmissionWindow: t.AdmissionWindow.Or(d.AdmissionWindow),
		PeersWithLabel: d.PeersWithLabel, ChurnWithLabel: t.ChurnWithLabel, EventsFresh: d.EventsFresh,
	}
	if t.AdmissionFailures != nil {
		s.Thresholds.AdmissionFailures = *t.AdmissionFailures
	}
	if t.PeersWithLabel != nil {
		s.Thresholds.PeersWithLabel = *t.PeersWithLabel
	}
	s.Severities, s.Off = map[string]report.Severity{}, map[string]bool{}
	for id, severity := range f.Severities {
		if severity == Off {
			s.Off[id] = true
			continue
		}
		s.Severities[id] = report.Severity(severity)
	}
	for _, w := range f.Workloads {
		s.Workloads = append(s.Workloads, w.settings())
	}
	for _, d := range f.Devices {
		s.Devices = append(s.Devices, settings.Device(d))
	}
	s.ChecklistURL = f.Checklist.BaseURL
	if c != nil {
		s.Ignore = settings.Ignore(c.Ignore)
		for _, g := range c.AcceptGaps {
			s.AcceptGaps = append(s.AcceptGaps, settings.AcceptedGap(g))
		}
		s.Vendor = c.Vendor.Name
	}
	return s
}

func (w *Workload) settings() settings.Workload {
	out := settings.Workload{Name: w.Name, Requests: inventory.Resources{}, NodeSelector: w.NodeSelector}
	for name, text := range w.Requests {
		if q, err := inventory.ReadQuantity(string(text)); err == nil {
			out.Requests[name] = inventory.Amount(name, q)
		}
	}
	// Both were checked strictly when the file was loaded.
	if len(w.Affinity) > 0 && string(w.Affinity) != "null" {
		_ = json.Unmarshal(w.Affinity, &out.Affinity)
	}
	if len(w.Tolerations) > 0 {
		_ = json.Unmarshal(w.Tolerations, &out.Tolerations)
	}
	return out
}

// Cluster gives a cluster by name.
func (f *File) Cluster(name string) *Cluster {
	for i := range f.Clusters {
		if f.Clusters[i].Name == name {
			return &f.Clusters[i]
		}
	}
	return nil
}
