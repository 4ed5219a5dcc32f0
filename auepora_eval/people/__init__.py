"""People and judges: annotators, agreement, adjudication, audits of judges."""
