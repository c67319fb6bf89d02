package check

// All are the checks, in the order in which a report lists them. A new check is
// a file, a line here, a page in docs/checks and a folder of golden cases.
func All() []Check {
	return []Check{
		nodeNotReady, nodeCordoned, deviceLoss, admissionFailures,
		labelMissing, labelDrift,
		pendingUnschedulable, schedulerTakeover,
		ghostHold, stuckStarting, terminatingHold, deadNodeHold, orphanPod,
		quotaBlockedDaemonSet, quotaBlocked,
		nodeRecreated, nodeDisappeared,
		deviceMetrics, metricsAPI,
		auditTrail,
		modelDisagreement,
	}
}
