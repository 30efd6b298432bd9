/** What one minute of the soak is: a line of its JSON. */

/** Figures by name. Each name is explained in figures.ts. */
export type Figures = Readonly<Record<string, number>>

export interface ProcessSample {
  /** In megabytes, before the collection: what a container's limit counts. */
  readonly rss: number
  /** After a forced collection. */
  readonly heap: number
  readonly external: number
  readonly files: number
  readonly lagP99: number
  readonly lagMax: number
  /** Since the sample before. */
  readonly cpuSeconds: number
  readonly latencies: readonly number[]
  /** What only this process knows. */
  readonly more: Figures
}

export interface Sample {
  readonly minute: number
  readonly at: string
  /** `worker 1` → its figures. */
  readonly processes: Readonly<Record<string, Figures>>
  /** What the store and its server use. */
  readonly store: Figures
  /** What was done in the minute, and how fast. */
  readonly work: Figures
}
