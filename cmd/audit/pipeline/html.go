package pipeline

import (
	"gpuaudit/audit/report"
)

// HTML renders a report for a browser.
func HTML(r *report.Report) ([]byte, error) { return nil, nil }
