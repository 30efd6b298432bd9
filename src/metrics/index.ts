/** `holdfast/metrics`: what happens to tasks, as Prometheus reads it. With or without a server. */
export { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
