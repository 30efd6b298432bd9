/** What is measured in a cell, and in which unit. */
import type { Reading } from '../meter.ts'

export const UNITS = {
  'tasks/s': '/s',
  'tasks/s with few waiting': '/s',
  'tasks/s with many waiting': '/s',
  'CPU per task': 'µs',
  'server CPU per task': 'µs',
  'WAL per task': 'B',
  'peak RSS': 'MB',
  RSS: 'MB',
  'CPU of one core': '%',
  'server CPU of one core': '%',
  p50: 'ms',
  p95: 'ms',
  p99: 'ms',
  max: 'ms',
  'not run': '',
  errors: '',
} as const

export type FigureName = keyof typeof UNITS

/** The figures of one run of one system. Unknown ones are omitted. */
export type Figures = Readonly<Partial<Record<FigureName, number>>>

/** The server's work per task between two readings. */
export const serverFigures = (before: Reading, after: Reading, count: number): Figures => ({
  ...(before.cpuSeconds !== null &&
    after.cpuSeconds !== null && {
      'server CPU per task': ((after.cpuSeconds - before.cpuSeconds) / count) * 1_000_000,
    }),
  ...(before.walBytes !== null &&
    after.walBytes !== null && { 'WAL per task': (after.walBytes - before.walBytes) / count }),
})
