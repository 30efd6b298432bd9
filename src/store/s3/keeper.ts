/** Heartbeats from a thread with a client of its own: a busy event loop loses no leases. */
import { Worker } from 'node:worker_threads'
import type { S3ClientConfig } from '@aws-sdk/client-s3'
import { type PackedLeases, packLeases } from '../packed-leases.ts'
import type { Keeper, KeeperOptions, KeeperReport } from '../store.ts'
import type { S3Place } from './address.ts'

export interface KeeperPlace {
  readonly place: S3Place
  /** undefined: as the SDK finds them there. */
  readonly credentials: S3ClientConfig['credentials'] | undefined
  readonly requestTimeout: number
  readonly etagsAreBare: boolean
}

export interface KeeperThreadData extends KeeperPlace {
  readonly board: SharedArrayBuffer
  readonly leaseTtl: number
  readonly every: number
}

export type ToKeeper =
  | { readonly kind: 'hold'; readonly leases: PackedLeases }
  | { readonly kind: 'progress'; readonly slot: number; readonly progress: string }
  | { readonly kind: 'close' }

export interface FromKeeper {
  readonly results: readonly KeeperReport[]
  readonly renewedAt: number
}

/** Whether a thread can be told: credentials that are a function stay here. */
export const isPortable = (place: KeeperPlace): boolean => {
  try {
    structuredClone(place)
    return true
  } catch {
    return false
  }
}

export const startKeeper = (place: KeeperPlace, { board, leaseTtl, every, report }: KeeperOptions): Keeper => {
  // Beside this file, with its own ending: .ts in a checkout, .js in the package.
  const module = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
  const data: KeeperThreadData = { ...place, board: board.memory, leaseTtl, every }
  let thread: Worker | null = null
  const post = (message: ToKeeper): void => {
    thread ??= start()
    thread.postMessage(message)
  }
  /** With the first lease, not before: the SDK takes its time and memory there, too. */
  const start = (): Worker => {
    const started = new Worker(module, { workerData: data, name: 'holdfast-s3' })
    started.on('message', ({ results, renewedAt }: FromKeeper) => report(results, renewedAt))
    // A thread that fails renews nothing: the holders' own deadlines tell them.
    started.on('error', () => {})
    started.unref()
    return started
  }
  return {
    hold: (leases) => post({ kind: 'hold', leases: packLeases(leases) }),
    progress: (slot, progress) => post({ kind: 'progress', slot, progress }),
    close: () => {
      if (thread !== null) post({ kind: 'close' })
    },
  }
}
