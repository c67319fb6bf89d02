package main

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gpuaudit/cmd/audit/pipeline"
)

// gauges are what audit schedule tells Prometheus, and whether it is ready.
type gauges struct {
	registry   *prometheus.Registry
	isReady    atomic.Bool
	lastRun    prometheus.Gauge
	duration   prometheus.Gauge
	success    prometheus.Gauge
	findings   *prometheus.GaugeVec
	devices    *prometheus.GaugeVec
	classes    *prometheus.GaugeVec
	gaps       *prometheus.GaugeVec
	deliveries *prometheus.CounterVec
	runs       *prometheus.CounterVec
}

func newGauges() *gauges {
	g := &gauges{registry: prometheus.NewRegistry()}
	// Of the process itself: goroutines, memory, open files.
	g.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "audit", Name: name, Help: help}, labels)
		g.registry.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "audit", Name: name, Help: help}, labels)
		g.registry.MustRegister(v)
		return v
	}
	g.lastRun = gauge("last_run_timestamp_seconds", "When the last run ended.").WithLabelValues()
	g.success = gauge("last_success_timestamp_seconds", "When the last complete run ended.").WithLabelValues()
	g.duration = gauge("last_run_duration_seconds", "How long the last run took.").WithLabelValues()
	g.findings = gauge("findings", "Open findings.", "cluster", "check", "severity")
	g.devices = gauge("devices", "Devices by resource, in its unit; unknown figures are absent.", "cluster", "resource", "unit", "kind")
	g.classes = gauge("class_devices", "Free devices of a workload class: apparent and schedulable.", "cluster", "class", "resource", "kind")
	g.gaps = gauge("gaps", "Reads that did not give the whole answer.", "cluster", "resource", "reason")
	g.deliveries = counter("deliveries_total", "Digests posted or not.", "result")
	g.runs = counter("runs_total", "Scheduled runs by result.", "result")
	return g
}

func (g *gauges) ready()   { g.isReady.Store(true) }
func (g *gauges) skipped() { g.runs.WithLabelValues("skipped").Inc() }
func (g *gauges) failed()  { g.runs.WithLabelValues("failed").Inc() }

func (g *gauges) delivery(ok bool) {
	result := "failed"
	if ok {
		result = "posted"
	}
	g.deliveries.WithLabelValues(result).Inc()
}

// ran publishes a run's figures; what was not seen is absent, not 0.
func (g *gauges) ran(o *pipeline.Outcome, took time.Duration) {
	now := float64(time.Now().Unix())
	g.lastRun.Set(now)
	g.duration.Set(took.Seconds())
	result := "incomplete"
	if !o.Incomplete && o.Err() == nil {
		result = "complete"
		g.success.Set(now)
	}
	g.runs.WithLabelValues(result).Inc()
	for _, v := range []*prometheus.GaugeVec{g.findings, g.devices, g.classes, g.gaps} {
		v.Reset()
	}
	for _, c := range o.Report.Clusters {
		for i := range c.Findings {
			if f := &c.Findings[i]; f.Open() {
				g.findings.WithLabelValues(c.Name, f.Check, string(f.Severity)).Inc()
			}
		}
		for _, gap := range c.Gaps {
			g.gaps.WithLabelValues(c.Name, gap.Resource, gap.Reason).Inc()
		}
		for _, d := range c.Devices {
			if d.AliasOf != "" {
				continue
			}
			g.devices.WithLabelValues(c.Name, d.Resource, d.Unit, "allocatable").Set(float64(d.Allocatable))
			if d.Requested != nil && d.Free != nil {
				g.devices.WithLabelValues(c.Name, d.Resource, d.Unit, "requested").Set(float64(*d.Requested))
				g.devices.WithLabelValues(c.Name, d.Resource, d.Unit, "free").Set(float64(*d.Free))
			}
		}
		for _, k := range c.Classes {
			g.classes.WithLabelValues(c.Name, k.Name, k.Resource, "apparent").Set(float64(k.ApparentFree))
			g.classes.WithLabelValues(c.Name, k.Name, k.Resource, "schedulable").Set(float64(k.Schedulable))
		}
	}
}

func (g *gauges) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !g.isReady.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.registry, promhttp.HandlerOpts{}))
	return mux
}
