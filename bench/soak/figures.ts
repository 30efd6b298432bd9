/** The figures of a soak: their units, and how much each may grow in the time that is judged. */
import type { Bound } from './trend.ts'

export interface Figure {
  readonly title: string
  readonly unit: string
  readonly bound: Bound
}

/**
 * Memory and files must stay; times are noisy where others use the machine, so only a growth that a person would notice counts there.
 */
export const FIGURES: Readonly<Record<string, Figure>> = {
  rss: { title: 'resident memory', unit: 'MB', bound: { share: 0.1, floor: 12 } },
  heap: { title: 'heap after collection', unit: 'MB', bound: { share: 0.1, floor: 3 } },
  external: { title: 'memory outside the heap', unit: 'MB', bound: { share: 0.1, floor: 3 } },
  files: { title: 'open files and sockets', unit: '', bound: { share: 0.1, floor: 3 } },
  lagP99: { title: 'event-loop lag, p99', unit: 'ms', bound: { share: 1, floor: 50 } },
  lagMax: { title: 'event-loop lag, longest', unit: 'ms', bound: { share: 1, floor: 500 } },
  database: { title: 'database', unit: 'MB', bound: { share: 0.1, floor: 4 } },
  wal: { title: 'write-ahead log', unit: 'MB', bound: { share: 0.1, floor: 8 } },
  free: { title: 'free pages of the database', unit: 'MB', bound: { share: 0.1, floor: 8 } },
  tables: { title: 'tables', unit: 'MB', bound: { share: 0.1, floor: 4 } },
  indexes: { title: 'indexes', unit: 'MB', bound: { share: 0.1, floor: 4 } },
  dead: { title: 'dead rows', unit: '', bound: { share: 0.5, floor: 5_000 } },
  connections: { title: 'connections', unit: '', bound: { share: 0.1, floor: 2 } },
  objects: { title: 'objects', unit: '', bound: { share: 0.1, floor: 500 } },
  stored: { title: 'stored', unit: 'MB', bound: { share: 0.1, floor: 4 } },
  messages: { title: 'messages in streams', unit: '', bound: { share: 0.1, floor: 500 } },
  consumers: { title: 'consumers', unit: '', bound: { share: 0.1, floor: 2 } },
  tasks: { title: 'tasks in the store', unit: '', bound: { share: 0.1, floor: 500 } },
  ready: { title: 'tasks that are ready and wait', unit: '', bound: { share: 0.5, floor: 200 } },
  p50: { title: 'submit to start, p50', unit: 'ms', bound: { share: 1, floor: 50 } },
  p95: { title: 'submit to start, p95', unit: 'ms', bound: { share: 1, floor: 250 } },
  p99: { title: 'submit to start, p99', unit: 'ms', bound: { share: 1, floor: 500 } },
  refused: { title: 'calls that failed', unit: '', bound: { share: 1, floor: 20 } },
}

/** Shown, and not judged: they say what was done. */
export const SHOWN: Readonly<Record<string, Omit<Figure, 'bound'>>> = {
  started: { title: 'tasks started with a known wait', unit: '' },
  cpu: { title: 'CPU of one core', unit: '%' },
}
