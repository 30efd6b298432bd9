/** `holdfast/metrics`: Prometheus metrics about tasks, with or without a server. */
export { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
